import { channel, tracingChannel } from "node:diagnostics_channel";
import { Limit, RateLimiter, RateLimiterUnavailable, type Lease } from "zae-limiter";
import { CHANNELS, type AcquireMessage } from "zae-limiter/diagnostics";
import { MemoryRepository } from "zae-limiter/memory";
import { faultyRepository, ManualClock } from "zae-limiter/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HeardMessages, observedRepository } from "../../test/support/heard-messages.ts";

const CALL = { entityId: "key-1", resource: "gpt-4", consume: { rpm: 1, tpm: 100 } };
const EVENTS = ["start", "end", "asyncStart", "asyncEnd", "error"] as const;

let clock: ManualClock;
let repository: MemoryRepository;
let limiter: RateLimiter;
let heard: HeardMessages;

beforeEach(async () => {
  clock = new ManualClock();
  repository = new MemoryRepository({ clock, namespace: "tenant" });
  await repository.setSystemDefaults([Limit.perMinute("rpm", 10), Limit.perMinute("tpm", 1000)]);
  limiter = new RateLimiter({ repository });
  heard = new HeardMessages();
});

afterEach(() => {
  heard.stop();
  expect(tracingChannel(CHANNELS.acquire).hasSubscribers).toBe(false);
  expect(channel(CHANNELS.end).hasSubscribers).toBe(false);
});

