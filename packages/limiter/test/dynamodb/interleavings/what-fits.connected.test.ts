import { expect, it } from "vitest";
import { connectToNewTable } from "../../support/connect.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { getEach, seedsFromEnvironment } from "../../support/seeded/seeds.ts";
import { withoutStackTraces } from "../../support/seeded/without-stack-traces.ts";
import { playCalls } from "./what-fits.ts";

const SEEDS = seedsFromEnvironment({ usual: 15 });

describeWithEngine("several processes, with requests in any order", (engine) => {
  it(`what fits is granted, over ${SEEDS.count} seeds`, { timeout: 900_000 }, async () => {
    const { transport, tableName } = await connectToNewTable(engine().endpointUrl);
    const total = { granted: 0, refused: 0, undone: 0, contended: 0, longestMs: 0 };
    await withoutStackTraces(async () => {
      for (const seed of getEach(SEEDS)) {
        const outcome = await playCalls(seed, { transport, tableName });
        for (const name of ["granted", "refused", "undone", "contended"] as const)
          total[name] += outcome[name];
        total.longestMs = Math.max(total.longestMs, outcome.longestMs);
      }
    });
    transport.close();
    console.log(`what fits: ${SEEDS.count} seeds: ${JSON.stringify(total)}`);
    expect(total.granted).toBeGreaterThan(0);
    expect(total.refused).toBeGreaterThan(0);
    expect(total.undone).toBeGreaterThan(0);
    // Nothing disturbs these calls but each other, so no contention lasts.
    expect(total.contended).toBe(0);
  });
});
