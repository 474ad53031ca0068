export function node24(): string;
export function compilers(): readonly (readonly [version: string, tsc: string])[];
