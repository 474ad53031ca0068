import { Option, type Command } from "commander";
import { StackOperationError } from "zae-limiter";
import type { TableCheck } from "zae-limiter/dynamodb";
import type { DeployReport } from "@zae-limiter/infra";
import type { UpgradeOptions, UpgradeReport } from "@zae-limiter/upgrade";
import { EXIT, UsageError } from "../../exit.ts";
import type { Screen } from "../../output/screen.ts";
import { tableText } from "../../output/table.ts";
import { printable } from "../../output/text.ts";
import { checkStackName, type NamedStack } from "../support/repository-url.ts";
import type { Session } from "../support/session.ts";
import { addVerb, yesOption } from "../support/verb.ts";
import { deployWithConsent } from "./deploy.ts";
import { interruptible } from "./interruptible.ts";

interface UpgradeFlags {
  readonly dryRun?: boolean;
  readonly lambdaOnly?: boolean;
  readonly force?: boolean;
  readonly into?: string;
  readonly snapshotWindows?: UpgradeOptions["snapshotWindows"];
  readonly yes?: boolean;
}

/** Adds `upgrade`. */
export function addUpgradeCommand(program: Command, session: Session): void {
  addVerb(program, {
    usage: "upgrade",
    summary:
      "Brings a stack, its Lambda and the items of its table to the version of this client. " +
      "An upgrade that was interrupted is continued.",
    examples: [
      "upgrade --stack limits --dry-run",
      "upgrade --stack limits",
      "upgrade --stack python-limits --into limits",
    ],
  })
    .option("--dry-run", "Only show what would be done.")
    .option("--lambda-only", "Update the code of the Lambda and nothing else.")
    .option(
      "--into <stack>",
      "Copy the items of a table that the Python zae-limiter wrote into the new table of this stack.",
      checkStackName,
    )
    .option("--force", "Go on although some of the table cannot be enforced afterwards.")
    .addOption(
      new Option(
        "--snapshot-windows <windows>",
        "Which windows the Python zae-limiter counted. By default, hourly,daily.",
      ).argParser(windowsArgument),
    )
    .addOption(yesOption())
    .action(async (flags: UpgradeFlags, command: Command) => {
      if (flags.lambdaOnly && (flags.into !== undefined || flags.dryRun))
        throw new UsageError("--lambda-only goes with neither --into nor --dry-run.");
      const verb = new UpgradeVerb(session, session.getManagedStack(command), flags);
      const screen = session.screen(command);
      if (flags.lambdaOnly) return verb.updateLambda(screen);
      return verb.run(screen);
    });
}

/** One run of the verb. */
class UpgradeVerb {
  readonly #session: Session;
  readonly #place: NamedStack;
  readonly #flags: UpgradeFlags;

  constructor(session: Session, place: NamedStack, flags: UpgradeFlags) {
    this.#session = session;
    this.#place = place;
    this.#flags = flags;
  }

