/* Clients that do what the headers say, against a limiter that decides for real. */
import * as fc from "fast-check";
import { parseList, type Item } from "structured-headers";
import { expect, it } from "vitest";
import { anyCalendar } from "../../../test/support/any-limit.ts";
import { smallLimit, validLimit } from "../../../test/support/arbitraries.ts";
import { MAX_AMOUNT, type Amounts } from "../../core/amounts.ts";
import { Limit } from "../../core/limit.ts";
import { RateLimiter } from "../../limiter/rate-limiter.ts";
import { MemoryRepository } from "../../repository/memory/memory-repository.ts";
import { ManualClock } from "../../testing/fakes/manual-clock.ts";
import { rateLimitHeaders } from "./rate-limit-headers.ts";

interface Scene {
  readonly limits: readonly [Limit, Limit];
  readonly parent: Limit;
  /** What an earlier call cost in the end: more than the capacity is debt. */
  readonly spent: Amounts;
  readonly wanted: Amounts;
  /** So that tokens are in between. */
  readonly passedMs: number;
}

const count = fc.integer({ min: 1, max: 1000 });

const anyLimit = (name: string): fc.Arbitrary<Limit> =>
  fc.oneof(
    { weight: 3, arbitrary: smallLimit(name) },
    { weight: 1, arbitrary: validLimit(name) },
    { weight: 2, arbitrary: limitWithWindows(name) },
  );

function limitWithWindows(name: string): fc.Arbitrary<Limit> {
  const carry = fc.record({ debt: fc.boolean(), unused: count }, { requiredKeys: [] });
  return fc.oneof(
    fc
      .tuple(count, anyCalendar(), carry)
      .map(([capacity, resets, carried]) =>
        Limit.quota(name, capacity, resets, { carry: carried }),
      ),
    fc.tuple(count, count).map(([capacity, windowSeconds]) => {
      return Limit.session(name, capacity, { windowSeconds });
    }),
  );
}

const scene: fc.Arbitrary<Scene> = fc
  .tuple(anyLimit("rpm"), anyLimit("tpm"), anyLimit("rpm"))
  .chain(([rpm, tpm, parent]) =>
    fc.record({
      limits: fc.constant([rpm, tpm] as const),
      parent: fc.constant(parent),
      spent: amounts(rpm, tpm, 3),
      wanted: amounts(rpm, tpm, 1),
      passedMs: fc.integer({ min: 0, max: 5000 }),
    }),
  );

it("a client that waits Retry-After, or the t of the one limit that refused, is granted", async () => {
  let [refused, single] = [0, 0];
  await fc.assert(
    fc.asyncProperty(scene, async (given) => {
      const { clock, limiter, call } = await play(given);
      const result = await limiter.tryAcquire(call);
      if (result.granted) return;
      const fields = rateLimitHeaders(result.refusal.statuses, { nowMs: clock.now() });
      const { violations } = result.refusal;
      if (violations.some(({ retryAfterSeconds }) => retryAfterSeconds === Infinity)) {
        expect(fields["Retry-After"]).toBeUndefined();
        return;
      }
      if (result.refusal.retryAfterSeconds > EXACT_SECONDS) return;
      refused += 1;
      const seconds = Number(fields["Retry-After"]);
      if (violations.length === 1) {
        single += 1;
        const [violation] = violations as [(typeof violations)[0]];
        const name = violation.entityId === "key-1" ? violation.limitName : "parent-rpm";
        expect(balances(fields).get(name)!.t).toBe(seconds);
      }
      await clock.advance(seconds * 1000);
      expect((await limiter.tryAcquire(call)).granted).toBe(true);
    }),
    { numRuns: RUNS },
  );
  expect(refused).toBeGreaterThan(RUNS / 10);
  expect(single).toBeGreaterThan(RUNS / 20);
});

it("a client that waits t finds one more token", async () => {
  let waited = 0;
  await fc.assert(
    fc.asyncProperty(scene, async (given) => {
      const { clock, limiter, call } = await play({ ...given, spent: {} });
      const result = await limiter.tryAcquire(call);
      if (!result.granted) return;
      const statuses = await result.lease.statuses();
      for (const [name, { r, t }] of balances(rateLimitHeaders(statuses, { nowMs: clock.now() }))) {
        if (t === undefined || t > EXACT_SECONDS) continue;
        waited += 1;
        await clock.advance(t * 1000);
        const later = await limiter.acquire({ ...call, consume: {} });
        const found = (await later.statuses()).find(({ limitName }) => limitName === name);
        expect(found?.available).toBeGreaterThan(r);
      }
    }),
    { numRuns: RUNS },
  );
  expect(waited).toBeGreaterThan(RUNS / 4);
});

const RUNS = 150;

/** 30 000 years. What is much longer has no exact milliseconds. */
const EXACT_SECONDS = 1e12;

/** A limiter for a key and its parent, after the earlier call and the time since. */
async function play({ limits, parent, spent, wanted, passedMs }: Scene) {
  const clock = new ManualClock();
  const repository = new MemoryRepository({ clock });
  const limiter = new RateLimiter({ repository });
  await repository.createEntity("org-1");
  await repository.createEntity("key-1", { parentId: "org-1", cascade: true });
  await repository.setLimits("key-1", limits, { resource: "chat" });
  await repository.setLimits("org-1", [parent], { resource: "chat" });
  const call = { entityId: "key-1", resource: "chat", consume: wanted };
  const earlier = await limiter.acquire({ ...call, consume: {} });
  if (Object.keys(spent).length > 0) earlier.settle(spent);
  await earlier.commit();
  await clock.advance(passedMs);
  return { clock, limiter, call };
}

/** The balances of a `RateLimit` field, by the name of the policy. */
function balances(fields: Readonly<Record<string, string>>) {
  return new Map(
    (parseList(fields["RateLimit"]!) as Item[]).map(([name, parameters]) => [
      name as string,
      Object.fromEntries(parameters) as { readonly r: number; readonly t?: number },
    ]),
  );
}

function amounts(rpm: Limit, tpm: Limit, times: number): fc.Arbitrary<Amounts> {
  const upTo = ({ capacity }: Limit) =>
    fc.integer({ min: 0, max: Math.min(times * capacity + 1, MAX_AMOUNT) });
  return fc.record({ rpm: upTo(rpm), tpm: upTo(tpm) });
}
