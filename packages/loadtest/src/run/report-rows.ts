import type { CallRow, LoadReport, PeriodRow } from "./load-report.ts";

/** A table of a report: what its numbers are, and its rows. */
export interface ReportTable {
  readonly title: string;
  readonly headers: readonly string[];
  readonly rows: readonly (readonly (string | number | undefined)[])[];
}

const LATENCIES = ["p50 ms", "p95 ms", "p99 ms", "max ms"] as const;

/** The headers of the rows of periods. */
export const PERIOD_HEADERS = [
  "at s",
  "users",
  "granted/s",
  "refused/s",
  "errors",
  ...LATENCIES,
] as const;

/** The tables of a report, in the order in which they are read; those without rows are left out. */
export function listTables(report: LoadReport): readonly ReportTable[] {
  const tables: readonly ReportTable[] = [
    {
      title: "Calls",
      headers: ["call", "count", ...LATENCIES],
      rows: report.calls.map((row) => [row.name, row.count, ...latencyCells(row)]),
    },
    {
      title: "By name",
      headers: ["name", "granted", "refused", ...LATENCIES],
      rows: report.byName.map((row) => [row.name, row.count, row.refused, ...latencyCells(row)]),
    },
    {
      title: "Errors",
      headers: ["code", "count"],
      rows: Object.entries(report.errors),
    },
    {
      title: "Over time",
      headers: PERIOD_HEADERS,
      rows: report.periods.map(periodCells),
    },
  ];
  return tables.filter(({ rows }) => rows.length > 0);
}

/** The numbers of a period, under `PERIOD_HEADERS`. */
export function periodCells(row: PeriodRow): readonly (string | number | undefined)[] {
  return [
    Math.round(row.atSeconds),
    row.users,
    round(row.granted / row.seconds),
    round(row.refused / row.seconds),
    row.errors,
    ...latencyCells(row),
  ];
}

/** What is said of a run beside its tables, as sentences. */
export function listFacts(report: LoadReport): readonly string[] {
  const { users, generator, verification, interrupted, namespace } = report;
  return [
    ...(namespace === undefined ? [] : [`Namespace: ${namespace}.`]),
    ...(interrupted
      ? ["The run was interrupted; its last seconds were verified, but are not in the tables."]
      : []),
    `${users.created} users: ${users.completed} completed, ${users.failed} failed.`,
    ...(generator === undefined ? [] : [describeGenerator(generator)]),
    ...(verification === undefined
      ? ["Not verified: there is no ledger."]
      : [
          `Verified ${verification.grants} grants on ${verification.buckets} buckets; the run came ` +
            `to ${Math.round(verification.closest * 100)} % of what the limits allow.`,
          ...verification.notes,
        ]),
  ];
}

/** The last line of a report. */
export function describeVerdict({ passed, interrupted, problems }: LoadReport): string {
  if (!passed) return `FAILED: ${problems.join(" ")}`;
  return interrupted ? "Interrupted; nothing was found until then." : "Passed.";
}

function describeGenerator({
  plannedArrivals,
  createdArrivals,
  plannedSeconds,
  tookSeconds,
  lagP99Us,
}: NonNullable<LoadReport["generator"]>): string {
  const lag = lagP99Us === undefined ? "" : `, ${round(lagP99Us / 1000)} ms late (p99)`;
  return (
    `Generator: ${createdArrivals} of ${plannedArrivals} planned arrivals in ` +
    `${round(tookSeconds)} of ${plannedSeconds} s${lag}.`
  );
}

function latencyCells({
  p50Us,
  p95Us,
  p99Us,
  maxUs,
}: Partial<CallRow>): readonly (number | undefined)[] {
  return [p50Us, p95Us, p99Us, maxUs].map((us) => (us === undefined ? us : round(us / 1000)));
}

/** Three digits behind the point: memory answers in microseconds. */
function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}
