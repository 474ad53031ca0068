import { expect, it, vi } from "vitest";
import { getEach, seedsFromEnvironment } from "../../../../test/support/seeded/seeds.ts";
import { withoutStackTraces } from "../../../../test/support/seeded/without-stack-traces.ts";
import { newSharingCoverage, simulateSharing } from "../../../../test/support/simulated-sharing.ts";

const SEEDS = seedsFromEnvironment({ usual: 40 });

it(
  `writes that share requests have one outcome each, over ${SEEDS.count} seeds`,
  { timeout: 120_000 },
  async () => {
    // A statement that is denied is reported once by each sharer.
    const warning = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    const coverage = newSharingCoverage();
    await withoutStackTraces(async () => {
      for (const seed of getEach(SEEDS))
        await simulateSharing(seed, coverage).catch((error: unknown) => {
          throw new Error(`Seed ${seed} (again: SEED=${seed} SEEDS=1)`, { cause: error });
        });
    });
    warning.mockRestore();
    if (process.env["SEEDS"] === undefined) expect(coverage.missing).toEqual([]);
  },
);
