import { Option, type Command } from "commander";
import type { Limit, Repository } from "zae-limiter";
import { Cancelled } from "../../exit.ts";
import { rateText } from "../../output/text.ts";
import { findHiddenLimits, type HiddenLimit, type Scope } from "./policy.ts";
import type { Session } from "./session.ts";

/** Whether a list inherits; neither where the command line leaves it open. */
export interface InheritOptions {
  readonly inherit?: boolean;
  readonly replace?: boolean;
}

/** `--inherit` and `--replace` of the verbs that set limits above other levels. */
export function takeInheritance(command: Command): Command {
  return command
    .option("--inherit", "Keep the limits of the levels below that this list does not name.")
    .addOption(
      new Option(
        "--replace",
        "Hide the limits of the levels below that this list does not name.",
      ).conflicts("inherit"),
    );
}

/**
 * Whether a list is to inherit. A list that would hide limits of the levels below needs a decision:
 * from an option, or from the person at the terminal.
 */
export async function inheritance(
  session: Session,
  { inherit, replace }: InheritOptions,
  {
    repository,
    limits,
    ...scope
  }: Scope & { readonly repository: Repository; readonly limits: readonly Limit[] },
): Promise<boolean> {
  if (inherit === true || replace === true) return inherit === true;
  const names = limits.map(({ name }) => name);
  const hidden = await findHiddenLimits(repository, scope, names);
  if (hidden.length === 0) return false;
  const answer = await session.ask({
    question: `This list would hide limits of the levels below: ${hidden.map(formatHidden).join(", ")}.`,
    choices: "Keep them (inherit), or hide them (replace)? [i/r/N]",
    otherwise: "Pass --inherit to keep them, or --replace to hide them.",
  });
  if (/^i(nherit)?$/i.test(answer)) return true;
  if (/^r(eplace)?$/i.test(answer)) return false;
  throw new Cancelled("Nothing was changed.");
}

function formatHidden({ limit, source, resource }: HiddenLimit): string {
  const level = source === "resource" ? `resource ${resource}` : source;
  return `${limit.name} ${rateText(limit)} (${level})`;
}
