import type { Command } from "commander";
import type { Limit, Repository } from "zae-limiter";
import { rateText } from "../../output/text.ts";
import { findHiddenLimits, type HiddenLimit, type Scope } from "./policy.ts";
import type { Session } from "./session.ts";
import { yesOption } from "./verb.ts";

/** Whether a list hides the limits of the levels below. */
export interface ReplaceOptions {
  readonly replace?: boolean;
  readonly yes?: boolean;
}

/** `--replace` of the verbs that set limits above other levels. */
export function takeReplace(command: Command): Command {
  return command
    .option("--replace", "Hide the limits of the levels below that this list does not name.")
    .addOption(yesOption());
}

/** Whether a list is to inherit. One that would hide limits in force needs a confirmation. */
export async function chooseInherit(
  session: Session,
  { replace = false, yes = false }: ReplaceOptions,
  {
    repository,
    limits,
    ...scope
  }: Scope & { readonly repository: Repository; readonly limits: readonly Limit[] },
): Promise<boolean> {
  if (!replace) return true;
  const names = limits.map(({ name }) => name);
  const hidden = yes ? [] : await findHiddenLimits(repository, scope, names);
  const listed = hidden.map(formatHidden).join(", ");
  const question = `This list would hide limits of the levels below: ${listed}. Hide them?`;
  await session.confirm(question, { yes: hidden.length === 0 });
  return false;
}

function formatHidden({ limit, source, resource }: HiddenLimit): string {
  const level = source === "resource" ? `resource ${resource}` : source;
  return `${limit.name} ${rateText(limit)} (${level})`;
}
