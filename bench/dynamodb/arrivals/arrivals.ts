/*
 * Calls that come by themselves, at a given rate, on many entities: how many of them share a
 * request, what they wait for, and what they cost, by how many requests the library keeps under
 * way. The table is some milliseconds off, as DynamoDB is. Callers who wait for each other, as in
 * the other cases, would come in groups of their own making.
 */
import { median, printTable, whole } from "../../harness.ts";
import { percentile } from "../latency.ts";
import {
  openArrivalContestants,
  type ArrivalContestant,
  type Role,
} from "./arrival-contestants.ts";
import type { Sent } from "./distant-transport.ts";
import { OpenLoop, type Load, type Reply } from "./open-loop.ts";

/** How long and how often each rate is looked at. */
export interface ArrivalsPace {
  readonly entities: number;
  /** The rates, one after another. */
  readonly perSecond: readonly number[];
  readonly seconds: number;
  readonly rounds: number;
}

/** What a contestant sent, and what its calls waited for, in one turn. */
interface Turn extends Omit<Reply, "latenciesMs">, Sent {
  readonly calls: number;
  readonly medianMs: number;
  readonly p95Ms: number;
}

type Turns = ReadonlyMap<ArrivalContestant, readonly Turn[]>;

/** Any; it makes the arrivals of a round the same for all contestants and in every run. */
const SEED = 16;

/** What a request to a table in the same region takes. */
const LATENCY_MS = 5;

/** Lets contestants take turns at one rate after another, and prints a table for each. */
export async function printArrivals(
  endpointUrl: string,
  { entities, perSecond, seconds, rounds }: ArrivalsPace,
): Promise<void> {
  const entityIds = Array.from({ length: entities }, (_, index) => `arriving-${index}`);
  const field = await openArrivalContestants(endpointUrl, entityIds);
  const loop = new OpenLoop();
  try {
    // Starting the thread is not a contestant's cost.
    await loop.run({ perSecond: 1000, seconds: 0.1, seed: SEED }, async () => {});
    for (const rate of perSecond) {
      const turns = new Map<ArrivalContestant, Turn[]>(
        field.contestants.map((contestant) => [contestant, []]),
      );
      for (let round = 0; round < rounds; round += 1) {
        const load = { perSecond: rate, seconds, seed: SEED + round };
        for (let turn = 0; turn < turns.size; turn += 1) {
          const contestant = field.contestants[(round + turn) % turns.size]!;
          turns.get(contestant)!.push(await runTurn(contestant, { loop, load, entityIds }));
        }
      }
      printRate(`${whole(rate)} arrivals/s, ${LATENCY_MS} ms a request`, turns);
    }
  } finally {
    await loop.close();
    await field.close();
  }
}

async function runTurn(
  { transport, call }: ArrivalContestant,
  {
    loop,
    load,
    entityIds,
  }: { readonly loop: OpenLoop; readonly load: Load; readonly entityIds: readonly string[] },
): Promise<Turn> {
  transport.latencyMs = LATENCY_MS;
  transport.takeCounts();
  const { latenciesMs, failed, cpuMs } = await loop.run(load, async (index) =>
    call(entityIds[index % entityIds.length]!),
  );
  return {
    ...transport.takeCounts(),
    calls: latenciesMs.length + failed,
    medianMs: median(latenciesMs),
    p95Ms: percentile(latenciesMs, 95),
    failed,
    cpuMs,
  };
}

function printRate(title: string, turns: Turns): void {
  const [idle, unshared] = [findTurns("idle", turns), findTurns("unshared", turns)];
  // The arrivals themselves cost something, too, which is not a contestant's.
  const cpuUs = (turn: Turn, round: number): number =>
    (turn.cpuMs / turn.calls - idle[round]!.cpuMs / idle[round]!.calls) * 1000;
  printTable(
    [
      title,
      "requests each",
      "writes a request",
      "most under way",
      "failed",
      "median ms",
      "p95 ms",
      "CPU µs each",
      "median : sharing off",
      "p95",
      "CPU",
    ],
    [...turns]
      .filter(([{ role }]) => role !== "idle")
      .map(([{ name }, all]) => {
        const requests = sum(all, (turn) => turn.requests);
        const middle = (value: (turn: Turn, round: number) => number): number =>
          median(all.map(value));
        const ratio = (value: (turn: Turn, round: number) => number): string =>
          middle((turn, round) => value(turn, round) / value(unshared[round]!, round)).toFixed(2);
        return [
          name,
          (requests / sum(all, (turn) => turn.calls)).toFixed(2),
          (sum(all, (turn) => turn.writes) / requests).toFixed(1),
          whole(middle((turn) => turn.mostUnderWay)),
          whole(sum(all, (turn) => turn.failed)),
          middle((turn) => turn.medianMs).toFixed(1),
          middle((turn) => turn.p95Ms).toFixed(1),
          whole(middle(cpuUs)),
          ratio((turn) => turn.medianMs),
          ratio((turn) => turn.p95Ms),
          ratio(cpuUs),
        ];
      }),
  );
}

function findTurns(wanted: Role, turns: Turns): readonly Turn[] {
  return [...turns].find(([{ role }]) => role === wanted)![1];
}

function sum(turns: readonly Turn[], count: (turn: Turn) => number): number {
  return turns.reduce((total, turn) => total + count(turn), 0);
}
