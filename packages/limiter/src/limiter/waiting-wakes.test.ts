import { Limit, RateLimiter, type AcquireRequest, type Lease, type Repository } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { ManualClock } from "zae-limiter/testing";
import { describe, expect, it, vi } from "vitest";

interface Scene {
  readonly clock: ManualClock;
  readonly repository: MemoryRepository;
  readonly limiter: RateLimiter;
  /** The entities of granted calls, in order. */
  readonly granted: string[];
  /** The entities of all decisions since this was last called. */
  readonly decisions: () => readonly string[];
  /** Takes everything that an entity has. */
  readonly drain: (entityId: string, request?: Partial<AcquireRequest>) => Promise<Lease>;
  /** Waits up to an hour for everything that an entity has. */
  readonly wait: (entityId: string, request?: Partial<AcquireRequest>) => Promise<void>;
}

/** Ten a day, so that no call is granted just because time passes. */
const TEN = [Limit.perDay("rpd", 10), Limit.perDay("tpd", 1000)];
const HOURS = 24 * 3_600_000;

async function scene(delayMs = 0): Promise<Scene> {
  const clock = new ManualClock();
  const repository = new MemoryRepository({ clock, recordUsage: false });
  await repository.setSystemDefaults(TEN);
  const decided: string[] = [];
  const limiter = new RateLimiter({ repository: observe(repository, decided, delayMs) });
  const granted: string[] = [];
  return {
    clock,
    repository,
    limiter,
    granted,
    decisions: () => decided.splice(0),
    drain: (entityId, request) => limiter.acquire(call(entityId, request)),
    wait: async (entityId, request) => {
      await limiter.acquire(call(entityId, { waitUpToMs: 2 * HOURS, ...request }));
      granted.push(entityId);
    },
  };
}

function call(entityId: string, request: Partial<AcquireRequest> = {}): AcquireRequest {
  return { entityId, resource: "r", consume: { rpd: 10 }, ...request };
}

/** Lists the entity of every take and every read, and delivers the outcomes of takes late. */
function observe(repository: Repository, decided: string[], delayMs: number): Repository {
  return new Proxy(repository, {
    get(target, property) {
      const member: unknown = Reflect.get(target, property, target);
      if (typeof member !== "function") return member;
      return (...values: unknown[]): unknown => {
        if (property === "consume" || property === "read")
          decided.push((values[0] as { entityId: string }).entityId);
        const answer: unknown = Reflect.apply(member, target, values);
        return property === "consume" && delayMs > 0
          ? target.clock.sleep(delayMs).then(() => answer)
          : answer;
      };
    },
  });
}

/** Creates parents with their children. */
async function family(
  { repository }: Scene,
  parents: Readonly<Record<string, readonly string[]>>,
): Promise<void> {
  for (const [parentId, children] of Object.entries(parents)) {
    await repository.createEntity(parentId);
    for (const id of children) await repository.createEntity(id, { parentId, cascade: true });
  }
}

describe("a call that waits", () => {
  it("ends at its deadline, even if tokens go back during every attempt", async () => {
    const world = await scene(100);
    const { clock, limiter } = world;
    const taking = Array.from({ length: 30 }, () => world.drain("e", { consume: { tpd: 1 } }));
    await clock.advance(100);
    const leases = await Promise.all(taking);
    const begunMs = clock.now();
    let endedMs = Infinity;
    const request = call("e", { consume: { tpd: 1000 }, waitUpToMs: 1000 });
    const waiting = limiter.tryAcquire(request).then(({ granted }) => {
      endedMs = clock.now();
      return granted;
    });
    for (const lease of leases.slice(1)) {
      await clock.advance(50);
      await lease.rollback();
      await clock.advance(50);
    }
    expect(await waiting).toBe(false);
    expect(endedMs - begunMs).toBeLessThanOrEqual(1100);
  });
});

