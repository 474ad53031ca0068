import { describe, expect, it, onTestFinished } from "vitest";
import { getEach, seedsFromEnvironment } from "../../support/seeded/seeds.ts";
import { Chaos } from "./run.ts";
import { ADAPTERS } from "./servers.ts";

// A short variant of `npm run chaos`.

const SEEDS = seedsFromEnvironment({ usual: 8 });

describe.each(Object.keys(ADAPTERS))("%s", (adapter) => {
  it(
    `ends every lease once, over ${SEEDS.count} rounds of chaos`,
    { timeout: 600_000 },
    async () => {
      const chaos = await Chaos.start(adapter);
      onTestFinished(() => chaos.stop());
      for (const seed of getEach(SEEDS))
        expect(
          await chaos.round(seed),
          `Again: npm run chaos -- --adapter ${adapter} --seed ${seed}`,
        ).toEqual([]);
      expect(chaos.totals.ended).toBeGreaterThan(SEEDS.count);
    },
  );
});
