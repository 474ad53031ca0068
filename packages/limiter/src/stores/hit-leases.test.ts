import { describe, expect, it } from "vitest";
import { RateLimiter } from "../limiter/rate-limiter.ts";
import { MemoryRepository } from "../repository/memory/index.ts";
import { faultyRepository, ManualClock } from "../testing/index.ts";
import { HitLeases } from "./hit-leases.ts";

const LIMITS = [
  { name: "requests", capacity: 5000, refillAmount: 1, refillPeriodSeconds: 86_400 },
] as const;

const WINDOW_MS = 60_000;

function hold(maxHeld?: number) {
  const clock = new ManualClock();
  const limiter = new RateLimiter({ repository: new MemoryRepository({ clock }) });
  const leases = new HitLeases(clock, WINDOW_MS, maxHeld);
  const take = async (key: string, count = 1): Promise<void> => {
    for (let taken = 0; taken < count; taken += 1)
      leases.hold(
        key,
        await limiter.acquire({
          entityId: key,
          resource: "web",
          consume: { requests: 1 },
          limits: LIMITS,
        }),
      );
  };
  const used = async (key: string): Promise<number> =>
    5000 - (await limiter.available(key, "web", { limits: LIMITS }))["requests"]!;
  return { clock, leases, take, used };
}

describe("leases that may be given back", () => {
  it("gives back one for each decrement of its key, and no more than there are", async () => {
    const { leases, take, used } = hold();
    await take("a", 3);
    await take("b");
    await leases.giveBack("a");
    expect(await used("a")).toBe(2);
    for (let times = 0; times < 5; times += 1) await leases.giveBack("a");
    expect(await used("a")).toBe(0);
    expect(await used("b")).toBe(1);
    await leases.giveBack("unknown");
  });

  it("the decrement of a refused request gives nothing back", async () => {
    const { leases, take, used } = hold();
    await take("a", 2);
    leases.noteRefusal("a", 1000);
    leases.noteRefusal("a", 1000);
    await leases.giveBack("a");
    await leases.giveBack("a");
    expect(await used("a")).toBe(2);
    await leases.giveBack("a");
    expect(await used("a")).toBe(1);
  });

  it("a refusal is forgotten with the window that began with the key's first request", async () => {
    const { clock, leases, take, used } = hold();
    await take("a");
    await clock.advance(WINDOW_MS - 1);
    leases.noteRefusal("a", 1);
    await leases.giveBack("a");
    expect(await used("a")).toBe(1);
    leases.noteRefusal("a", 1);
    await clock.advance(1);
    await leases.giveBack("a");
    expect(await used("a")).toBe(0);
  });

  it("the next window begins with the first request after it", async () => {
    const { clock, leases, take, used } = hold();
    await take("a");
    await clock.advance(WINDOW_MS + 1000);
    leases.noteRefusal("a", 1);
    await clock.advance(WINDOW_MS - 1);
    await leases.giveBack("a");
    expect(await used("a")).toBe(1);
    leases.noteRefusal("a", 1);
    await clock.advance(1);
    await leases.giveBack("a");
    expect(await used("a")).toBe(0);
  });

  it("a refusal is noted until its wait is over, if that is later", async () => {
    const { clock, leases, take, used } = hold();
    await take("a");
    leases.noteRefusal("a", WINDOW_MS + 1000);
    leases.noteRefusal("a", WINDOW_MS + 1000);
    await clock.advance(WINDOW_MS + 999);
    await leases.giveBack("a");
    expect(await used("a")).toBe(1);
    await clock.advance(1);
    await leases.giveBack("a");
    expect(await used("a")).toBe(0);
  });

  it("a lease that was held for ten minutes stays charged", async () => {
    const { clock, leases, take, used } = hold();
    await take("a");
    await clock.advance(10 * 60_000 - 1);
    await take("a");
    await clock.advance(1);
    await leases.giveBack("a");
    await leases.giveBack("a");
    expect(await used("a")).toBe(1);
  });

  it("holds a thousand of a key", async () => {
    const { leases, take, used } = hold();
    await take("a", 1001);
    for (let times = 0; times < 1001; times += 1) await leases.giveBack("a");
    expect(await used("a")).toBe(1);
  });

  it("holds a limited number in all, and drops the least recently used key first", async () => {
    const { leases, take, used } = hold(5);
    await take("quiet", 2);
    await take("busy", 2);
    await take("quiet");
    await take("new");
    await leases.giveBack("quiet");
    await leases.giveBack("busy");
    expect([await used("quiet"), await used("busy"), await used("new")]).toEqual([2, 2, 1]);
    for (let key = 0; key < 5; key += 1) leases.noteRefusal(`key-${key}`, 1000);
    await leases.giveBack("new");
    expect(await used("new")).toBe(1);
  });

  it("nothing is given back after clear", async () => {
    const { leases, take, used } = hold();
    await take("a");
    leases.clear();
    await leases.giveBack("a");
    expect(await used("a")).toBe(1);
  });

  it("a failure of the store does not reach the middleware, which would retry with another lease", async () => {
    const clock = new ManualClock();
    const repository = faultyRepository(new MemoryRepository({ clock }), (operation) =>
      operation === "giveBack" ? "error-before" : undefined,
    );
    const failures: unknown[] = [];
    const limiter = new RateLimiter({
      repository,
      onSettlementFailed: (error) => failures.push(error.code),
    });
    const leases = new HitLeases(clock, WINDOW_MS);
    leases.hold(
      "a",
      await limiter.acquire({
        entityId: "a",
        resource: "web",
        consume: { requests: 1 },
        limits: LIMITS,
      }),
    );
    await leases.giveBack("a");
    expect(failures).toEqual(["ERR_LIMITER_UNAVAILABLE"]);
  });
});
