import type { LedgerReport } from "../verify/verify-ledger.ts";
import { readCounter, listKinds, listNames, type Metrics, type Summary } from "./metrics.ts";
import { judgeGenerator, type Generator, type Plan } from "./judge-generator.ts";

/** Latencies in microseconds. */
export interface Latency {
  readonly p50Us: number;
  readonly p95Us: number;
  readonly p99Us: number;
  readonly maxUs: number;
}

/** One kind of call, or the calls of one name. */
export interface CallRow extends Partial<Latency> {
  readonly name: string;
  readonly count: number;
  /** Only of names: how many were refused. */
  readonly refused?: number;
}

/** Ten seconds of a run, or less at its ends. */
export interface PeriodRow extends Partial<Latency> {
  /** Since the first measure. */
  readonly atSeconds: number;
  readonly seconds: number;
  readonly users: number;
  readonly granted: number;
  readonly refused: number;
  readonly errors: number;
}

/** Which run it was. */
export interface RunName {
  readonly scenario: string;
  /** The URL of the repository, without credentials. */
  readonly target: string;
  /** Where the data of the run are. */
  readonly namespace?: string | undefined;
  readonly startedAt: string;
  readonly artillery: string;
  /** The run was ended by hand. */
  readonly interrupted: boolean;
}

/** Everything that is known of a run. */
export interface LoadReport extends RunName {
  /** No limit was exceeded, no bound missed, and the generator kept up. */
  readonly passed: boolean;
  /** Why not, as sentences. */
  readonly problems: readonly string[];
  readonly users: { readonly created: number; readonly completed: number; readonly failed: number };
  readonly generator: Generator | undefined;
  readonly verification: LedgerReport | undefined;
  readonly calls: readonly CallRow[];
  readonly byName: readonly CallRow[];
  readonly errors: Readonly<Record<string, number>>;
  readonly periods: readonly PeriodRow[];
}

/** What a report is made of. */
export interface ReportInput extends RunName {
  readonly plan: Plan;
  /** Undefined when the run did not end by itself. */
  readonly whole: Metrics | undefined;
  readonly periods: readonly Metrics[];
  readonly verification: LedgerReport | undefined;
  /** The largest p99 of an answer that is accepted. */
  readonly p99BoundMs?: number | undefined;
  /** What else went wrong. */
  readonly problems?: readonly string[];
}

const PERIOD_MS = 10_000;

/** Puts a report together, and judges the run. */
export function buildReport({
  whole,
  periods,
  plan,
  verification,
  p99BoundMs,
  problems: others = [],
  ...run
}: ReportInput): LoadReport {
  const total = whole ?? addUp(periods);
  // It is not known how many users should have arrived in an interrupted run.
  const generator =
    whole === undefined || run.interrupted ? undefined : judgeGenerator(plan, whole);
  const users = {
    created: readCounter(total, "vusers.created"),
    completed: readCounter(total, "vusers.completed"),
    failed: readCounter(total, "vusers.failed"),
  };
  const p99Us = findAnswerP99(total);
  const problems = [
    ...others,
    ...(generator?.problems ?? []).map((problem) => `Generator too slow: ${problem}`),
    ...(users.failed > 0 ? [`${users.failed} users failed.`] : []),
    ...(p99BoundMs !== undefined && p99Us > p99BoundMs * 1000
      ? [`p99 was ${(p99Us / 1000).toFixed(1)} ms; the bound is ${p99BoundMs} ms.`]
      : []),
    ...(verification?.problems ?? []),
  ];
  return {
    ...run,
    passed: problems.length === 0 && verification?.passed !== false,
    problems,
    users,
    generator,
    verification,
    calls: listKinds(total).map((kind) => toRow(total, kind)),
    byName: listNames(total, ["acquire", "rate_limited"]).map((name) => toNameRow(total, name)),
    errors: Object.fromEntries(
      Object.entries(total.counters)
        .filter(([name]) => name.startsWith("errors."))
        .map(([name, count]) => [name.slice("errors.".length), count]),
    ),
    periods: periods.map((period) => toPeriod(period, total)),
  };
}

/** The slower of grants and refusals: a caller waits for either. */
function findAnswerP99({ summaries }: Metrics): number {
  return Math.max(
    summaries["zae.acquire.us"]?.p99 ?? 0,
    summaries["zae.rate_limited.us"]?.p99 ?? 0,
  );
}

function toRow(metrics: Metrics, kind: string): CallRow {
  const count = readCounter(metrics, `zae.${kind}.count`);
  return { name: kind, count, ...toLatency(metrics.summaries[`zae.${kind}.us`]) };
}

function toNameRow(metrics: Metrics, name: string): CallRow {
  return {
    name,
    count: readCounter(metrics, `zae.acquire_of.${name}.count`),
    refused: readCounter(metrics, `zae.rate_limited_of.${name}.count`),
    ...toLatency(metrics.summaries[`zae.acquire_of.${name}.us`]),
  };
}

/** A row of a table over time. */
export function toPeriod(
  period: Metrics,
  { firstCounterAt, lastCounterAt }: Pick<Metrics, "firstCounterAt" | "lastCounterAt">,
): PeriodRow {
  const begin = Math.max(Number(period.period), firstCounterAt);
  const end = Math.min(Number(period.period) + PERIOD_MS, lastCounterAt);
  const count = (name: string): number => readCounter(period, name);
  const errors = Object.entries(period.counters).filter(([name]) => name.startsWith("errors."));
  return {
    atSeconds: Math.max(0, (begin - firstCounterAt) / 1000),
    // A last period of some milliseconds would show an absurd rate.
    seconds: Math.max(1, (end - begin) / 1000),
    users: count("vusers.created"),
    granted: count("zae.acquire.count"),
    refused: count("zae.rate_limited.count"),
    errors: errors.reduce((sum, [, number]) => sum + number, 0),
    ...toLatency(period.summaries["zae.acquire.us"]),
  };
}

function toLatency(summary: Summary | undefined): Partial<Latency> {
  if (summary === undefined) return {};
  const { median, p95, p99, max } = summary;
  return { p50Us: median, p95Us: p95, p99Us: p99, maxUs: max };
}

/**
 * The sum of periods, for a run that was interrupted. Percentiles cannot be added: the largest of
 * each is a bound.
 */
function addUp(periods: readonly Metrics[]): Metrics {
  const counters: Record<string, number> = {};
  const summaries: Record<string, Summary> = {};
  for (const period of periods) {
    for (const [name, count] of Object.entries(period.counters))
      counters[name] = (counters[name] ?? 0) + count;
    for (const [name, summary] of Object.entries(period.summaries)) {
      if (summary === undefined) continue;
      const before = summaries[name] ?? summary;
      summaries[name] = {
        median: Math.max(before.median, summary.median),
        p95: Math.max(before.p95, summary.p95),
        p99: Math.max(before.p99, summary.p99),
        max: Math.max(before.max, summary.max),
      };
    }
  }
  const first = periods.map(({ firstCounterAt }) => firstCounterAt);
  const last = periods.map(({ lastCounterAt }) => lastCounterAt);
  return {
    counters,
    summaries,
    period: 0,
    firstCounterAt: periods.length === 0 ? 0 : Math.min(...first),
    lastCounterAt: periods.length === 0 ? 0 : Math.max(...last),
  };
}
