import { join } from "node:path";
import type { Command } from "commander";
import type { Repository } from "zae-limiter";
import type { LoadTest } from "artillery-engine-zae-limiter/run";
import { EXIT, UsageError, type ExitCode } from "../exit.ts";
import { loadReportText } from "../output/load-test.ts";
import { fieldsText, tableText } from "../output/table.ts";
import { numberText, printable } from "../output/text.ts";
import { countArgument, numberArgument } from "./support/arguments.ts";
import { LoadDisplay } from "./support/load-display.ts";
import { inTarget, orWrongUsage } from "./support/load-target.ts";
import type { Session } from "./support/session.ts";
import { addNoun, addVerb } from "./support/verb.ts";

/** Adds the verbs of `loadtest`: realistic load on a repository, and whether its limits held. */
export function addLoadTestCommands(program: Command, session: Session): void {
  const noun = addNoun(
    program,
    "loadtest",
    "Puts realistic load on a repository with Artillery, and verifies that its limits held.",
  );

  addVerb(noun, {
    usage: "list",
    summary: "Lists the scenarios.",
    examples: ["loadtest list"],
  }).action(async (_options: object, command: Command) => {
    const { SCENARIOS } = await import("artillery-engine-zae-limiter");
    const screen = session.screen(command);
    const scenarios = Object.entries(SCENARIOS).map(([name, { description, defaults }]) => ({
      name,
      description,
      defaults,
    }));
    screen.show(scenarios, () =>
      tableText(
        ["Scenario", "Seconds", "Users/s", "Entities", "What it does"],
        scenarios.map(({ name, description, defaults }) => [
          name,
          defaults.durationSeconds,
          defaults.rate,
          defaults.users,
          description,
        ]),
        screen.colours,
      ),
    );
  });

  const run = addVerb(noun, {
    usage: "run <scenario>",
    summary:
      "Runs a scenario, verifies that no limit was exceeded, and writes a report as JSON, Markdown " +
      "and HTML. Exits 1 when a limit was exceeded, a bound missed, or the generator was too slow.",
    examples: [
      "loadtest run simple --target sqlite:./load.db --duration 30 --rate 50",
      "loadtest run stress --target dynamodb://eu-west-1/my-stack --output ./stress",
    ],
  });
  takeLoad(run, "Users that arrive in a second.", "How long users arrive.")
    .option("--p99 <ms>", "Fail if the p99 of an answer is above this.", numberArgument)
    .action(async (scenario: string, options: RunOptions, command: Command) =>
      runOnce(session, command, { scenario, ...options }),
    );

  addVerb(noun, {
    usage: "verify <folder>",
    summary:
      "Verifies the ledgers of a run again: that no bucket granted more than its capacity and " +
      "refill, and, with --target, that usage equals what was granted and settled.",
    examples: ["loadtest verify ./stress --target dynamodb://eu-west-1/my-stack"],
  })
    .option("--target <url>", "The repository of the run, to compare its usage.")
    .action(async (folder: string, { target }: { readonly target?: string }, command: Command) => {
      const verify = (repository?: Repository): Promise<ExitCode> =>
        verifyFolder(session, command, folder, repository);
      if (target === undefined) session.exitWith(await verify());
      else await inTarget(session, command, { url: target, access: "existing" }, verify);
    });

  const max = addVerb(noun, {
    usage: "max <scenario>",
    summary:
      "Searches for the highest rate at which the p99 of an answer stays below a bound and the " +
      "generator keeps up: doubles or halves the rate until the bound lies between two, then " +
      "halves the gap.",
    examples: ["loadtest max simple --target sqlite:./load.db --p99 20"],
  });
  takeLoad(max, "The rate to begin with.", "How long each rate is tried. By default, 10.")
    .requiredOption("--p99 <ms>", "The bound of the p99.", numberArgument)
    .action(async (scenario: string, options: RunOptions, command: Command) =>
      searchRate(session, command, { scenario, ...options }),
    );
}

const TARGET = "The repository, such as sqlite:./load.db. By default, what --repository says.";

interface RunOptions {
  readonly target?: string;
  readonly duration?: number;
  readonly rate?: number;
  readonly users?: number;
  readonly p99?: number;
  readonly output?: string;
}

type ScenarioOptions = RunOptions & { readonly scenario: string };

function takeLoad(command: Command, rate: string, duration: string): Command {
  return command
    .option("--target <url>", TARGET)
    .option("--duration <seconds>", duration, countArgument)
    .option("--rate <number>", rate, countArgument)
    .option("--users <number>", "How many different entities there are.", countArgument)
    .option("--output <folder>", "Where the ledger and the reports go; a new or empty folder.");
}

