/*
 * This library on one table, on AWS or on an engine: latency, throughput and bill of each case, as
 * a table and as JSON. It works in a namespace of its own, which it removes at the end, also when
 * it is interrupted. The first row is one bare read, to see what a round trip takes.
 */
import { writeFileSync } from "node:fs";
import { VERSION } from "zae-limiter";
import { printTable, whole } from "../harness.ts";
import type { Case } from "./cases.ts";
import { openOurs, type Ours } from "./contestants/ours.ts";
import { percentile } from "./latency.ts";
import type { TableOptions, TransportName } from "./selection.ts";
import { connect, findOrCreateTable } from "./table-connection.ts";

/** What to measure, and with what. */
export interface TableRun {
  readonly table: TableOptions;
  readonly races: readonly Case[];
  readonly on: ReadonlySet<TransportName>;
  /** Ends the run; what was measured until then is discarded. */
  readonly signal: AbortSignal;
}

/** What a case took on a transport. Counts and units are those of one call. */
interface Result {
  readonly case: string;
  readonly transport: TransportName;
  readonly calls: number;
  readonly failed: number;
  readonly perSecond: number;
  readonly latencyMs: { readonly p50: number; readonly p95: number; readonly p99: number };
  readonly requests: number;
  readonly writeUnits: number;
  readonly readUnits: number;
  readonly failedConditions: number;
}

const BARE_READ = { title: "one bare read after another", concurrency: 1, entityIds: [""] };

const PERCENTILES = [50, 95, 99] as const;

/** Measures, prints, and writes the file that was asked for. */
export async function measureTable(run: TableRun): Promise<void> {
  const { name, region, endpointUrl, seconds, json } = run.table;
  const created = await findOrCreateTable(run.table);
  try {
    const startedAt = new Date();
    const results: Result[] = [];
    for (const transport of run.on) results.push(...(await measureOn(transport, run)));
    if (run.signal.aborted) return;
    printResults(`${name}, ${seconds} s each`, results);
    const versions = { zaeLimiter: VERSION, node: process.versions.node };
    const report = { table: name, region, endpointUrl, startedAt, seconds, ...versions, results };
    if (json !== undefined) writeFileSync(json, `${JSON.stringify(report, undefined, 2)}\n`);
  } finally {
    await created?.deleteTable();
    await created?.close();
  }
}

async function measureOn(
  transport: TransportName,
  { table, races, signal }: TableRun,
): Promise<readonly Result[]> {
  const { connection, meter, read, close } = await connect(transport, table);
  const namespace = `benchmark-${Date.now().toString(36)}`;
  try {
    const ours = await openOurs({
      stack: table.name,
      namespace,
      connection,
      meter,
      shareRequests: true,
    });
    const { repository } = ours;
    const stopwatch = { transport, seconds: table.seconds, signal, bill: ours.bill };
    try {
      const results = [await measure(BARE_READ, { ...stopwatch, operation: read })];
      for (const race of races) {
        if (signal.aborted) break;
        const operation = await ours.prepare(race);
        results.push(await measure(race, { ...stopwatch, operation }));
      }
      return results;
    } finally {
      await repository.deleteNamespace(namespace);
      await repository.purgeNamespace(repository.namespaceId);
      await repository.close();
    }
  } finally {
    close();
  }
}

/** Calls for as long as was asked, as many at a time as the case says. */
async function measure(
  { title, concurrency, entityIds }: Pick<Case, "title" | "concurrency" | "entityIds">,
  {
    transport,
    seconds,
    signal,
    bill,
    operation,
  }: {
    readonly transport: TransportName;
    readonly seconds: number;
    readonly signal: AbortSignal;
    readonly bill: Ours["bill"];
    readonly operation: (entityId: string) => Promise<void>;
  },
): Promise<Result> {
  const latenciesMs: number[] = [];
  let [started, failed] = [0, 0];
  const startedMs = performance.now();
  const caller = async (): Promise<void> => {
    while (performance.now() - startedMs < seconds * 1000 && !signal.aborted) {
      const beganMs = performance.now();
      try {
        await operation(entityIds[started++ % entityIds.length]!);
        latenciesMs.push(performance.now() - beganMs);
      } catch (error) {
        // A throttled table makes calls fail, which belongs to the result.
        if ((error as { code?: unknown }).code !== "ERR_LIMITER_UNAVAILABLE") throw error;
        failed += 1;
      }
    }
  };
  const billed = await bill(
    async () => void (await Promise.all(Array.from({ length: concurrency }, caller))),
  );
  const [p50, p95, p99] = PERCENTILES.map((percent) => percentile(latenciesMs, percent));
  const each = (count: number): number => round(count / Math.max(1, started));
  return {
    case: title,
    transport,
    calls: started,
    failed,
    perSecond: round(latenciesMs.length / ((performance.now() - startedMs) / 1000)),
    latencyMs: { p50: round(p50!), p95: round(p95!), p99: round(p99!) },
    requests: each(billed.requests),
    writeUnits: each(billed.writeUnits),
    readUnits: each(billed.readUnits),
    failedConditions: each(billed.statistics.failedConditions),
  };
}

function printResults(title: string, results: readonly Result[]): void {
  printTable(
    [
      title,
      "on",
      "calls/s",
      "failed",
      "p50 ms",
      "p95 ms",
      "p99 ms",
      "requests",
      "write units",
      "read units",
    ],
    results.map((result) => [
      result.case,
      result.transport,
      whole(result.perSecond),
      String(result.failed),
      ...Object.values(result.latencyMs).map((ms) => ms.toFixed(1)),
      ...[result.requests, result.writeUnits, result.readUnits].map((count) => count.toFixed(3)),
    ]),
  );
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}
