import {
  Limit,
  RateLimiter,
  RateLimiterUnavailable,
  RateLimitExceeded,
  type AcquireRequest,
  type Lease,
  type Repository,
} from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { faultyRepository, ManualClock, type Fault } from "zae-limiter/testing";
import { describe, expect, it } from "vitest";

/** A manual clock that counts its sleepers. */
class CountingClock extends ManualClock {
  sleeps = 0;

  override sleep(ms: number, signal?: AbortSignal): Promise<void> {
    this.sleeps += 1;
    return super.sleep(ms, signal);
  }
}

interface Scene {
  readonly clock: CountingClock;
  readonly repository: MemoryRepository;
  readonly limiter: RateLimiter;
  /** Names in the order in which calls ended, refused ones with a "!". */
  readonly ended: string[];
  /** Takes from limit `rps` (10 per second) of entity e. */
  readonly call: (
    name: string,
    rps: number,
    request?: Partial<AcquireRequest>,
  ) => Promise<Lease | undefined>;
}

async function scene(wrap = (repository: Repository): Repository => repository): Promise<Scene> {
  const clock = new CountingClock();
  const repository = new MemoryRepository({ clock });
  await repository.setSystemDefaults([Limit.perSecond("rps", 10)]);
  const limiter = new RateLimiter({ repository: wrap(repository) });
  const ended: string[] = [];
  const call: Scene["call"] = async (name, rps, request = {}) => {
    try {
      const lease = await limiter.acquire({
        entityId: "e",
        resource: "r",
        consume: { rps },
        waitUpToMs: 60_000,
        ...request,
      });
      ended.push(name);
      return lease;
    } catch (error) {
      ended.push(`${name}!`);
      if (!(error instanceof RateLimitExceeded)) throw error;
      return undefined;
    }
  };
  return { clock, repository, limiter, ended, call };
}

/** Outcomes of `consume` arrive late: what happens meanwhile must not be missed. */
function withDelayedOutcomes(repository: Repository, delayMs: number): Repository {
  return new Proxy(repository, {
    get(target, property) {
      const member: unknown = Reflect.get(target, property, target);
      if (typeof member !== "function") return member;
      return async (...values: unknown[]) => {
        const answer: unknown = await Reflect.apply(member, target, values);
        if (property === "consume") await target.clock.sleep(delayMs);
        return answer;
      };
    },
  });
}

function lateScene(): Promise<Scene> {
  return scene((repository) => withDelayedOutcomes(repository, 100));
}

describe("the queue", () => {
  it("serves in order of arrival, small calls behind large ones", async () => {
    const { clock, ended, call } = await scene();
    const all = [call("a", 10), call("large", 10), call("small", 1), call("b", 2)];
    await clock.advance(999);
    expect(ended).toEqual(["a"]);
    await clock.advance(1);
    expect(ended).toEqual(["a", "large"]);
    await clock.advance(100);
    expect(ended).toEqual(["a", "large", "small"]);
    await clock.advance(199);
    expect(ended).toEqual(["a", "large", "small"]);
    await clock.advance(1);
    expect(ended).toEqual(["a", "large", "small", "b"]);
    await Promise.all(all);
  });

  it("does not delay a call that does not wait, or calls on other entities or resources", async () => {
    const { clock, ended, call } = await scene();
    await call("a", 9);
    const large = call("large", 10);
    await call("at once", 1, { waitUpToMs: 0 });
    await call("other entity", 1, { entityId: "f" });
    await call("other resource", 1, { resource: "s" });
    expect(ended).toEqual(["a", "at once", "other entity", "other resource"]);
    await clock.advance(1000);
    await large;
  });

  it("causes no deadlock when calls name the same resources in different orders", async () => {
    const { clock, ended, call } = await scene();
    await call("empty", 10, { also: { s: { rps: 10 } } });
    const first = call("first", 5, { resource: "r", also: { s: { rps: 5 } } });
    const second = call("second", 5, { resource: "s", also: { r: { rps: 5 } } });
    const third = call("third", 1, { resource: "r" });
    await clock.advance(500);
    expect(ended).toEqual(["empty", "first"]);
    await clock.advance(500);
    expect(ended).toEqual(["empty", "first", "second"]);
    await clock.advance(100);
    expect(ended).toEqual(["empty", "first", "second", "third"]);
    await Promise.all([first, second, third]);
  });
});