describe("an acquire", () => {
  it("is one message through all events of the tracing channel", async () => {
    const events: [string, AcquireMessage, string | undefined][] = [];
    for (const event of EVENTS) {
      const name = `tracing:${CHANNELS.acquire}:${event}`;
      heard.each(name, (message) => {
        const acquire = message as AcquireMessage;
        events.push([event, acquire, acquire.outcome]);
      });
    }
    await limiter.acquire(CALL, () => {});
    expect(events.map(([event, , outcome]) => [event, outcome])).toEqual([
      ["start", undefined],
      ["end", undefined],
      ["asyncStart", "granted"],
      ["asyncEnd", "granted"],
    ]);
    expect(new Set(events.map(([, message]) => message)).size).toBe(1);
    expect(events[0]![1]).toMatchObject({
      namespace: "tenant",
      entityId: "key-1",
      resource: "gpt-4",
      consume: { rpm: 1, tpm: 100 },
      also: {},
      waitUpToMs: 0,
      waitedMs: 0,
      extending: undefined,
    });
  });

  it("that is refused has the refusal, and no error", async () => {
    const [messages, errors] = [heard.acquires(), heard.acquires("error")];
    const tooMuch = { ...CALL, consume: { tpm: 1001 } };
    await expect(limiter.acquire(tooMuch)).rejects.toThrow("can never fit");
    const verdict = await limiter.tryAcquire(tooMuch);
    expect(verdict.granted).toBe(false);
    expect(messages.map(({ outcome }) => outcome)).toEqual(["refused", "refused"]);
    expect(messages.map(({ refusal }) => refusal?.primaryViolation.limitName)).toEqual([
      "tpm",
      "tpm",
    ]);
    expect(errors).toEqual([]);
    expect(messages.every((message) => message.error === undefined)).toBe(true);
  });

  it("that throws has the error and no outcome; bad input is not published", async () => {
    const messages = heard.acquires();
    await expect(limiter.acquire({ ...CALL, consume: { unknown: 1 } })).rejects.toThrow("unknown");
    await expect(limiter.acquire({ ...CALL, entityId: "" })).rejects.toThrow("entityId");
    expect(messages).toMatchObject([{ error: { code: "ERR_LIMITER_VALIDATION" } }]);
    expect(messages[0]).not.toHaveProperty("outcome");
  });

  it("that is granted without the store has taken nothing", async () => {
    const [messages, ended] = [heard.acquires(), heard.ends()];
    const away = faultyRepository(repository, () => "error-before");
    const degrading = new RateLimiter({ repository: away, onUnavailable: "allow" });
    await degrading.acquire(CALL, async (lease) => {
      await lease.consume({ tpm: 50 });
      lease.settle({ tpm: 120 });
    });
    expect(messages.map(({ outcome }) => outcome)).toEqual(["degraded", "degraded"]);
    expect(ended).toMatchObject([{ how: "commit", taken: {}, settled: {}, also: {} }]);
    expect(Object.keys({ ...ended[0]!.taken, ...ended[0]!.settled })).toEqual([]);
  });

  it("says how long it waited, by the repository's clock", async () => {
    const messages = heard.acquires();
    await limiter.acquire({ ...CALL, consume: { rpm: 10 } }, () => {});
    const waiting = limiter.acquire({ ...CALL, waitUpToMs: 60_000 }, () => {});
    await clock.advance(6_000);
    await waiting;
    expect(messages.map(({ waitedMs }) => waitedMs)).toEqual([0, 6_000]);
  });

  it("keeps waiting calls in order of arrival", async () => {
    heard.acquires();
    const order: number[] = [];
    const calls = [1, 2, 3].map((call) =>
      limiter.acquire({ ...CALL, consume: { rpm: 10 }, waitUpToMs: 300_000 }, () => {
        order.push(call);
      }),
    );
    for (let minute = 0; minute < 3; minute += 1) await clock.advance(60_000);
    await Promise.all(calls);
    expect(order).toEqual([1, 2, 3]);
  });

  it("publishes further resources, and what `consume` takes for an open lease", async () => {
    const [messages, ended] = [heard.acquires(), heard.ends()];
    await limiter.acquire({ ...CALL, also: { search: { rpm: 2 } } }, async (lease) => {
      await lease.consume({ tpm: 50 });
      await lease.resourceLease("search").consume({ rpm: 1 });
      await expect(lease.consume({ tpm: 5_000 })).rejects.toThrow("can never fit");
      lease.resourceLease("search").settle({ rpm: 1 });
    });
    const [acquire, ...further] = messages;
    expect(acquire).toMatchObject({ outcome: "granted", also: { search: { rpm: 2 } } });
    expect(further.map(({ resource, consume, outcome }) => [resource, consume, outcome])).toEqual([
      ["gpt-4", { tpm: 50 }, "granted"],
      ["search", { rpm: 1 }, "granted"],
      ["gpt-4", { tpm: 5_000 }, "refused"],
    ]);
    expect(further.every(({ extending }) => extending === acquire)).toBe(true);
    expect(ended).toMatchObject([
      {
        taken: { rpm: 1, tpm: 150 },
        settled: { rpm: 1, tpm: 150 },
        also: { search: { taken: { rpm: 3 }, settled: { rpm: 1 } } },
        acquire,
      },
    ]);
  });

  it("is not broken by a subscriber that throws; Node reports the error", async () => {
    const others = process.listeners("uncaughtException");
    const reported: unknown[] = [];
    process.removeAllListeners("uncaughtException");
    process.on("uncaughtException", (error) => reported.push(error));
    const bug = new Error("a bug of the subscriber");
    const throwing = (): void => {
      throw bug;
    };
    heard.each(`tracing:${CHANNELS.acquire}:start`, throwing);
    heard.each(CHANNELS.end, throwing);
    try {
      expect(await limiter.acquire(CALL, () => "done")).toBe("done");
      await new Promise(setImmediate);
    } finally {
      process.removeAllListeners("uncaughtException");
      for (const other of others) process.on("uncaughtException", other);
    }
    expect(reported).toEqual([bug, bug]);
  });

  it("is not published for `check`, `available` and `timeUntilAvailable`", async () => {
    const messages = EVENTS.map((event) => heard.acquires(event));
    await limiter.check(CALL);
    await limiter.available("key-1", "gpt-4");
    await limiter.timeUntilAvailable("key-1", "gpt-4", { rpm: 1 });
    expect(messages.flat()).toEqual([]);
  });
});

