import { Limit, RateLimiter, RateLimitExceeded } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { ManualClock } from "zae-limiter/testing";
import * as fc from "fast-check";
import { expect, it } from "vitest";

const CAPACITY = 10;
const LONGEST_MS = 30_000;

const call = fc.record({
  entityId: fc.constantFrom("e", "f"),
  resources: fc.uniqueArray(fc.constantFrom("r", "s", "t"), { minLength: 1, maxLength: 3 }),
  rps: fc.integer({ min: 1, max: CAPACITY }),
  waitUpToMs: fc.oneof(
    fc.constant(0),
    fc.integer({ min: 1, max: LONGEST_MS }),
    fc.constant(Infinity),
  ),
  arrivesAfterMs: fc.integer({ min: 0, max: 300 }),
  abortsAfterMs: fc.option(fc.integer({ min: 0, max: 5000 }), { freq: 3 }),
  worksForMs: fc.integer({ min: 0, max: 500 }),
  end: fc.constantFrom("commit" as const, "rollback" as const),
});

it("ends every waiting call in time and loses no token, however calls arrive, wait, abort and give back", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(call, { maxLength: 20, size: "max" }), async (calls) => {
      const clock = new ManualClock();
      const repository = new MemoryRepository({ clock, recordUsage: false });
      await repository.setSystemDefaults([Limit.perSecond("rps", CAPACITY)]);
      const limiter = new RateLimiter({ repository });
      const run = async (one: (typeof calls)[number]): Promise<void> => {
        const [resource, ...further] = one.resources as [string, ...string[]];
        const abort = new AbortController();
        if (one.abortsAfterMs !== null)
          void clock.sleep(one.abortsAfterMs).then(() => abort.abort("aborted"));
        const startedMs = clock.now();
        try {
          const { signal } = abort;
          const also = Object.fromEntries(further.map((name) => [name, { rps: one.rps }]));
          const lease = await limiter.acquire({
            entityId: one.entityId,
            waitUpToMs: one.waitUpToMs,
            resource,
            consume: { rps: one.rps },
            also,
            signal,
          });
          expect(clock.now() - startedMs).toBeLessThanOrEqual(one.waitUpToMs);
          await clock.sleep(one.worksForMs);
          await lease[one.end]();
        } catch (error) {
          if (error !== "aborted") expect(error).toBeInstanceOf(RateLimitExceeded);
          expect(clock.now() - startedMs).toBeLessThanOrEqual(
            Math.min(one.waitUpToMs, one.abortsAfterMs ?? Infinity),
          );
        }
      };
      let ended = 0;
      const failures: unknown[] = [];
      for (const one of calls) {
        void run(one).then(
          () => (ended += 1),
          (error: unknown) => failures.push(error),
        );
        await clock.advance(one.arrivesAfterMs);
      }
      // Twenty calls of at most a full bucket each, one after another, take twenty seconds.
      await clock.advance(LONGEST_MS);
      expect(failures).toEqual([]);
      expect(ended).toBe(calls.length);
      await clock.advance(1000);
      for (const entityId of ["e", "f"])
        for (const resource of ["r", "s", "t"])
          expect(await limiter.available(entityId, resource)).toEqual({ rps: CAPACITY });
    }),
    { numRuns: 40 },
  );
});
