import { expect, it } from "vitest";
import { planLimits } from "zae-limiter/manifest";
import { newCoverage, runHistory } from "../../manifest/history.ts";
import { newRaceCoverage, runRace } from "../../manifest/race.ts";
import { EMPTY, buildManifest } from "../../manifest/spec.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { useProxiedTable } from "../../support/proxied-table.ts";
import { getEach, seedsFromEnvironment } from "../../support/seeded/seeds.ts";

describeWithEngine("declared limits on DynamoDB", (engine) => {
  const table = useProxiedTable(engine);

  it("an apply makes the store what the manifest says, over some histories", async () => {
    for (const seed of getEach(seedsFromEnvironment({ usual: 1 })))
      await runHistory(seed, await table.open(`history-${seed}`), newCoverage());
  }, 120_000);

  it("of two applies at once one wins whole, over some races", async () => {
    for (const seed of getEach(seedsFromEnvironment({ usual: 2 })))
      await runRace(seed, await table.open(`race-${seed}`), newRaceCoverage());
  }, 120_000);

  it("reads in batches: a plan of 300 levels takes a handful of requests", async () => {
    const repository = await table.open("default");
    const level = { limits: { rpm: "1/min" }, inherit: false };
    const entities = Object.fromEntries(
      Array.from({ length: 300 }, (_, index) => [`e${index}`, { resources: { a: level } }]),
    );
    const manifest = buildManifest({ ...EMPTY, entities });
    const before = repository.getStatistics().requests;
    expect((await planLimits(repository, manifest)).entries).toHaveLength(300);
    expect(repository.getStatistics().requests - before).toBeLessThanOrEqual(12);
  });
});
