import { accessSync, constants, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { dirname, join, resolve } from "node:path";
import { ValidationError, ZaeLimiterError, type Repository } from "zae-limiter";
import { withoutCredentials } from "zae-limiter/open";
import type { Script } from "../engine/artillery.ts";
import { countArrivals } from "../load/shapes.ts";
import { renderScript } from "../scenarios/catalogue.ts";
import { listLedgers } from "../ledger/read-ledger.ts";
import { verifyLedger, type LedgerReport } from "../verify/verify-ledger.ts";
import { buildArtilleryEnvironment } from "./environment.ts";
import { findEngineFolder, type Artillery } from "./find-artillery.ts";
import { buildReport, type LoadReport, type PeriodRow, toPeriod } from "./load-report.ts";
import type { Plan } from "./judge-generator.ts";
import { LoadTestError } from "./load-test-error.ts";
import { renderHtml } from "./render-html.ts";
import { renderMarkdown } from "./render-markdown.ts";
import { startArtillery, type ArtilleryOutcome } from "./start-artillery.ts";

/** What to run, and where. */
export interface LoadTest {
  readonly scenario: string;
  /** A URL of `openRepository`. */
  readonly target: string;
  readonly durationSeconds?: number | undefined;
  /** Users that arrive in a second. */
  readonly rate?: number | undefined;
  /** How many different users there are. */
  readonly users?: number | undefined;
  /** The largest p99 of an answer that is accepted. */
  readonly p99BoundMs?: number | undefined;
  /** The folder for the ledger and the reports; it must be new or empty. */
  readonly output: string;
}

/** What a run needs from its surroundings. */
export interface Surroundings {
  readonly artillery: Artillery;
  /** The opened target, which usage is read from. */
  readonly repository: Repository;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal?: AbortSignal;
  readonly onPeriod?: (row: PeriodRow) => void;
}

/** The folder in the output folder that workers write into. */
const LEDGER = "ledger";

/**
 * Runs a scenario with Artillery, verifies its ledger, and writes `report.json`, `report.md` and
 * `report.html` into the output folder.
 */
export async function runLoadTest(
  test: LoadTest,
  { artillery, repository, env, signal, onPeriod }: Surroundings,
): Promise<LoadReport> {
  const { scenario, target, p99BoundMs } = test;
  const shown = withoutCredentials(target);
  // Artillery's process gets the real target in its environment.
  const script = checkLoadTest({ ...test, target: shown });
  const output = resolve(test.output);
  const ledger = join(output, LEDGER);
  mkdirSync(ledger, { recursive: true });
  const scriptFile = join(output, "script.json");
  writeFileSync(scriptFile, `${JSON.stringify(script, null, 2)}\n`);
  const startedAt = new Date().toISOString();
  let first: number | undefined;
  const outcome = await startArtillery(artillery, {
    script: scriptFile,
    env: buildArtilleryEnvironment({ target, ledger, engineFolder: findEngineFolder() }, env),
    ...(signal && { signal }),
    onPeriod: (period) => {
      first ??= period.firstCounterAt;
      onPeriod?.(toPeriod(period, { firstCounterAt: first, lastCounterAt: period.lastCounterAt }));
    },
  });
  const interrupted = signal?.aborted === true;
  const report = buildReport({
    scenario,
    target: shown,
    namespace: script.config.engines["zae-limiter"].namespace,
    startedAt,
    artillery: artillery.version,
    interrupted,
    plan: planArrivals(script),
    whole: outcome.whole,
    periods: outcome.periods,
    verification: await verifyRun(ledger, repository),
    p99BoundMs,
    problems: interrupted ? [] : describeFailure(outcome),
  });
  writeReport(output, report);
  return report;
}

/**
 * The script of a load test, which is only rendered: throws for what cannot run. The ledger of
 * another run in the same folder would be verified as part of this one.
 */
export function checkLoadTest(test: LoadTest): Script {
  const { scenario, output, p99BoundMs, ...options } = test;
  const script = renderScript(scenario, options);
  if (p99BoundMs !== undefined && !(p99BoundMs > 0))
    throw new ValidationError("p99BoundMs", p99BoundMs, "must be above 0");
  checkOutput(resolve(output));
  return script;
}

/** Makes nothing yet: a test that cannot run leaves nothing behind. */
function checkOutput(folder: string): void {
  let existing = folder;
  while (!existsSync(existing)) existing = dirname(existing);
  let entries: readonly string[];
  try {
    accessSync(existing, constants.W_OK);
    entries = readdirSync(existing);
  } catch (error) {
    throw new LoadTestError(`${folder} cannot be written to (${(error as Error).message}).`);
  }
  if (existing === folder && entries.length > 0)
    throw new LoadTestError(`${folder} is not empty. Name a new folder, or remove it first.`);
}

/**
 * Verifies the ledgers in a folder, or in the output folder of a run, where there are any. A store
 * that cannot tell its usage leaves the other check: that no bucket gave too much.
 */
export async function verifyRun(
  folder: string,
  repository: Repository | undefined,
): Promise<LedgerReport | undefined> {
  const ledger = [folder, join(folder, LEDGER)].find((path) => listLedgers(path).length > 0);
  if (ledger === undefined) return undefined;
  try {
    return await verifyLedger(ledger, repository);
  } catch (error) {
    if (repository === undefined || !(error instanceof ZaeLimiterError)) throw error;
    const { notes, ...found } = await verifyLedger(ledger);
    const others = notes.filter((note) => !note.startsWith("Usage was not checked"));
    return { ...found, notes: [...others, `Usage was not checked: ${error.message}`] };
  }
}

/** What Artillery makes of the phases: it has one worker less than there are cores. */
function planArrivals({ config: { phases } }: Script): Plan {
  const workers = Math.max(1, cpus().length - 1);
  const seconds = phases.reduce((sum, { duration, pause }) => sum + (duration ?? pause ?? 0), 0);
  return { arrivals: countArrivals(phases, workers), seconds };
}

/** Writes a report in its three forms. */
function writeReport(output: string, report: LoadReport): void {
  writeFileSync(join(output, "report.json"), `${JSON.stringify(report, null, 2)}\n`);
  writeFileSync(join(output, "report.md"), renderMarkdown(report));
  writeFileSync(join(output, "report.html"), renderHtml(report));
}

/** What Artillery itself has to say, such as a missed threshold of `ensure`. */
function describeFailure({ exitCode, output, whole }: ArtilleryOutcome): readonly string[] {
  if (exitCode === 0 && whole !== undefined) return [];
  const end = output.trim().split("\n").slice(-5).join(" / ");
  return [`Artillery ended with ${exitCode ?? "a signal"}: ${end}`];
}
