import { createInterface } from "node:readline";
import type { Environment } from "./environment.ts";
import { Cancelled, UsageError } from "./exit.ts";

/** Asks before something is destroyed. Where nobody can answer, the command line must say it. */
export async function confirm(question: string, yes: boolean, { stdin, stderr }: Environment): Promise<void> {
  if (yes) return;
  if (stdin.isTTY !== true)
    throw new UsageError(`${question} Standard input is no terminal, so nobody can be asked: pass --yes to go ahead.`);
  stderr.write(`${question} [y/N] `);
  for await (const answer of createInterface({ input: stdin })) {
    if (/^\s*y(es)?\s*$/i.test(answer)) return;
    break;
  }
  throw new Cancelled("Nothing was changed.");
}
