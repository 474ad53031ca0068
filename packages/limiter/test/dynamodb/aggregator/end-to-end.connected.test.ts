import { afterAll, beforeAll, expect, it } from "vitest";
import type { DynamoTransport } from "zae-limiter/dynamodb";
import { describeWithEngine } from "../../support/engine.ts";
import { CoverageCounts } from "../../support/seeded/coverage-counts.ts";
import { getEach, seedsFromEnvironment } from "../../support/seeded/seeds.ts";
import { temporaryFile } from "../../support/temporary-file.ts";
import { openTransport } from "../../support/transports.ts";
import { SITUATIONS, type Situation } from "./client.ts";
import { deliverAll } from "./delivery.ts";
import { isReplayable, withHistory } from "./played-history.ts";
import {
  archivedIds,
  killRunners,
  startMortalRunner,
  type RunnerPlace,
  type RunnerProcess,
} from "./runners.ts";
import { readStream, type ShardRecords } from "./stream-reader.ts";

const SEEDS = seedsFromEnvironment({ usual: 1 });

/** From so many on, a run must have met every situation. */
const ENOUGH_SEEDS = 20;

const TIMEOUT_MS = 900_000;

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

  const buildHistory = (
    seed: number,
  ): Omit<Parameters<typeof withHistory>[0], "clients" | "rounds"> => ({
    endpointUrl: engine().endpointUrl,
    transports,
    coverage,
    seed,
  });

  it(
    `windows add up to what clients consumed, however the stream is delivered, over ${SEEDS.count} seeds`,
    { timeout: TIMEOUT_MS },
    async () => {
      for (const seed of getEach(SEEDS))
        await withHistory({ ...buildHistory(seed), clients: 6, rounds: 6 }, async (played) => {
          const { table, expected, random } = played;
          const shards = await readStream(played.streams, table.tableName);
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
          expect(await table.usage(), replay(seed)).toEqual(expected);
          // Reading all of it again changes nothing.
          await deliverAll({ ...delivery, mostRecords: 500, order: "once", lifetime: immortal });
          expect(await table.usage(), replay(seed)).toEqual(expected);
          console.log(`seed ${seed}: ${getCount(shards)} records, ${deaths} aggregators died`);
        });
      console.log(coverage.toString());
      if (SEEDS.count >= ENOUGH_SEEDS) expect(coverage.missing).toEqual([]);
    },
  );

  it(
    "runners in processes of their own that are killed are replaced: everything counts once, and what expired is archived",
    { timeout: TIMEOUT_MS },
    async () => {
      const seed = SEEDS.first;
      const archive = temporaryFile("archive");
      let first: RunnerProcess | undefined;
      const onTable = (place: Omit<RunnerPlace, "archive">): void =>
        void (first = startMortalRunner({ ...place, archive }, 20));
      const history = { ...buildHistory(seed), clients: 4, rounds: 4, onTable };
      try {
        await withHistory(history, async (played) => {
          const { table, random } = played;
          const expired = await table.deleteEvents();
          await killRunners({ ...played, archive }, first!, random);
          expect(await table.usage(), replay(seed)).toEqual(played.expected);
          expect(expired.length).toBeGreaterThan(0);
          expect(archivedIds(archive)).toEqual(expired.toSorted());
        });
      } finally {
        first?.kill();
      }
    },
  );
});

function replay(seed: number): string {
  return `again: SEED=${seed} SEEDS=1`;
}

function immortal(): { writes: number; seesLastAnswer: boolean; failureChance: number } {
  return { writes: Infinity, seesLastAnswer: true, failureChance: 0 };
}

function getCount(shards: readonly ShardRecords[]): number {
  const numbers = shards.flatMap(({ records }) =>
    records.map(({ sequenceNumber }) => sequenceNumber),
  );
  return new Set(numbers).size;
}
