import { createInterface } from "node:readline";
import type { Environment } from "../../environment.ts";
import { Cancelled, UsageError } from "../../exit.ts";

/** Asks before something is destroyed. Throws without a terminal, because it cannot ask there. */
export async function confirm(
  question: string,
  yes: boolean,
  { stdin, stderr }: Environment,
): Promise<void> {
  if (yes) return;
  if (stdin.isTTY !== true)
    throw new UsageError(
      `${question} This is not running in a terminal, so it cannot ask. Pass --yes to confirm.`,
    );
  stderr.write(`${question} [y/N] `);
  const answer = (await nextLine(stdin)).trim();
  if (!/^y(es)?$/i.test(answer)) throw new Cancelled("Nothing was changed.");
}

/**
 * Reads the next line; an empty one at the end of input. Stops reading afterwards, because a
 * terminal that is still being read keeps the process alive.
 */
async function nextLine(input: Environment["stdin"]): Promise<string> {
  const lines = createInterface({ input });
  try {
    return await new Promise((resolve) => {
      lines.once("line", resolve);
      lines.once("close", () => resolve(""));
    });
  } finally {
    lines.close();
  }
}
