import { createInterface } from "node:readline";
import type { Environment } from "../../environment.ts";
import { Cancelled, UsageError } from "../../exit.ts";

/** Asks before something is destroyed. Without a terminal there is no one to ask, so it throws. */
export async function confirm(
  question: string,
  yes: boolean,
  { stdin, stderr }: Environment,
): Promise<void> {
  if (yes) return;
  if (stdin.isTTY !== true)
    throw new UsageError(
      `${question} Standard input is not a terminal, so this cannot be confirmed here. ` +
        "Pass --yes to go ahead.",
    );
  stderr.write(`${question} [y/N] `);
  if (!/^\s*y(es)?\s*$/i.test(await nextLine(stdin))) throw new Cancelled("Nothing was changed.");
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
