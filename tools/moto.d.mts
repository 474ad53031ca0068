import type { ChildProcess, SpawnOptions } from "node:child_process";

export function isMotoInstalled(): boolean;
export function installMoto(): string;
export function startMoto(port: number | string, options?: SpawnOptions): ChildProcess;