describe("how long", () => {
  it.each([1, 7, 29, 57, 69, 113, 577, 1009, 2007])(
    "a call whose exact wait is %i ms waits that long, and is refused at once with less",
    async (waitMs) => {
      const { clock, repository, ended, call } = await scene();
      await repository.setSystemDefaults([
        Limit.custom({ name: "rps", capacity: 3000, refillAmount: 1000, refillPeriodSeconds: 1 }),
      ]);
      await call("all", 3000);
      await call("less", waitMs, { waitUpToMs: waitMs - 1 });
      expect(ended).toEqual(["all", "less!"]);
      const before = clock.sleeps;
      const exact = call("exact", waitMs, { waitUpToMs: waitMs });
      await clock.advance(waitMs - 1);
      expect(ended).toEqual(["all", "less!"]);
      await clock.advance(1);
      expect(ended).toEqual(["all", "less!", "exact"]);
      expect(clock.sleeps - before).toBe(1);
      await exact;
    },
  );

  it("refuses at once what can never fit, however long the call may wait", async () => {
    const { ended, call } = await scene();
    await call("head", 10);
    await call("never", 11, { waitUpToMs: Infinity });
    const queued = call("queued", 10);
    await call("never behind", 11, { waitUpToMs: Infinity });
    expect(ended).toEqual(["head", "never!", "never behind!"]);
    queued.catch(() => {});
  });

  it("sleeps once for each wait, and never polls", async () => {
    const { clock, call, ended } = await scene();
    await call("all", 10);
    const before = clock.sleeps;
    const waiting = [call("a", 10), call("b", 10), call("c", 10)];
    await clock.advance(3000);
    expect(ended).toEqual(["all", "a", "b", "c"]);
    // a sleeps once; b and c sleep once in the queue, are woken when another leaves, and sleep once
    // as head; c is not woken by a.
    expect(clock.sleeps - before).toBe(5);
    await Promise.all(waiting);
  });

  it("a call behind a large one ends at its deadline, refused by the limit that the other waits for", async () => {
    const { clock, limiter, call, ended } = await scene();
    await call("all", 10);
    const large = call("large", 10);
    const small = limiter.tryAcquire({
      entityId: "e",
      resource: "r",
      consume: { rps: 1 },
      waitUpToMs: 500,
    });
    await clock.advance(500);
    const verdict = await small;
    expect(verdict.granted).toBe(false);
    if (!verdict.granted) {
      expect(verdict.refusal.primaryViolation.limitName).toBe("rps");
      expect(verdict.refusal.retryAfterSeconds).toBeGreaterThan(0);
    }
    await clock.advance(500);
    expect(ended).toEqual(["all", "large"]);
    await large;
  });
});

describe("a store that answers slowly", () => {
  it("refuses no call that fits, however many wait for the ones before them", async () => {
    const { clock, call, ended } = await lateScene();
    const names = Array.from({ length: 10 }, (_, number) => String(number));
    const calls = names.map((name) => call(name, 1, { waitUpToMs: 250 }));
    await clock.advance(2000);
    await Promise.all(calls);
    expect(ended.toSorted()).toEqual(names);
  });

  it("still lets no small call overtake a large one that was refused", async () => {
    const { clock, call, ended } = await lateScene();
    const calls = [call("most", 8), call("large", 10)];
    await clock.advance(250);
    calls.push(call("small", 1, { waitUpToMs: 100 }));
    await clock.advance(2000);
    await Promise.all(calls);
    expect(ended).toEqual(["most", "small!", "large"]);
  });
});

