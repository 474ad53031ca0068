import { createInterface } from "node:readline";
import type { Environment } from "../../environment.ts";
import { Cancelled, UsageError } from "../../exit.ts";

/** Asks before something is destroyed. Where nobody can answer, the command line must say it. */
export async function confirm(
  question: string,
  yes: boolean,
  { stdin, stderr }: Environment,
): Promise<void> {
  if (yes) return;
  if (stdin.isTTY !== true)
    throw new UsageError(
      `${question} Standard input is no terminal, so nobody can be asked: pass --yes to go ahead.`,
    );
  stderr.write(`${question} [y/N] `);
  if (!/^\s*y(es)?\s*$/i.test(await nextLine(stdin))) throw new Cancelled("Nothing was changed.");
}

/**
 * The next line, or nothing at the end of input. Lets go of the input afterwards: a terminal that
 * is still read keeps the process from ending.
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
