import { expect, it } from "vitest";
import { describeWithEngine, freshTableName } from "../../support/engine.ts";
import { seedsFromEnvironment } from "../../support/seeded/seeds.ts";
import { openTransport } from "../../support/transports.ts";
import { dynamoBackend } from "./dynamodb-backend.ts";
import { runSeeds } from "../../simulation/run.ts";
import type { Situation } from "../../simulation/coverage.ts";

/** Every step costs a few dozen requests, most of them to compare. */
const SEEDS = seedsFromEnvironment({ usual: 2 });
const MOST_STEPS = 50;
/** A replay takes most of a second. */
const MOST_REPLAYS = 40;

/** What a steady clock cannot bring about. */
const IMPOSSIBLE: ReadonlySet<Situation> = new Set([
  "clock step backward",
  "skewed clocks",
  "window open after a clock stepped back over an end",
]);

describeWithEngine("the simulation on DynamoDB", (engine) => {
  it(
    `the simulation keeps every promise with a table that clients share, over ${SEEDS.count} seeds`,
    { timeout: 900_000 },
    async () => {
      const transports = [
        await openTransport("SDK's", engine()),
        await openTransport("lean", engine()),
      ];
      const backend = dynamoBackend({ transports, newTableName: freshTableName });
      const { steps, coverage, failure } = await runSeeds(backend, {
        ...SEEDS,
        mostSteps: MOST_STEPS,
        mostReplays: MOST_REPLAYS,
      });
      if (failure !== undefined) throw new Error(failure.story, { cause: failure.error });
      console.log(`DynamoDB: ${SEEDS.count} seeds, ${steps} steps\n${coverage.toString()}`);
      if (SEEDS.count >= 100)
        expect(coverage.missing.filter((situation) => !IMPOSSIBLE.has(situation))).toEqual([]);
      for (const client of transports) client.close();
    },
  );
});