describe("tokens that go back", () => {
  it("wake the head at once, and those behind it as far as the tokens reach", async () => {
    const { clock, ended, call } = await scene();
    const lease = await call("all", 10);
    const waiting = [call("a", 5), call("b", 5), call("c", 10)];
    await clock.advance(0);
    await lease?.rollback();
    await clock.advance(0);
    expect(ended).toEqual(["all", "a", "b"]);
    await clock.advance(1000);
    expect(ended).toEqual(["all", "a", "b", "c"]);
    await Promise.all(waiting);
  });

  it("wake a call that waits for the same parent under another entity", async () => {
    const { clock, repository, ended, call } = await scene();
    await repository.createEntity("p");
    for (const id of ["k1", "k2"])
      await repository.createEntity(id, { parentId: "p", cascade: true });
    const lease = await call("k1", 10, { entityId: "k1" });
    const other = call("k2", 10, { entityId: "k2" });
    await clock.advance(0);
    lease?.release({ rps: 10 });
    await lease?.commit();
    await clock.advance(0);
    expect(ended).toEqual(["k1", "k2"]);
    await other;
  });

  it("are not missed while an earlier attempt is in progress", async () => {
    const { clock, ended, call } = await scene((repository) => withDelayedOutcomes(repository, 10));
    const taking = call("all", 10);
    await clock.advance(10);
    const lease = await taking;
    const waiting = call("a", 10);
    await clock.advance(5);
    await lease?.rollback();
    await clock.advance(15);
    expect(ended).toEqual(["all", "a"]);
    await waiting;
  });
});

describe("a call that is ended from outside", () => {
  it.each(["head", "queued"])(
    "rejects with the reason of its signal while it is %s, and lets the next one proceed",
    async (place) => {
      const { clock, ended, call } = await scene();
      await call("all", 10);
      const ahead = place === "queued" ? call("ahead", 10) : undefined;
      const abort = new AbortController();
      const aborted = call("aborted", 10, { signal: abort.signal }).catch(
        (error: unknown) => error,
      );
      const behind = call("behind", 1);
      await clock.advance(100);
      abort.abort("enough");
      expect(await aborted).toBe("enough");
      await clock.advance(900);
      expect(ended).toEqual(
        place === "queued" ? ["all", "aborted!", "ahead"] : ["all", "aborted!", "behind"],
      );
      await clock.advance(1000);
      await Promise.all([ahead, behind]);
    },
  );

  it("gives back what was granted while it was being aborted", async () => {
    const { clock, limiter, call } = await scene((repository) =>
      withDelayedOutcomes(repository, 10),
    );
    const abort = new AbortController();
    const aborted = call("aborted", 10, { signal: abort.signal }).catch((error: unknown) => error);
    await clock.advance(5);
    abort.abort("enough");
    await clock.advance(5);
    expect(await aborted).toBe("enough");
    expect(await limiter.available("e", "r")).toEqual({ rps: 10 });
  });

  it("is not affected by its signal after the grant, and does not start with an aborted one", async () => {
    const { limiter, call, ended } = await scene();
    const abort = new AbortController();
    const lease = await call("a", 1, { signal: abort.signal });
    abort.abort();
    await lease?.commit();
    expect(await limiter.available("e", "r")).toEqual({ rps: 9 });
    await expect(call("b", 1, { signal: AbortSignal.abort("before") })).rejects.toBe("before");
    await expect(call("c", 1, { signal: AbortSignal.abort("before"), waitUpToMs: 0 })).rejects.toBe(
      "before",
    );
    expect(ended).toEqual(["a", "b!", "c!"]);
  });

  it("rejects when the limiter closes: as head, in the queue and afterwards", async () => {
    const { clock, limiter, repository, call } = await scene();
    await call("all", 10);
    const waiting = [call("head", 10), call("queued", 1)].map((one) =>
      one.catch((error: unknown) => error),
    );
    await clock.advance(1);
    await limiter.close();
    for (const error of await Promise.all(waiting))
      expect(error).toBeInstanceOf(RateLimiterUnavailable);
    await expect(call("late", 1)).rejects.toThrow(RateLimiterUnavailable);
    expect(await repository.ping()).toBe(true);
  });
});

describe("an unavailable store", () => {
  it("lets a queued call through if it may, and fails it if it may not, as it does for a head", async () => {
    let fault: Fault | undefined;
    const { clock, call } = await scene((repository) => faultyRepository(repository, () => fault));
    await call("all", 10);
    const head = call("head", 10);
    await clock.advance(1);
    fault = "error-before";
    const allowed = await call("allowed", 10, { onUnavailable: "allow" });
    expect(allowed?.degraded).toBe(true);
    await expect(call("blocked", 10)).rejects.toThrow(
      expect.objectContaining({ entityId: "e", resource: "r" }),
    );
    fault = undefined;
    await clock.advance(1000);
    expect((await head)?.degraded).toBe(false);
  });
});
