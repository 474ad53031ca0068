import { expect, it } from "vitest";
import { describeWithEngine, freshTableName } from "../dynamodb/engine.ts";
import { openTransport } from "../dynamodb/transports.ts";
import { dynamoBackend } from "./dynamodb-backend.ts";
import { runSeeds } from "./run.ts";
import type { Situation } from "./situations.ts";

/** Every step costs a few dozen requests, most of them to compare. */
const SEEDS = Number(process.env["SEEDS"] ?? (process.env["ZAEL_THOROUGH"] === "1" ? 100 : 10));
const MOST_STEPS = 50;
/** A replay takes most of a second. */
const MOST_REPLAYS = 40;

/** What a steady clock cannot bring about, and what waits for the aggregator. */
const IMPOSSIBLE: ReadonlySet<Situation> = new Set([
  "clock step backward",
  "skewed clocks",
  "usage in several windows",
]);

describeWithEngine("the simulation on DynamoDB", (engine) => {
  it(
    `keeps every promise with a table that clients share, over ${SEEDS} seeds`,
    { timeout: 900_000 },
    async () => {
      const transports = [
        await openTransport("SDK's", engine()),
        await openTransport("lean", engine()),
      ];
      const backend = dynamoBackend({ transports, stack: freshTableName() });
      const { steps, situations, failure } = await runSeeds(backend, {
        first: Number(process.env["SEED"] ?? 1),
        count: SEEDS,
        mostSteps: MOST_STEPS,
        mostReplays: MOST_REPLAYS,
      });
      if (failure !== undefined) throw new Error(failure.story, { cause: failure.error });
      console.log(`DynamoDB: ${SEEDS} seeds, ${steps} steps\n${situations.toString()}`);
      if (SEEDS >= 100)
        expect(situations.missing.filter((situation) => !IMPOSSIBLE.has(situation))).toEqual([]);
      for (const transport of transports) transport.close();
    },
  );
});
