import { afterAll, beforeAll, expect, it, vi } from "vitest";
import type { DynamoTransport } from "../../../src/repository/dynamodb/transport/transport.ts";
import { connectToNewTable } from "../../support/connect.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { getEach, seedsFromEnvironment } from "../../support/seeded/seeds.ts";
import { withoutStackTraces } from "../../support/seeded/without-stack-traces.ts";
import { openTransport } from "../../support/transports.ts";
import { newCoverage } from "./coverage.ts";
import { World } from "./world.ts";

vi.mock(import("../../../src/core/calendar.ts"), async (importOriginal) => {
  const { shiftCalendars } = await import("./other-calendars.ts");
  return shiftCalendars(await importOriginal());
});

const SEEDS = seedsFromEnvironment({ usual: 40 });

/** From so many on, a run must have met every situation, and 100 ends of windows. */
const ENOUGH_SEEDS = 40;

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

  it(
    `a window opens once and grants its capacity, over ${SEEDS.count} seeds`,
    { timeout: 900_000 },
    async () => {
      const coverage = newCoverage();
      await withoutStackTraces(async () => {
        for (const seed of getEach(SEEDS)) {
          const transport = transports[seed % transports.length]!;
          await new World(seed, { transport, tableName }, coverage).play();
        }
      });
      console.log(`windows: ${SEEDS.count} seeds\n${coverage.toString()}`);
      if (SEEDS.count < ENOUGH_SEEDS) return;
      expect(coverage.missing).toEqual([]);
      expect(coverage.counts.get("opened")).toBeGreaterThan(100);
    },
  );
});
