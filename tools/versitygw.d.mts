import type { ChildProcess, SpawnOptions } from "node:child_process";

export function isVersitygwInstalled(): boolean;
export function installVersitygw(): string;
export function startVersitygw(port: number | string, options?: SpawnOptions): ChildProcess;
