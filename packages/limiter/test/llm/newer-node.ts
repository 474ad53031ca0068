import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { node24 } from "../../../../tools/fetched.mjs";

/** Starting a process takes a while on a busy machine. */
export const TIMEOUT_MS = 60_000;

/** Runs a script under Node 24, for clients that need it. Resolves with the JSON that it prints. */
export async function outcomesOf(script: URL): Promise<Readonly<Record<string, unknown>>> {
  const { stdout } = await promisify(execFile)(node24(), ["--no-warnings", fileURLToPath(script)]);
  return JSON.parse(stdout) as Readonly<Record<string, unknown>>;
}