describe("a lease publishes exactly one end", () => {
  const unavailable = expect.any(RateLimiterUnavailable) as unknown;
  const kept = { taken: { rpm: 1, tpm: 100 }, settled: { rpm: 1, tpm: 100 } };
  const lower = { taken: { rpm: 1, tpm: 100 }, settled: { rpm: 1, tpm: 40 } };
  const back = { taken: { rpm: 1, tpm: 100 }, settled: { rpm: 0, tpm: 0 } };

  it.each<[string, (on: RateLimiter) => Promise<unknown>, object]>([
    ["commit", async (on) => (await on.acquire(CALL)).commit(), { how: "commit", ...kept }],
    [
      "a second commit, which is refused",
      async (on) => {
        const lease = await on.acquire(CALL);
        lease.settle({ tpm: 40 });
        await Promise.allSettled([lease.commit(), lease.commit(), lease.rollback()]);
        await lease[Symbol.asyncDispose]();
      },
      { how: "commit", ...lower },
    ],
    ["rollback", async (on) => (await on.acquire(CALL)).rollback(), { how: "rollback", ...back }],
    [
      "the end of a block",
      async (on) => {
        await using lease = await on.acquire(CALL);
        lease.settle({ tpm: 40 });
      },
      { how: "rollback", ...back },
    ],
    [
      "work that returns",
      (on) => on.acquire(CALL, (lease) => lease.settle({ tpm: 40 })),
      { how: "commit", ...lower },
    ],
    [
      "work that throws",
      (on) => on.acquire(CALL, () => Promise.reject(new Error("work"))).catch(() => {}),
      { how: "rollback", ...back },
    ],
    [
      "work whose settlement is invalid",
      (on) => on.acquire(CALL, (lease) => lease.settle({ tpm: 40, no: 1 })).catch(() => {}),
      { how: "commit", ...lower },
    ],
    [
      "a take that is still under way",
      async (on) => {
        const lease = await on.acquire({ ...CALL, consume: { rpm: 1, tpm: 60 } });
        const taking = lease.consume({ tpm: 40 });
        await lease.commit();
        await taking;
      },
      { how: "commit", ...kept },
    ],
  ])("after %s", async (_, use, expected) => {
    const ended = heard.ends();
    await use(limiter);
    expect(ended).toHaveLength(1);
    expect(ended[0]).toEqual({
      namespace: "tenant",
      entityId: "key-1",
      resource: "gpt-4",
      also: {},
      heldMs: 0,
      error: undefined,
      acquire: expect.objectContaining({ outcome: "granted" }),
      ...expected,
    });
  });

  it.each<["commit" | "rollback", (lease: Lease) => Promise<void>]>([
    ["commit", (lease) => lease.commit()],
    ["rollback", (lease) => lease.rollback()],
  ])("after a %s that could not be written: nothing went back", async (how, end) => {
    const ended = heard.ends();
    const flaky = faultyRepository(repository, (operation) =>
      operation === "settle" || operation === "giveBack" ? "error-before" : undefined,
    );
    const lease = await new RateLimiter({ repository: flaky }).acquire(CALL);
    lease.settle({ tpm: 40 });
    await expect(end(lease)).rejects.toThrow(RateLimiterUnavailable);
    expect(ended).toMatchObject([{ how, ...kept, error: unavailable }]);
  });

  it("after a wait that was aborted when it had already been granted", async () => {
    const [messages, ended] = [heard.acquires(), heard.ends()];
    const abort = new AbortController();
    const slow = observedRepository(repository, (property) => {
      if (property === "giveBack") expect(abort.signal.aborted).toBe(true);
      if (property === "consume") queueMicrotask(() => abort.abort(new Error("gone")));
    });
    const waiting = new RateLimiter({ repository: slow }).acquire({
      ...CALL,
      waitUpToMs: 1000,
      signal: abort.signal,
    });
    await expect(waiting).rejects.toThrow("gone");
    expect(ended).toMatchObject([{ how: "rollback", ...back, heldMs: 0 }]);
    expect(messages).toEqual([ended[0]!.acquire]);
    expect(messages[0]).not.toHaveProperty("outcome");
    expect(await limiter.available("key-1", "gpt-4")).toEqual({ rpm: 10, tpm: 1000 });
  });

  it("with the time that it was open, and with amounts that are only counted", async () => {
    await repository.setLimits("key-1", [Limit.perMinute("rpm", 10)], { inherit: false });
    const ended = heard.ends();
    const lease = await limiter.acquire(CALL);
    expect(lease.unlimited).toEqual(["tpm"]);
    await clock.advance(2_500);
    lease.settle({ tpm: 140 });
    await lease.commit();
    expect(ended).toMatchObject([
      { heldMs: 2_500, taken: { rpm: 1, tpm: 100 }, settled: { rpm: 1, tpm: 140 } },
    ]);
  });

  it("unless it was acquired before there was a subscriber", async () => {
    const lease = await limiter.acquire(CALL);
    const [messages, ended] = [heard.acquires(), heard.ends()];
    await lease.consume({ tpm: 10 });
    await lease.commit();
    expect([...messages, ...ended]).toEqual([]);
  });
});
