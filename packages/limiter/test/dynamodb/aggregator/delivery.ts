import type { Random } from "zae-limiter";
import { openAggregator, type Aggregator, type StreamRecord } from "zae-limiter/aggregator";
import type { DynamoTransport } from "zae-limiter/dynamodb";
import { seededRandom } from "zae-limiter/testing";
import { between, pick } from "../../support/seeded/random-choice.ts";
import { MortalTransport, type Lifetime } from "./mortal-transport.ts";
import type { ShardRecords } from "./stream-reader.ts";

/** How records reach aggregators. */
export interface DeliveryOptions {
  readonly shards: readonly ShardRecords[];
  readonly random: Random;
  readonly transport: DynamoTransport;
  readonly stack: string;
  readonly mostRecords: number;
  /** How long the next aggregator lives. */
  readonly lifetime: (random: Random) => Omit<Lifetime, "random">;
  /**
   * How batches follow each other: "any" in any way; "one by one" without several shards at a time,
   * so that a seed replays it; "once" only as often as failures make it necessary.
   */
  readonly order: "any" | "one by one" | "once";
}

/** An aggregator in a process of its own. */
interface Process {
  readonly aggregator: Aggregator;
  readonly transport: MortalTransport;
}

/** Batches that a test needs at most; if all that a shard holds fails forever, it ends. */
const MOST_BATCHES = 3000;

/**
 * Delivers all records of a stream, in the order of each shard and its parents, in any order
 * otherwise: several batches at a time, some twice, in halves, to two aggregators at once, or again
 * from an earlier record. Aggregators die; another goes on where the batch began, or before it.
 * Returns how many died.
 */
export async function deliverAll(options: DeliveryOptions): Promise<number> {
  const { shards, random, order } = options;
  // What happens when is known only then, so it must not decide what the others draw.
  const fates = seededRandom(Math.floor(random() * 2 ** 32));
  const positions = new Map(shards.map(({ id }) => [id, 0]));
  const processes = [await start(options, fates), await start(options, fates)];
  let deaths = 0;
  let lastError: unknown;

  const process = async (batch: readonly StreamRecord[], index: number): Promise<number> => {
    const { aggregator, transport } = processes[index]!;
    const report = await aggregator.process(batch).catch((error) => void (lastError = error));
    lastError = report?.failures[0]?.error ?? lastError;
    if (transport.isDead && processes[index]!.transport === transport) {
      deaths += 1;
      processes[index] = await start(options, fates);
      return 0;
    }
    const failed = report?.failures[0]?.sequenceNumber;
    if (report === undefined) return 0;
    return failed === undefined
      ? batch.length
      : batch.findIndex(({ sequenceNumber }) => sequenceNumber === failed);
  };
  const deliver = async (shard: ShardRecords): Promise<void> => {
    const position = positions.get(shard.id)!;
    const size = between(random, order === "once" ? options.mostRecords : 1, options.mostRecords);
    const batch = shard.records.slice(position, position + size);
    const who = between(random, 0, 1);
    const how = order === "once" ? "once" : pick(random, HOW);
    const hasSecondHalf = random() < 0.5;
    const back = how === "back" ? between(random, 0, 40) : 0;
    const middle = batch.length >> 1;
    if (how === "halves") {
      // What comes after a failure may only be delivered together with it.
      const isDone = (await process(batch.slice(0, middle), who)) === middle;
      if (isDone && hasSecondHalf) await process(batch.slice(middle), 1 - who);
    }
    const done =
      how === "together"
        ? Math.min(...(await Promise.all([process(batch, 0), process(batch, 1)])))
        : await process(batch, who);
    if (how === "twice") await process(batch, 1 - who);
    positions.set(shard.id, Math.max(0, position + done - back));
  };

  for (let batches = 0; batches < MOST_BATCHES; batches += 1) {
    const open = shards.filter((shard) => isDue(shard, shards, positions));
    if (open.length === 0) break;
    const chosen = order === "any" ? open.filter(() => random() < 0.6) : [pick(random, open)];
    await Promise.all(chosen.map(deliver));
  }
  for (const { aggregator } of processes) aggregator.close();
  const isDone = shards.every(({ id, records }) => positions.get(id) === records.length);
  if (!isDone)
    throw new Error(`Not everything was counted after ${MOST_BATCHES} batches`, {
      cause: lastError,
    });
  return deaths;
}

const HOW = ["once", "once", "twice", "halves", "together", "back"] as const;

/** Whether a shard has more, and those that it came from do not. */
function isDue(
  { id, parentId, records }: ShardRecords,
  shards: readonly ShardRecords[],
  positions: ReadonlyMap<string, number>,
): boolean {
  const isDone = (shard: ShardRecords): boolean => positions.get(shard.id) === shard.records.length;
  const ancestors: ShardRecords[] = [];
  for (let next = parentId; next !== undefined;) {
    const parent = shards.find((shard) => shard.id === next)!;
    ancestors.push(parent);
    next = parent.parentId;
  }
  return positions.get(id)! < records.length && ancestors.every(isDone);
}

async function start(
  { transport, stack, lifetime }: DeliveryOptions,
  fates: Random,
): Promise<Process> {
  const random = seededRandom(Math.floor(fates() * 2 ** 32));
  const mortal = new MortalTransport(transport, { ...lifetime(random), random });
  const aggregator = await openAggregator({
    transport: mortal,
    stack,
    // One that failed is delivered again, which is what is tested.
    maxAttempts: 1,
    requestTimeoutMs: 10_000,
    random,
    region: "us-east-1",
  });
  return { aggregator, transport: mortal };
}
