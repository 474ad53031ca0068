import { createInterface } from "node:readline";
import type { Environment } from "../../environment.ts";
import { Cancelled, UsageError } from "../../exit.ts";

/** Asks before something is destroyed. Throws without a terminal, because it cannot ask there. */
export async function confirm(
  question: string,
  yes: boolean,
  environment: Environment,
): Promise<void> {
  if (yes) return;
  const answer = await ask(
    { question, choices: "[y/N]", otherwise: "Pass --yes to confirm." },
    environment,
  );
  if (!/^y(es)?$/i.test(answer)) throw new Cancelled("Nothing was changed.");
}

/** A question, its possible answers, and what to do where it cannot be asked. */
export interface Question {
  readonly question: string;
  readonly choices: string;
  readonly otherwise: string;
}

/** Asks a person and returns what was typed. Throws without a terminal. */
export async function ask(
  { question, choices, otherwise }: Question,
  { stdin, stderr }: Environment,
): Promise<string> {
  if (stdin.isTTY !== true)
    throw new UsageError(
      `${question} This is not running in a terminal, so it cannot ask. ${otherwise}`,
    );
  stderr.write(`${question} ${choices} `);
  return (await nextLine(stdin)).trim();
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