/** Refuses what cannot run before the target is opened, which may create it. */
async function runOnce(
  session: Session,
  command: Command,
  options: ScenarioOptions,
): Promise<void> {
  const runner = await import("artillery-engine-zae-limiter/run");
  const output = options.output ?? nameOutput(session, options.scenario);
  const test = { ...toLoadTest(session, command, options), output };
  const display = orWrongUsage(() => {
    runner.checkLoadTest(test);
    return new LoadDisplay(session, command, runner);
  });
  await inTarget(session, command, { url: test.target, access: "create" }, async (repository) => {
    const report = await display.untilInterrupt((signal) =>
      display.run(test, { repository, signal }),
    );
    const { screen } = display;
    screen.show(report, () => loadReportText(report, runner, screen.colours));
    screen.notice(`The report is in ${join(output, "report.html")}`);
    return report.passed ? EXIT.done : EXIT.failed;
  });
}

async function searchRate(
  session: Session,
  command: Command,
  options: ScenarioOptions,
): Promise<void> {
  const runner = await import("artillery-engine-zae-limiter/run");
  const folder = options.output ?? nameOutput(session, `max-${options.scenario}`);
  const { rate: startRate = START_RATE } = options;
  const test = toLoadTest(session, command, {
    duration: TRIAL_SECONDS,
    ...options,
    rate: startRate,
  });
  const nameTrial = (rate: number): string => join(folder, `rate-${rate}`);
  const display = orWrongUsage(() => {
    const [once, twice] = [startRate, startRate * 2].map((rate) =>
      runner.checkLoadTest({ ...test, rate, output: nameTrial(rate) }),
    );
    if (JSON.stringify(once!.config.phases) === JSON.stringify(twice!.config.phases))
      throw new UsageError(
        `${test.scenario} makes the same load whatever the rate is. Use loadtest run for it.`,
      );
    return new LoadDisplay(session, command, runner);
  });
  const { screen } = display;
  await inTarget(session, command, { url: test.target, access: "create" }, async (repository) => {
    const { rate: found, trials } = await display.untilInterrupt((signal) =>
      runner.findHighestRate({ startRate, mostRate: MOST_RATE, signal }, async (rate) => {
        screen.notice(`Trying ${rate} a second …`);
        const trial = { ...test, rate, output: nameTrial(rate) };
        const report = await display.run(trial, { repository, signal });
        const { passed, problems, verification } = report;
        return { rate, passed, problems, isExact: verification?.passed !== false };
      }),
    );
    screen.show({ rate: found, trials }, () => {
      const rows = trials.map(({ rate, problems }) => [rate, problems.join(" ") || "held"]);
      const held = found === 0 ? "No rate held." : `${numberText(found)} users a second held.`;
      const missed = trials.filter(({ passed }) => !passed).flatMap(({ problems }) => problems);
      const isGenerator = missed.every((problem) => problem.startsWith("Generator too slow"));
      const verdict = missed.length > 0 && isGenerator ? `${held} ${GENERATOR_LIMIT}` : held;
      return `${tableText(["Users/s", "Result"], rows, screen.colours)}\n${verdict}\n`;
    });
    // A limit that was exceeded at any rate is more than a rate that is too high.
    return found > 0 && trials.every(({ isExact }) => isExact) ? EXIT.done : EXIT.failed;
  });
}

const GENERATOR_LIMIT = "The generator was the limit, and not the repository.";
const TRIAL_SECONDS = 10;
const START_RATE = 50;
const MOST_RATE = 50_000;

async function verifyFolder(
  session: Session,
  command: Command,
  folder: string,
  repository: Repository | undefined,
): Promise<ExitCode> {
  const { verifyRun } = await import("artillery-engine-zae-limiter/run");
  const found = await verifyRun(folder, repository);
  if (found === undefined)
    throw new UsageError(`${folder} has no ledger. Name the output folder of a run.`);
  const screen = session.screen(command);
  screen.show(found, () => {
    const closest = `${Math.round(found.closest * 100)} %`;
    const fields: readonly (readonly [string, string | number])[] = [
      ["Buckets", found.buckets],
      ["Grants", found.grants],
      ["Closest to a bound", closest],
    ];
    const lines = [...found.notes, ...found.problems].map((line) => `${printable(line)}\n`);
    const verdict = found.passed ? "No limit was exceeded." : "FAILED";
    return `${fieldsText(fields, screen.colours)}${lines.join("")}${verdict}\n`;
  });
  return found.passed ? EXIT.done : EXIT.failed;
}

function toLoadTest(
  session: Session,
  command: Command,
  { scenario, target, duration, rate, users, p99 }: ScenarioOptions,
): Omit<LoadTest, "output"> {
  return {
    scenario,
    target: target ?? session.getUrl(command),
    durationSeconds: duration,
    rate,
    users,
    p99BoundMs: p99,
  };
}

/** A folder for this run alone, beside those of others. */
function nameOutput({ environment }: Session, name: string): string {
  const at = new Date(environment.nowMs()).toISOString().replaceAll(/[-:]|\..*/g, "");
  return join("loadtest", `${name}-${at}`);
}
