import { DynamoDBStreamsClient } from "@aws-sdk/client-dynamodb-streams";
import { afterAll, beforeAll, expect, it } from "vitest";
import { DynamoRepository, type DynamoTransport } from "zae-limiter/dynamodb";
import { ManualClock, seededRandom } from "zae-limiter/testing";
import { connect } from "../../support/connect.ts";
import { describeWithEngine, type Engine } from "../../support/engine.ts";
import { CoverageCounts } from "../../support/seeded/coverage-counts.ts";
import { pick } from "../../support/seeded/random-choice.ts";
import { eachOf, seedsFromEnvironment } from "../../support/seeded/seeds.ts";
import { startStreamProxy, type StreamFault } from "../../support/stream-proxy.ts";
import { openTransport } from "../../support/transports.ts";
import { SITUATIONS, type Situation } from "./client.ts";
import { deliverAll } from "./delivery.ts";
import { playHistory } from "./history.ts";
import type { Sum } from "./ledger.ts";
import { PhaseTimes } from "./phase-times.ts";
import { readStream, type ShardRecords } from "./stream-reader.ts";
import { UsageTable } from "./usage-table.ts";

const SEEDS = seedsFromEnvironment({ usual: 2 });

/** From so many on, a run must have met every situation. */
const ENOUGH_SEEDS = 20;

const FAULTS: readonly StreamFault[] = [
  "empty",
  "short",
  "again",
  "expired",
  "throttle",
  "internal",
  "lost-reply",
];

describeWithEngine("usage from the stream, end to end", (engine) => {
  let transports: readonly DynamoTransport[] = [];
  const coverage = new CoverageCounts<Situation>(SITUATIONS);

  beforeAll(async () => {
    transports = await Promise.all([
      openTransport("lean", engine()),
      openTransport("SDK's", engine()),
    ]);
  });
  afterAll(() => {
    for (const transport of transports) transport.close();
  });

  it(
    `windows add up to what clients consumed, however the stream is delivered, over ${SEEDS.count} seeds`,
    { timeout: 900_000 },
    async () => {
      for (const seed of eachOf(SEEDS)) {
        const replay = `again: SEED=${seed} SEEDS=1`;
        await withHistory(engine(), { seed, clients: 6, rounds: 8 }, async (played) => {
          const { table, shards, expected, random } = played;
          const delivery = { shards, random, transport: transports[0]!, stack: table.tableName };
          const deaths = await deliverAll({
            ...delivery,
            mostRecords: 60,
            order: isReplayable(seed) ? "one by one" : "any",
            lifetime: (fate) => ({
              writes: Math.ceil(fate() * 25),
              seesLastAnswer: fate() < 0.5,
              failureChance: 0.02,
            }),
          });
          expect(await table.usage(), replay).toEqual(expected);
          // Whoever begins at the beginning again changes nothing.
          await deliverAll({ ...delivery, mostRecords: 500, lifetime: immortal, order: "once" });
          expect(await table.usage(), replay).toEqual(expected);
          console.log(`seed ${seed}: ${countOf(shards)} records, ${deaths} aggregators died`);
        });
      }
      console.log(coverage.toString());
      if (SEEDS.count >= ENOUGH_SEEDS) expect(coverage.missing).toEqual([]);
    },
  );

  it(
    "an aggregator that is killed after every single write counts everything once",
    { timeout: 900_000 },
    async () => {
      const seed = SEEDS.first;
      await withHistory(engine(), { seed, clients: 4, rounds: 2 }, async (played) => {
        const { table, shards, expected, random } = played;
        let lives = 0;
        const deaths = await deliverAll({
          shards,
          random,
          transport: transports[0]!,
          stack: table.tableName,
          mostRecords: 25,
          lifetime: () => ({ writes: 1, seesLastAnswer: (lives += 1) % 2 === 0, failureChance: 0 }),
          order: "once",
        });
        expect(await table.usage(), `again: SEED=${seed} SEEDS=1`).toEqual(expected);
        expect(deaths).toBeGreaterThan(20);
      });
    },
  );

  interface Played {
    readonly table: UsageTable;
    readonly shards: readonly ShardRecords[];
    readonly expected: Readonly<Record<string, Sum>>;
    readonly random: () => number;
  }

  /** Lets clients make a history on a new table, and reads its stream. */
  async function withHistory(
    { endpointUrl }: Engine,
    { seed, clients, rounds }: { seed: number; clients: number; rounds: number },
    use: (played: Played) => Promise<void>,
  ): Promise<void> {
    const random = seededRandom(seed);
    const times = new PhaseTimes(Date.now());
    const { connection, tableName } = await connect(endpointUrl);
    const table = new UsageTable(connection);
    const proxy = await startStreamProxy(endpointUrl, {
      shards: 3,
      isExpiry: ({ PK }) => table.expired.has((PK as { S: string }).S),
      timeOf: (record) => times.timeOf(record),
    });
    const client = new DynamoDBStreamsClient({
      endpoint: proxy.endpointUrl,
      region: "us-east-1",
      credentials: { accessKeyId: "key", secretAccessKey: "secret" },
      maxAttempts: 1,
    });
    const isConcurrent = !isReplayable(seed);
    const clock = new ManualClock(Date.now());
    let opened = 0;
    const open = (): Promise<DynamoRepository> => {
      opened += 1;
      return DynamoRepository.open("app", {
        stack: tableName,
        transport: transports[opened % transports.length]!,
        provisioning: "table",
        random: seededRandom(1000 * seed + opened),
        ...(!isConcurrent && { clock: { now: () => clock.now(), sleep: async () => {} } }),
        // A change of configuration is seen by the next call.
        configCacheTtlMs: 0,
        requestTimeoutMs: 10_000,
      });
    };
    try {
      await (await open()).close();
      const ledger = await playHistory({
        random,
        clients,
        rounds,
        isConcurrent,
        pause: () => clock.set(clock.now() + Math.floor(random() * 3000)),
        times,
        table,
        proxy,
        coverage,
        open,
      });
      proxy.decide = () => (random() < 0.2 ? pick(random, FAULTS) : undefined);
      const shards = await readStream(client, tableName);
      await use({ table, shards, expected: ledger.sums(), random });
    } finally {
      client.destroy();
      connection.close();
      await proxy.stop();
    }
  }
});

/**
 * Clients act one after another, by a clock of the test, in every other seed: it happens again in
 * exactly the same way. In the others they act at once.
 */
function isReplayable(seed: number): boolean {
  return seed % 2 === 1;
}

function immortal(): { writes: number; seesLastAnswer: boolean; failureChance: number } {
  return { writes: Infinity, seesLastAnswer: true, failureChance: 0 };
}

function countOf(shards: readonly ShardRecords[]): number {
  const numbers = shards.flatMap(({ records }) =>
    records.map(({ sequenceNumber }) => sequenceNumber),
  );
  return new Set(numbers).size;
}
