export function node22(): string;
export function node24(): string;
export function compilers(): readonly (readonly [version: string, tsc: string])[];
