import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { availableOrSkipped } from "../../../../test/package/available.ts";
import { node24 } from "../../../../tools/fetch-packages.mjs";

const NODE_24 = availableOrSkipped("Node 24", node24);

/** Whether what needs Node 24 is skipped. */
export const isSkipped = NODE_24 === undefined;

/** All that a program does, on a machine that is busy with other things. */
export const TIMEOUT_MS = 120_000;

/**
 * Runs a program under Node 24, for clients that need Node 22. It gets the package as it was built.
 * Resolves with what it prints: JSON, and what Node warns of.
 */
export async function runNewer(
  program: URL,
): Promise<{ readonly printed: Readonly<Record<string, unknown>>; readonly stderr: string }> {
  const { stdout, stderr } = await promisify(execFile)(NODE_24!, [fileURLToPath(program)]);
  return { printed: JSON.parse(stdout), stderr };
}