  async updateLambda(screen: Screen): Promise<void> {
    const { updateLambda } = await import("@zae-limiter/infra");
    const { checkTable } = await import("zae-limiter/dynamodb");
    assertOwnSchema(await checkTable(this.#place), this.#place);
    await updateLambda(this.#place);
    const { lambdaVersion } = await checkTable(this.#place);
    screen.show({ lambdaVersion }, () =>
      lambdaVersion === undefined
        ? "The stack has no Lambda.\n"
        : `The Lambda has version ${printable(lambdaVersion)}.\n`,
    );
  }

  async run(screen: Screen): Promise<void> {
    const { checkTable } = await import("zae-limiter/dynamodb");
    const { into } = this.#flags;
    const check = await checkTable(this.#place);
    const stack = into === undefined ? await this.#updateStack(check, screen) : undefined;
    // Items of a new version without its Lambda would not be counted.
    if (stack?.outcome === "declined") return this.#session.exitWith(EXIT.failed);
    const report = await this.#upgradeItems(screen);
    screen.show({ ...report, ...(stack !== undefined && { stack }) }, () =>
      [stackText(stack), reportText(report, this.#flags, screen)].join(""),
    );
  }

  /** The template and the Lambda, where there is a stack. */
  async #updateStack(check: TableCheck, screen: Screen): Promise<DeployReport | undefined> {
    const { stackExists } = await import("@zae-limiter/infra");
    if (!(await stackExists(this.#place))) return undefined;
    assertOwnSchema(check, this.#place);
    const { dryRun = false, yes = false } = this.#flags;
    const { stack } = this.#place;
    const rerun = `zae-limiter upgrade --stack ${stack}`;
    return interruptible(this.#session, { stack, rerun }, async (signal) =>
      deployWithConsent(
        { ...this.#place, dryRun, yes, signal },
        { screen, session: this.#session },
      ),
    );
  }

  async #upgradeItems(screen: Screen): Promise<UpgradeReport> {
    const { upgradeTable } = await import("@zae-limiter/upgrade");
    const { dryRun = false, yes = false, into, force, snapshotWindows } = this.#flags;
    const options: UpgradeOptions = {
      ...this.#place,
      ...(into !== undefined && { into }),
      ...(force !== undefined && { force }),
      ...(snapshotWindows !== undefined && { snapshotWindows }),
      onProgress: ({ step, items }) => screen.progress(`${step}: ${items}`),
    };
    // Without a question there is no need to read the table once more.
    if (dryRun || !yes) {
      const plan = await upgradeTable({ ...options, dryRun: true });
      screen.endProgress();
      if (dryRun || plan.migrations.length === 0) return plan;
      const { stack } = this.#place;
      const work = into === undefined ? "Upgrade its items?" : `Copy its items into ${into}?`;
      const question = `Everything that still writes to ${stack} must be stopped. ${work}`;
      await this.#session.confirm(question, { yes });
    }
    const stopping = new AbortController();
    const stopListening = this.#session.environment.onInterrupt(() => stopping.abort());
    try {
      return await upgradeTable({ ...options, signal: stopping.signal });
    } finally {
      stopListening();
      screen.endProgress();
    }
  }
}

/**
 * The stack of a table that the Python zae-limiter wrote was made by it: its table has other
 * indexes, which CloudFormation cannot change, and its Lambda goes on counting.
 */
function assertOwnSchema({ schemaVersion }: TableCheck, { stack }: NamedStack): void {
  if (schemaVersion === undefined || !schemaVersion.startsWith("0.")) return;
  throw new StackOperationError(
    stack,
    "it was deployed by the Python zae-limiter and cannot be updated. Deploy a new stack with " +
      "zae-limiter deploy --stack NEW, then copy the items: " +
      `zae-limiter upgrade --stack ${stack} --into NEW`,
  );
}

function windowsArgument(text: string): NonNullable<UpgradeFlags["snapshotWindows"]> {
  const windows = text.split(",");
  if (windows.every((window) => ["hourly", "daily", "monthly"].includes(window)))
    return windows as unknown as NonNullable<UpgradeFlags["snapshotWindows"]>;
  throw new UsageError("--snapshot-windows must be some of hourly,daily,monthly.");
}

function stackText(stack: DeployReport | undefined): string {
  return stack === undefined ? "" : `Stack ${printable(stack.stack)}: ${stack.outcome}.\n`;
}

function reportText(report: UpgradeReport, { into }: UpgradeFlags, screen: Screen): string {
  const { from, to, migrations, counts, dryRun } = report;
  if (migrations.length === 0)
    return from === undefined
      ? "The table has no version record, so there is nothing to upgrade.\n"
      : `The items are up to date: schema ${printable(from)}.\n`;
  const rows = Object.entries(counts).map(([kind, { changed, unchanged }]) => [
    kind,
    changed,
    unchanged,
  ]);
  return [
    dryRun ? "These items would be " : "The items were ",
    into === undefined ? "upgraded" : `copied into ${printable(into)},`,
    from === to ? ".\n\n" : ` from schema ${printable(from ?? "")} to ${to}.\n\n`,
    tableText(["Items", "Changed", "As they were"], rows, screen.colours),
    listText("Not supported, so it needs --force, and is not enforced afterwards:", report.dropped),
    listText("Left as it is, and not used any more:", report.left),
  ].join("");
}

function listText(title: string, texts: readonly string[]): string {
  if (texts.length === 0) return "";
  return [`\n${title}\n`, ...texts.map((text) => `  ${printable(text)}\n`)].join("");
}
