import {
  Limit,
  RateLimiter,
  RateLimitExceeded,
  type AcquireRequest,
  type Lease,
  type Repository,
} from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { ManualClock } from "zae-limiter/testing";
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
  return { clock, ended, call };
}

/** A scene in which outcomes of `consume` arrive late. */
function lateScene(): Promise<Scene> {
  return scene(
    (repository) =>
      new Proxy(repository, {
        get(target, property) {
          const member: unknown = Reflect.get(target, property, target);
          if (typeof member !== "function") return member;
          return async (...values: unknown[]) => {
            const answer: unknown = await Reflect.apply(member, target, values);
            if (property === "consume") await target.clock.sleep(100);
            return answer;
          };
        },
      }),
  );
}

describe("a call that may wait", () => {
  it("is refused at once if it can never fit, even behind others", async () => {
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
    // a sleeps once. b and c sleep once in the queue, are woken when the call ahead leaves, and
    // sleep once as head. a does not wake c.
    expect(clock.sleeps - before).toBe(5);
    await Promise.all(waiting);
  });
});

describe("a store that answers slowly", () => {
  it("refuses no call that fits, however many calls wait", async () => {
    const { clock, call, ended } = await lateScene();
    const names = Array.from({ length: 10 }, (_, number) => String(number));
    const calls = names.map((name) => call(name, 1, { waitUpToMs: 250 }));
    await clock.advance(2000);
    await Promise.all(calls);
    expect(ended.toSorted()).toEqual(names);
  });

  it("lets no small call overtake a large one that was refused", async () => {
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
});
