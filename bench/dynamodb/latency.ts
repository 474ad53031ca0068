/*
 * What a call that comes alone waits for. Nothing is there to share with, so sharing must not make
 * it wait. Contestants take turns call by call, with idle time in between.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { judge, median, printTable, whole } from "../harness.ts";
import { LONE_CASES, type Case } from "./cases.ts";
import type { Contestant, ContestantId, Entry } from "./contestants/contestant.ts";

/** How many calls each contestant makes. */
export interface LatencyPace {
  readonly warmUp: number;
  readonly calls: number;
}

/** Long enough that everything of the call before is over. */
const IDLE_MS = 2;

/** With sharing : without, by the median; the machine is noisier than this by itself. */
const AT_MOST = 1.05;

const LONELY: ReadonlySet<ContestantId> = new Set([
  "floor-lean",
  "ours-lean-unshared",
  "ours-lean",
]);

/** Measures all contestants on the lean transport, where there is least to hide a wait behind. */
export async function printLatencies(
  contestants: readonly Contestant[],
  pace: LatencyPace,
): Promise<void> {
  const lonely = contestants.filter(({ id }) => LONELY.has(id));
  if (lonely.length === 0) return;
  for (const race of LONE_CASES) await printLatency(race, lonely, pace);
}

async function printLatency(
  race: Case,
  contestants: readonly Contestant[],
  { warmUp, calls }: LatencyPace,
): Promise<void> {
  const entered: { name: string; id: ContestantId; entry: Entry; waitsMs: number[] }[] = [];
  for (const contestant of contestants) {
    const entry = await contestant.enter(race);
    if (entry === undefined) continue;
    await entry.run(warmUp);
    entered.push({ name: contestant.name, id: contestant.id, entry, waitsMs: [] });
  }
  for (let call = 0; call < calls; call += 1)
    for (let turn = 0; turn < entered.length; turn += 1) {
      const { entry, waitsMs } = entered[(call + turn) % entered.length]!;
      await sleep(IDLE_MS);
      const startedMs = performance.now();
      await entry.run(1);
      waitsMs.push(performance.now() - startedMs);
    }
  const unshared = entered.find(({ id }) => id === "ours-lean-unshared")!;
  printTable(
    [race.title, "median µs", "p95 µs", "goal", "median : sharing off", "verdict", "p95"],
    entered.map(({ name, id, waitsMs }) => {
      const [middleMs, slowMs] = [median(waitsMs), percentile(waitsMs, 95)];
      const ratio = middleMs / median(unshared.waitsMs);
      const slowRatio = slowMs / percentile(unshared.waitsMs, 95);
      const [goal, measured, verdict] = judge(
        ratio,
        id === "ours-lean" ? { atMost: AT_MOST } : undefined,
      );
      return [name, us(middleMs), us(slowMs), goal, measured, verdict, slowRatio.toFixed(2)];
    }),
  );
}

function us(ms: number): string {
  return whole(ms * 1000);
}

/** The value that this share of all values does not exceed. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = [...values].sort((left, right) => left - right);
  return sorted[Math.max(0, Math.ceil((sorted.length * percent) / 100) - 1)] ?? Number.NaN;
}