describe("tokens that go back wake", () => {
  it("only calls that they can help, however many entities wait", { timeout: 60_000 }, async () => {
    const world = await scene();
    const lease = await world.drain("mine");
    const others = Array.from({ length: 10_000 }, (_, index) => `other-${index}`);
    for (const entityId of others) {
      await world.drain(entityId);
      world.wait(entityId).catch(() => {});
    }
    const mine = world.wait("mine");
    await world.clock.advance(0);
    world.decisions();
    await lease.rollback();
    await mine;
    await world.clock.advance(0);
    expect(world.decisions()).toEqual(["mine"]);
    expect(world.granted).toEqual(["mine"]);
    await world.limiter.close();
  });

  it("no call on another resource, and none behind a head", async () => {
    const world = await scene();
    const lease = await world.drain("e");
    await world.drain("e", { resource: "s" });
    for (const resource of ["r", "r", "s"]) world.wait("e", { resource }).catch(() => {});
    await world.clock.advance(0);
    world.decisions();
    lease.release({ rpd: 1 });
    await lease.commit();
    await world.clock.advance(0);
    expect(world.decisions()).toEqual(["e"]);
    await world.limiter.close();
  });

  it("no call that is first on the resource, but waits behind another call on a further one", async () => {
    const world = await scene();
    const lease = await world.drain("e");
    await world.drain("e", { resource: "s" });
    world.wait("e", { resource: "s" }).catch(() => {});
    world.wait("e", { also: { s: { rpd: 1 } } }).catch(() => {});
    await world.clock.advance(0);
    world.decisions();
    const sleeping = vi.spyOn(world.clock, "sleep");
    await lease.rollback();
    await world.clock.advance(0);
    expect(world.decisions()).toEqual([]);
    expect(sleeping).not.toHaveBeenCalled();
    await world.limiter.close();
  });

  it("calls of other entities that the parent refused, and no others", async () => {
    const world = await scene();
    await family(world, { p: ["k1", "k2", "k3"], q: ["k4"] });
    await world.repository.setLimits("k3", [Limit.perDay("rpd", 1)]);
    await world.repository.setLimits("p", [Limit.perDay("rpd", 11)]);
    await world.drain("k3", { consume: { rpd: 1 } });
    const lease = await world.drain("k1");
    await world.drain("k4");
    world.wait("k3", { consume: { rpd: 1 }, waitUpToMs: Infinity }).catch(() => {});
    world.wait("k4").catch(() => {});
    const parents = [world.wait("k2"), world.wait("p")];
    await world.clock.advance(0);
    world.decisions();
    lease.release({ rpd: 10 });
    await lease.commit();
    await world.clock.advance(0);
    // k3 is short of its own limit and of its parent's, so the parent's tokens may help.
    expect(world.decisions().toSorted()).toEqual(["k2", "k3", "p"]);
    expect(world.granted).toHaveLength(1);
    await world.limiter.close();
    await Promise.allSettled(parents);
  });

  it("no call that only its own limits refused, when the parent gets tokens back", async () => {
    const world = await scene();
    await family(world, { p: ["k1", "k2"] });
    await world.repository.setLimits("p", [Limit.perDay("rpd", 1000)]);
    const lease = await world.drain("k1");
    await world.drain("k2");
    world.wait("k2").catch(() => {});
    await world.clock.advance(0);
    world.decisions();
    await lease.rollback();
    await world.clock.advance(0);
    expect(world.decisions()).toEqual([]);
    await world.limiter.close();
  });

  it("no call that the parent refused before, but its own limits refuse now", async () => {
    const world = await scene();
    await family(world, { p: ["k1", "k2"] });
    await world.repository.setLimits("p", [Limit.perHour("rpd", 10)]);
    await world.repository.setLimits("k2", [Limit.perDay("rpd", 10)]);
    const lease = await world.drain("k1");
    world.wait("k2").catch(() => {});
    await world.clock.advance(1);
    await world.repository.deleteEntity("k2");
    await world.repository.createEntity("k2");
    await world.drain("k2");
    await world.clock.advance(3_600_000);
    expect(world.granted).toEqual([]);
    world.decisions();
    await lease.rollback();
    await world.clock.advance(0);
    expect(world.decisions()).toEqual([]);
    await world.limiter.close();
  });

  it("no call when nothing went back: more was charged, nothing was taken, or the lease is degraded", async () => {
    const world = await scene();
    const lease = await world.drain("e", { consume: { rpd: 9, tpd: 5 } });
    const empty = await world.drain("e", { consume: {} });
    const free = await world.drain("e", { consume: { rpd: 0 } });
    const equal = await world.drain("e", { consume: { tpd: 7 } });
    const mixed = await world.drain("e", { consume: { tpd: 7 } });
    await world.drain("e", { consume: { rpd: 1 } });
    world.wait("e").catch(() => {});
    await world.clock.advance(0);
    world.decisions();
    lease.adjust({ rpd: 1 });
    lease.settle({ tpd: 6 });
    await lease.commit();
    await empty.rollback();
    await free.rollback();
    equal.settle({ tpd: 7 });
    await equal.commit();
    await world.clock.advance(0);
    expect(world.decisions()).toEqual([]);
    mixed.adjust({ rpd: 1, tpd: -1 });
    await mixed.commit();
    await world.clock.advance(0);
    expect(world.decisions()).toEqual(["e"]);
    await world.limiter.close();
  });

  it("no call of a parent that lacks the limit", async () => {
    const world = await scene();
    await family(world, { p: ["k1", "k2"] });
    await world.repository.setLimits("p", [Limit.perDay("rpd", 10)], { inherit: false });
    const lease = await world.drain("k1", { consume: { rpd: 10, tpd: 10 } });
    world.wait("k2").catch(() => {});
    await world.clock.advance(0);
    world.decisions();
    lease.release({ tpd: 10 });
    await lease.commit();
    await world.clock.advance(0);
    expect(world.decisions()).toEqual([]);
    await world.limiter.close();
  });
});

describe("tokens that go back during an attempt", () => {
  it("are not missed if they went to the parent, which only the result names", async () => {
    const world = await scene(10);
    await family(world, { p: ["k1", "k2"] });
    const draining = world.drain("k1");
    await world.clock.advance(10);
    const lease = await draining;
    const waiting = world.wait("k2");
    await world.clock.advance(5);
    await lease.rollback();
    await world.clock.advance(15);
    expect(world.granted).toEqual(["k2"]);
    await waiting;
  });

  it("cause no further attempt if they went to others", async () => {
    const world = await scene(10);
    await family(world, { p: ["k1"], q: ["k2"] });
    const draining = [world.drain("k1"), world.drain("k2"), world.drain("k2x")];
    await world.clock.advance(10);
    const [lease] = await Promise.all(draining);
    world.decisions();
    world.wait("k2").catch(() => {});
    await world.clock.advance(5);
    await lease?.rollback();
    await world.clock.advance(50);
    expect(world.decisions()).toEqual(["k2"]);
    await world.limiter.close();
  });
});
