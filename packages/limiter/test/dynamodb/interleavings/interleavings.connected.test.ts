import { afterAll, beforeAll, expect, it } from "vitest";
import type { DynamoTransport } from "../../../src/repository/dynamodb/transport/transport.ts";
import { connectToNewTable } from "../../support/connect.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { openTransport } from "../../support/transports.ts";
import { getEach, seedsFromEnvironment } from "../../support/seeded/seeds.ts";
import { runSeeds } from "./run.ts";
import type { Coverage } from "./coverage.ts";

const SEEDS = seedsFromEnvironment({ usual: 10 });

/** From so many on, a run must have met every situation. */
const ENOUGH_SEEDS = 250;

/** Seeds that find something which the first ones do not: each kills a mutation. */
const TELLING_SEEDS: readonly number[] = [42];

describeWithEngine(
  "several processes on one hot bucket, with the network in any order",
  (engine) => {
    let transports: readonly DynamoTransport[] = [];
    let tableName: string;

    beforeAll(async () => {
      const table = await connectToNewTable(engine().endpointUrl);
      tableName = table.tableName;
      transports = [table.transport, await openTransport("lean", engine())];
    });

    afterAll(() => {
      for (const transport of transports) transport.close();
    });

    const run = (seeds: readonly number[]): Promise<Coverage> =>
      runSeeds({ transports, tableName }, seeds);

    it(
      `processes keep every promise, over ${SEEDS.count} seeds`,
      { timeout: 900_000 },
      async () => {
        const coverage = await run(getEach(SEEDS));
        console.log(`interleavings: ${SEEDS.count} seeds\n${coverage.toString()}`);
        expect(coverage.counts.get("grant")).toBeGreaterThan(0);
        if (SEEDS.count >= ENOUGH_SEEDS) expect(coverage.missing).toEqual([]);
      },
    );

    it.skipIf(process.env["SEED"] !== undefined)(
      "processes keep every promise, over seeds that once broke one",
      { timeout: 900_000 },
      async () => {
        await run(TELLING_SEEDS);
      },
    );
  },
);
