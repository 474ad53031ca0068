import { afterAll, beforeAll, expect, it, vi } from "vitest";
import type { DynamoTransport } from "../../../src/repository/dynamodb/transport/transport.ts";
import { connectToNewTable } from "../../support/connect.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { getEach, seedsFromEnvironment } from "../../support/seeded/seeds.ts";
import { withoutStackTraces } from "../../support/seeded/without-stack-traces.ts";
import { openTransport } from "../../support/transports.ts";
import { newCoverage, type Coverage } from "./coverage.ts";
import { World } from "./world.ts";

vi.mock(import("../../../src/core/calendar.ts"), async (importOriginal) => {
  const { shiftCalendars } = await import("./other-calendars.ts");
  return shiftCalendars(await importOriginal());
});

const SEEDS = seedsFromEnvironment({ usual: 40 });

/** From so many on, a run must have met every situation, and 100 ends of windows. */
const ENOUGH_SEEDS = 40;

/** The ones that found what the first ones do not. */
const TELLING_SEEDS: readonly number[] = [110, 161, 1204];

describeWithEngine("quotas and sessions of several processes", (engine) => {
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

  async function run(seeds: readonly number[]): Promise<Coverage> {
    const coverage = newCoverage();
    await withoutStackTraces(async () => {
      for (const seed of seeds) {
        const transport = transports[seed % transports.length]!;
        await new World(seed, { transport, tableName }, coverage).play();
      }
    });
    return coverage;
  }

  it(
    `a window opens once and grants its capacity, over ${SEEDS.count} seeds`,
    { timeout: 900_000 },
    async () => {
      const coverage = await run(getEach(SEEDS));
      console.log(`windows: ${SEEDS.count} seeds\n${coverage.toString()}`);
      if (SEEDS.count < ENOUGH_SEEDS) return;
      expect(coverage.missing).toEqual([]);
      expect(coverage.counts.get("opened")).toBeGreaterThan(100);
    },
  );

  it.skipIf(process.env["SEED"] !== undefined)(
    "a window opens once and grants its capacity, over seeds that once broke it",
    { timeout: 900_000 },
    async () => {
      await run(TELLING_SEEDS);
    },
  );
});
