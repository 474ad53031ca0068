export const artilleryProject: string;
export function isArtilleryInstalled(): boolean;
export function installArtillery(): string;
