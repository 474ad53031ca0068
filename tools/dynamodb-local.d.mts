import type { ChildProcess, SpawnOptions } from "node:child_process";

export function isDynamoDbLocalInstalled(): boolean;
export function installDynamoDbLocal(): string;
export function startDynamoDbLocal(port: number | string, options?: SpawnOptions): ChildProcess;
