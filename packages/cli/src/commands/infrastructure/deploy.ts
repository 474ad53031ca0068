import type { Command } from "commander";
import type { DeployOptions, DeployReport, ResourceChange } from "@zae-limiter/infra";
import { EXIT, type ExitCode } from "../../exit.ts";
import type { Screen } from "../../output/screen.ts";
import { changesText, eventText } from "../../output/stack.ts";
import { fieldsText } from "../../output/table.ts";
import type { Session } from "../support/session.ts";
import { addVerb, waitOption, yesOption } from "../support/verb.ts";
import { interruptible } from "./interruptible.ts";
import { addStackFlags, inFlags, readStackOptions } from "./stack-flags.ts";

/** Adds `deploy`, which creates a stack or updates the one that exists. */
export function addDeployCommand(program: Command, session: Session): void {
  const verb = addVerb(program, {
    usage: "deploy",
    summary:
      "Creates a stack, or updates the one that exists; what is not named keeps its value. " +
      "Shows what will change, and asks before anything is replaced or removed.",
    examples: [
      "deploy --stack my-stack --region eu-west-1",
      "deploy --stack my-stack --lambda-memory 512 --tag team=search --yes",
      "deploy --stack my-stack --dry-run",
    ],
  });
  addStackFlags(verb)
    .option("--code-bucket <bucket>", "A bucket for the code of the Lambdas, instead of our own.")
    .option("--account <id>", "The account that is meant; any other one is refused.")
    .option("--dry-run", "Only show what would change.")
    .addOption(waitOption())
    .option("--no-wait", "Return as soon as the deployment has begun.")
    .addOption(yesOption())
    .action(async (options: Flags, command: Command) => {
      const screen = session.screen(command);
      const place = session.getManagedStack(command);
      const stackOptions = readStackOptions(command);
      const rerun = `zae-limiter deploy --stack ${place.stack}`;
      const report = await interruptible(session, { stack: place.stack, rerun }, async (signal) =>
        deployWithConsent(
          { ...place, ...readFlags(options), stackOptions, signal },
          { screen, session },
        ),
      );
      screen.show(report, () => reportText(report, screen));
      session.exitWith(toExitCode(report));
    });
}

interface Flags {
  readonly codeBucket?: string;
  readonly account?: string;
  readonly dryRun?: boolean;
  readonly wait?: boolean;
  readonly yes?: boolean;
}

/** Options of a deployment, and whether to ask. */
export type Asked = DeployOptions & Pick<Flags, "yes">;

function readFlags({
  codeBucket,
  account,
  dryRun = false,
  wait = true,
  yes = false,
}: Flags): Asked {
  return {
    dryRun,
    wait,
    yes,
    ...(codeBucket !== undefined && { codeBucket }),
    ...(account !== undefined && { account }),
  };
}

/** Deploys, shows what happens, and asks before anything is replaced or removed. */
export async function deployWithConsent(
  { yes = false, ...options }: Asked,
  { screen, session }: { readonly screen: Screen; readonly session: Session },
): Promise<DeployReport> {
  const { deployStack, destructive } = await import("@zae-limiter/infra");
  const confirm = async (changes: readonly ResourceChange[]): Promise<boolean> => {
    if (!screen.json) screen.notice(changesText(changes, screen.colours).trimEnd());
    const lost = destructive(changes);
    if (lost.length === 0) return true;
    const names = lost.map(({ logicalId }) => logicalId).join(", ");
    await session.confirm(`This replaces or removes ${names}. Go on?`, { yes });
    return true;
  };
  try {
    return await deployStack({
      ...options,
      confirm,
      onEvent: (event) => void (screen.json || screen.notice(eventText(event))),
      onNotice: (text) => screen.notice(text),
    });
  } catch (error) {
    throw inFlags(error);
  }
}

function toExitCode({ outcome }: DeployReport): ExitCode {
  return outcome === "declined" ? EXIT.failed : EXIT.done;
}

function reportText(report: DeployReport, { colours }: Screen): string {
  const { stack, region, account, outcome, changes, outputs } = report;
  const shown = outcome === "planned" ? `${changesText(changes, colours)}\n` : "";
  return (
    shown +
    fieldsText(
      [
        ["Stack", stack],
        ["Region", region],
        ["Account", account],
        ["Outcome", OUTCOMES[outcome]],
        ["Table", outputs["TableName"]],
      ],
      colours,
    )
  );
}

const OUTCOMES: Readonly<Record<DeployReport["outcome"], string>> = {
  created: "created",
  updated: "updated",
  unchanged: "unchanged: everything is up to date",
  started: "started: run zae-limiter deploy again to see it through",
  declined: "nothing was changed",
  planned: "nothing was changed: this is what a deployment would do",
};
