import type { RepositoryStatistics } from "zae-limiter";
import { interleave, median, printTable, whole, type Measured, type Pace } from "../harness.ts";
import type { Bill } from "./bill.ts";
import type { Case } from "./cases.ts";
import type { Contestant, ContestantId } from "./contestants/contestant.ts";

/** What a contestant cost in a case, and what it was billed for `billed` operations of it. */
export interface Outcome {
  readonly measured: Measured;
  readonly bill: Bill;
  readonly billed: number;
}

/** Lets the contestants of a case take turns at it, and prints the table. */
export async function compare(
  race: Case,
  contestants: readonly Contestant[],
  { pace, billed }: { readonly pace: Pace; readonly billed: number },
): Promise<ReadonlyMap<ContestantId, Outcome>> {
  const entered = [];
  for (const contestant of contestants) {
    const entry = await contestant.enter(race);
    if (entry !== undefined) entered.push({ id: contestant.id, name: contestant.name, entry });
  }
  const measured = await interleave(
    entered.map(({ name, entry }) => ({
      name,
      run: async (operations: number) => entry.run(operations),
    })),
    pace,
  );
  const outcomes = new Map<ContestantId, Outcome>();
  for (const [index, { id, entry }] of entered.entries()) {
    // What was read from the configuration is believed for a minute on all sides; reading it again
    // is not part of a call's bill.
    await entry.run(billed);
    outcomes.set(id, { measured: measured[index]!, bill: await entry.bill(billed), billed });
  }
  printCase(race, [...outcomes.values()]);
  return outcomes;
}

/** How many operations one second of the processor is enough for. */
export function perCpuSecond({ cpuNs }: Measured): string {
  return whole(1e9 / median(cpuNs));
}

function printCase({ title }: Case, outcomes: readonly Outcome[]): void {
  printTable(
    [title, "acquires/s", "CPU µs each", "per CPU second", "requests", "write units", "read units"],
    outcomes.map(({ measured, bill, billed }) => [
      measured.name,
      whole(1e9 / median(measured.wallNs)),
      (median(measured.cpuNs) / 1000).toFixed(1),
      perCpuSecond(measured),
      ...[bill.requests, bill.writeUnits, bill.readUnits].map((count) =>
        (count / billed).toFixed(count === 0 || count >= billed ? 2 : 3),
      ),
    ]),
  );
  for (const { measured, bill, billed } of outcomes)
    if (bill.statistics !== undefined)
      console.log(`  ${measured.name}, ${billed} calls: ${describe(bill.statistics)}`);
  console.log("");
}

function describe({
  batches,
  batchedOperations,
  refusalsFromMemory,
  writes,
  failedConditions,
  splits,
}: RepositoryStatistics): string {
  const size = batches === 0 ? "" : ` of ${(batchedOperations / batches).toFixed(1)}`;
  const counts = `${writes} writes, ${failedConditions} failed conditions, ${batches} batches${size} (${batchedOperations} operations)`;
  return `${counts}, ${refusalsFromMemory} refusals from memory, ${splits} splits`;
}
