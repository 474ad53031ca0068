import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Limit, RateLimiter, type Repository } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { faultyRepository, ManualClock, type Fault } from "zae-limiter/testing";
import { forgetWarnings } from "../../http/identity/warn-once.ts";
import { Mirror, type UpstreamMirror } from "./upstream-mirror.ts";

/** A tenth of a minute's worth flows back in six seconds: 1000 tokens, 10 requests. */
const LIMITS = [Limit.perMinute("rpm", 100), Limit.perMinute("tpm", 10_000)];

let clock: ManualClock;
let repository: Repository;
let limiter: RateLimiter;
let faultOf: (operation: string) => Fault | undefined;
let operations: string[];

beforeEach(async () => {
  clock = new ManualClock();
  operations = [];
  faultOf = () => undefined;
  const inner = new MemoryRepository({ clock });
  await inner.setLimits("account", LIMITS);
  repository = faultyRepository(inner, (operation) => {
    operations.push(operation);
    return faultOf(operation);
  });
  limiter = new RateLimiter({ repository });
});

afterEach(() => {
  forgetWarnings();
  vi.restoreAllMocks();
});

function mirrorOf(options: Partial<UpstreamMirror> = {}): Mirror {
  return new Mirror(limiter, { entityId: "account", ...options }, (model) => model);
}

function left(resource = "gpt-5"): Promise<Record<string, number>> {
  return limiter.available("account", resource);
}

function openai(tokens: number | string, requests: number | string = 100): Record<string, string> {
  return {
    "x-ratelimit-limit-requests": "100",
    "x-ratelimit-remaining-requests": String(requests),
    "x-ratelimit-limit-tokens": "10000",
    "x-ratelimit-remaining-tokens": String(tokens),
  };
}

const takes = (): number =>
  operations.filter((operation) => operation === "consume" || operation === "charge").length;
const reads = (): number => operations.filter((operation) => operation === "read").length;

describe("an answer that is no 429", () => {
  it("charges what the account holds more than its provider says is left", async () => {
    await mirrorOf().saw(openai(4000, 90), 200, "gpt-5");
    expect(await left()).toEqual({ rpm: 90, tpm: 4000 });
  });

  it("credits nothing if more is left than the account holds", async () => {
    await limiter.charge({
      entityId: "account",
      resource: "gpt-5",
      amounts: { rpm: 90, tpm: 9000 },
    });
    await mirrorOf().saw(openai(9000, 99), 200, "gpt-5");
    expect(await left()).toEqual({ rpm: 10, tpm: 1000 });
    expect(takes()).toBe(1);
  });

  it("charges once if ten answers at a time say the same, and if ten say it one by one", async () => {
    const mirror = mirrorOf();
    const answers = Array.from({ length: 10 }, () => mirror.saw(openai(4000), 200, "gpt-5"));
    await Promise.all(answers);
    expect([reads(), takes()]).toEqual([1, 1]);
    for (let count = 0; count < 10; count += 1) await mirror.saw(openai(4000), 200, "gpt-5");
    expect([reads(), takes()]).toEqual([1, 1]);
    expect(await left()).toEqual({ rpm: 100, tpm: 4000 });
  });

  it("is compared at most once a second, by all clients of a limiter together", async () => {
    await mirrorOf().saw(openai(9000), 200, "gpt-5");
    await clock.advance(999);
    await mirrorOf().saw(openai(2000), 200, "gpt-5");
    expect(reads()).toBe(1);
    await clock.advance(1);
    await mirrorOf().saw(openai(2000), 200, "gpt-5");
    expect(reads()).toBe(2);
    expect((await left())["tpm"]).toBe(2000);
  });

  it("is compared for each resource on its own", async () => {
    const mirror = mirrorOf();
    await mirror.saw(openai(4000), 200, "gpt-5");
    await mirror.saw(openai(3000), 200, "gpt-5-mini");
    expect((await left("gpt-5"))["tpm"]).toBe(4000);
    expect((await left("gpt-5-mini"))["tpm"]).toBe(3000);
  });

  it("is compared again after the clock was set back", async () => {
    const mirror = mirrorOf();
    await mirror.saw(openai(9000), 200, "gpt-5");
    clock.set(clock.now() - 3_600_000);
    await mirror.saw(openai(2000), 200, "gpt-5");
    expect((await left())["tpm"]).toBe(2000);
  });

  it.each([
    ["below 1 % of the limit is ignored", 9901, 10_000],
    ["of 1 % is charged", 9900, 9900],
  ])("a difference %s: Anthropic rounds", async (_, remaining, expected) => {
    await mirrorOf().saw(openai(remaining), 200, "gpt-5");
    expect((await left())["tpm"]).toBe(expected);
  });

  it.each(["-1", "abc", "", "5, 5"])("a remaining of %j charges nothing", async (remaining) => {
    await mirrorOf().saw(openai(remaining, remaining), 200, "gpt-5");
    expect(await left()).toEqual({ rpm: 100, tpm: 10_000 });
  });

  it("a remaining of 0 is believed beside a limit, and not without one", async () => {
    await mirrorOf().saw({ "x-ratelimit-remaining-tokens": "0" }, 200, "gpt-5");
    expect((await left())["tpm"]).toBe(10_000);
    await clock.advance(1000);
    await mirrorOf().saw({ "x-ratelimit-remaining-tokens": "500" }, 200, "gpt-5");
    expect((await left())["tpm"]).toBe(500);
    await clock.advance(1000);
    await mirrorOf().saw(openai(0), 200, "gpt-5");
    expect((await left())["tpm"]).toBe(0);
  });

  it("is not even read for if it tells nothing", async () => {
    await mirrorOf().saw({ "content-type": "application/json" }, 200, "gpt-5");
    await mirrorOf().saw(new Headers(), 500, "gpt-5");
    expect(operations).toEqual([]);
  });

  it("changes no stored limit", async () => {
    const headers = { ...openai(4000), "x-ratelimit-limit-tokens": "5000" };
    await mirrorOf().saw(headers, 200, "gpt-5");
    expect(await repository.getLimits("account")).toEqual(LIMITS);
  });
});

describe("a 429", () => {
  it("pauses the limit that is exhausted, until retry-after is covered by debt", async () => {
    const headers = { ...openai(0, 80), "retry-after": "6" };
    await mirrorOf().saw(headers, 429, "gpt-5");
    expect(await left()).toEqual({ rpm: 80, tpm: -1000 });
    expect(await wait({ tpm: 1 })).toBeGreaterThanOrEqual(6);
    await clock.advance(6006);
    expect(await wait({ tpm: 1 })).toBe(0);
  });

  it("pauses all mirrored limits, and no other, if none is exhausted", async () => {
    await repository.setLimits("account", [...LIMITS, Limit.perDay("tpd", 100)]);
    await mirrorOf().saw({ "retry-after-ms": "6000" }, 429, "gpt-5");
    expect(await left()).toEqual({ rpm: -10, tpm: -1000, tpd: 100 });
  });

  it("pauses all mirrored limits if what is exhausted is none of the account's", async () => {
    const headers = {
      "anthropic-ratelimit-input-tokens-remaining": "0",
      "retry-after": "6",
    };
    await mirrorOf().saw(headers, 429, "gpt-5");
    expect(await left()).toEqual({ rpm: -10, tpm: -1000 });
  });

  it("believes a 0 without a limit", async () => {
    const headers = { "x-ratelimit-remaining-tokens": "0", "retry-after": "6" };
    await mirrorOf().saw(headers, 429, "gpt-5");
    expect(await left()).toEqual({ rpm: 100, tpm: -1000 });
  });

  it.each([
    [undefined, -10_000],
    [12_000, -2000],
    [0, 0],
  ])("pauses for at most maxPauseMs: %j", async (maxPauseMs, tpm) => {
    const headers = { ...openai(0), "retry-after": "86400" };
    await mirrorOf(maxPauseMs === undefined ? {} : { maxPauseMs }).saw(headers, 429, "gpt-5");
    expect((await left())["tpm"]).toBe(tpm);
  });

  it.each([
    ["says neither how long nor what", {}, { rpm: -2, tpm: -167 }],
    ["says less", { ...openai(0), "retry-after-ms": "12" }, { rpm: 100, tpm: -167 }],
    [
      "is filled later",
      { ...openai(0), "x-ratelimit-reset-tokens": "1m0s" },
      { rpm: 100, tpm: -167 },
    ],
  ])("pauses for a second if it %s", async (_, headers, expected) => {
    await mirrorOf().saw(headers, 429, "gpt-5");
    expect(await left()).toEqual(expected);
  });

  it("holds back a limit of few tokens for as long as it says", async () => {
    await repository.setLimits("account", [Limit.perMinute("rpm", 3)]);
    for (const afterMs of [0, 1, 5_000, 19_999]) {
      const resource = `after-${afterMs}`;
      await limiter.charge({ entityId: "account", resource, amounts: { rpm: 3 } });
      await clock.advance(afterMs);
      await mirrorOf().saw({ "retry-after": "20" }, 429, resource);
      expect(
        await limiter.timeUntilAvailable("account", resource, { rpm: 1 }),
      ).toBeGreaterThanOrEqual(20);
    }
  });

  it("never charges twice if it is replayed, at once or while the pause lasts", async () => {
    const mirror = mirrorOf();
    const headers = { ...openai(0), "retry-after": "6" };
    await Promise.all(Array.from({ length: 10 }, () => mirror.saw(headers, 429, "gpt-5")));
    expect(takes()).toBe(2);
    expect((await left())["tpm"]).toBe(-1000);
    await clock.advance(3000);
    await mirror.saw(headers, 429, "gpt-5");
    await mirrorOf().saw(headers, 429, "gpt-5");
    expect((await left())["tpm"]).toBe(-500);
    expect(takes()).toBe(2);
  });

  it("charges the rest if it asks for a longer pause than the one before", async () => {
    const mirror = mirrorOf();
    await mirror.saw({ ...openai(0), "retry-after": "6" }, 429, "gpt-5");
    await clock.advance(3000);
    await mirror.saw({ ...openai(0), "retry-after": "12" }, 429, "gpt-5");
    expect((await left())["tpm"]).toBe(-2000);
  });

  it("pauses again when the pause is over", async () => {
    const mirror = mirrorOf();
    const headers = { ...openai(0), "retry-after": "6" };
    await mirror.saw(headers, 429, "gpt-5");
    await clock.advance(12_000);
    expect((await left())["tpm"]).toBe(1000);
    await mirror.saw(headers, 429, "gpt-5");
    expect((await left())["tpm"]).toBe(-1000);
  });

  it("pauses another limit while the first one pauses", async () => {
    const mirror = mirrorOf();
    await mirror.saw({ ...openai(0), "retry-after": "6" }, 429, "gpt-5");
    await mirror.saw({ ...openai(5000, 0), "retry-after": "6" }, 429, "gpt-5");
    expect(await left()).toEqual({ rpm: -10, tpm: -1000 });
  });

  it("is never left out because of an answer before", async () => {
    const mirror = mirrorOf();
    const before = mirror.saw(openai(9000), 200, "gpt-5");
    await mirror.saw({ ...openai(0), "retry-after": "6" }, 429, "gpt-5");
    await before;
    expect((await left())["tpm"]).toBe(-1000);
  });

  it("is written when saw resolves, one at a time", async () => {
    let running = 0;
    let most = 0;
    const inner = repository;
    const slow = new Proxy(inner, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name, target);
        if (name !== "read" && name !== "charge")
          return typeof member === "function" ? member.bind(target) : member;
        return async (request: unknown) => {
          most = Math.max(most, (running += 1));
          await new Promise((resolve) => setImmediate(resolve));
          running -= 1;
          return Reflect.apply(member as () => unknown, target, [request]);
        };
      },
    });
    limiter = new RateLimiter({ repository: slow });
    const mirror = mirrorOf();
    const headers = { ...openai(0), "retry-after": "6" };
    await Promise.all(
      Array.from({ length: 5 }, async () => {
        await mirror.saw(headers, 429, "gpt-5");
        expect(
          (
            await inner.read({
              entityId: "account",
              resources: [{ resource: "gpt-5", amounts: {} }],
              override: undefined,
            })
          )[1]!.available,
        ).toBe(-1000);
      }),
    );
    expect(most).toBe(1);
  });
});

describe("the account", () => {
  it("slows its children down, in whatever process they run", async () => {
    await repository.createEntity("account");
    await repository.createEntity("key-1", { parentId: "account", cascade: true });
    await repository.setLimits("key-1", LIMITS);
    await mirrorOf().saw({ ...openai(0), "retry-after": "6" }, 429, "gpt-5");
    const other = new RateLimiter({ repository });
    const request = { entityId: "key-1", resource: "gpt-5", consume: { rpm: 1, tpm: 10 } };
    const verdict = await other.tryAcquire(request);
    expect(verdict.granted).toBe(false);
    expect(await limiter.available("key-1", "gpt-5")).toEqual({ rpm: 100, tpm: -1000 });
  });

  it("is compared by its own balance, not by that of its parent", async () => {
    await repository.createEntity("company");
    await repository.setLimits("company", [Limit.perMinute("tpm", 8000)]);
    await repository.createEntity("account", { parentId: "company", cascade: true });
    await mirrorOf().saw(openai(9000), 200, "gpt-5");
    const { statuses } = await limiter.check({
      entityId: "account",
      resource: "gpt-5",
      consume: {},
    });
    const own = statuses.find(
      (status) => status.entityId === "account" && status.limitName === "tpm",
    );
    expect(own?.available).toBe(9000);
  });

  it("has names of its own for its limits, and a resource of its own", async () => {
    await repository.setLimits("account", [
      Limit.perMinute("calls", 100),
      Limit.perMinute("in", 1000),
    ]);
    const mirror = mirrorOf({
      resource: () => "all-models",
      limits: { requests: "calls", inputTokens: "in" },
    });
    await mirror.saw(
      {
        "anthropic-ratelimit-requests-remaining": "60",
        "anthropic-ratelimit-input-tokens-remaining": "700",
        "anthropic-ratelimit-output-tokens-remaining": "1",
      },
      200,
      "claude",
    );
    expect(await left("all-models")).toEqual({ calls: 60, in: 700 });
  });

  it("is charged once for two kinds that share a limit, the larger difference", async () => {
    const mirror = mirrorOf({ limits: { inputTokens: "tpm", outputTokens: "tpm" } });
    const headers = {
      "anthropic-ratelimit-input-tokens-remaining": "7000",
      "anthropic-ratelimit-output-tokens-remaining": "6000",
    };
    await mirror.saw(headers, 200, "claude");
    expect((await left("claude"))["tpm"]).toBe(6000);
  });

  it("need not have been created, and then has the limits of the system", async () => {
    await repository.setSystemDefaults([Limit.perMinute("tpm", 10_000)]);
    await mirrorOf({ entityId: "unheard-of" }).saw(openai(4000), 200, "gpt-5");
    expect(await limiter.available("unheard-of", "gpt-5")).toEqual({ tpm: 4000 });
  });

  it("may lack the limits that the provider tells: only onMirror hears of them", async () => {
    await repository.setLimits("account", [Limit.perMinute("images", 5)]);
    const seen = vi.fn<NonNullable<UpstreamMirror["onMirror"]>>();
    await mirrorOf({ onMirror: seen }).saw({ ...openai(0), "retry-after": "6" }, 429, "gpt-5");
    expect(await left()).toEqual({ images: 5 });
    expect(seen).toHaveBeenCalledExactlyOnceWith(
      {
        requests: { limit: 100, remaining: 100, fullAfterMs: undefined },
        tokens: { limit: 10_000, remaining: 0, fullAfterMs: undefined },
        retryAfterMs: 6000,
      },
      "gpt-5",
    );
  });
});

describe("onMirror", () => {
  it("hears every answer that tells something, also those that are not compared", async () => {
    const seen = vi.fn<NonNullable<UpstreamMirror["onMirror"]>>();
    const mirror = mirrorOf({ onMirror: seen });
    for (let count = 0; count < 3; count += 1) await mirror.saw(openai(4000), 200, "gpt-5");
    await mirror.saw({}, 200, "gpt-5");
    await mirror.saw({}, 429, "gpt-5");
    expect(seen).toHaveBeenCalledTimes(3);
  });

  it.each([
    [
      "throws",
      () => {
        throw new Error("my mistake");
      },
    ],
    [
      "rejects",
      async () => {
        throw new Error("my mistake");
      },
    ],
  ])("may fail: it %s, which is told once", async (_, onMirror) => {
    const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    const mirror = mirrorOf({ onMirror });
    await mirror.saw({ ...openai(0), "retry-after": "6" }, 429, "gpt-5");
    await mirror.saw(openai(0), 200, "gpt-5");
    expect((await left())["tpm"]).toBe(-1000);
    expect(warned).toHaveBeenCalledExactlyOnceWith(expect.stringContaining("my mistake"), {
      code: "WARN_LIMITER_MIRROR_FAILED",
    });
  });
});

describe("a failure", () => {
  it.each(["read", "charge"])(
    "of the store to %s is told once, and the next answer tries again",
    async (failing) => {
      const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
      faultOf = (operation) => (operation === failing ? "error-before" : undefined);
      const mirror = mirrorOf();
      const headers = { ...openai(0), "retry-after": "6" };
      await mirror.saw(headers, 429, "gpt-5");
      await mirror.saw(headers, 429, "gpt-5");
      expect(warned).toHaveBeenCalledOnce();
      faultOf = () => undefined;
      await mirror.saw(headers, 429, "gpt-5");
      expect((await left())["tpm"]).toBe(-1000);
    },
  );

  it.each([
    ["an account without limits", { entityId: "nobody" }],
    ["a resource that is no name", { resource: () => "#" }],
    [
      "a resource function that throws",
      {
        resource: () => {
          throw new Error("no");
        },
      },
    ],
  ])("because of %s breaks no call", async (_, options) => {
    const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    await mirrorOf(options).saw({ ...openai(0), "retry-after": "6" }, 429, "gpt-5");
    await mirrorOf(options).saw(openai(0), 200, "gpt-5");
    expect(warned).toHaveBeenCalledOnce();
  });

  it("because the limiter is closed breaks no call", async () => {
    const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    await limiter.close();
    await mirrorOf().saw({ ...openai(0), "retry-after": "6" }, 429, "gpt-5");
    expect(warned).toHaveBeenCalledOnce();
  });
});

it("remembers a bounded number of models", async () => {
  await repository.setSystemDefaults([Limit.perMinute("tpm", 10_000)]);
  const mirror = mirrorOf();
  const seeModels = async (): Promise<void> => {
    for (let model = 0; model < 1001; model += 1)
      await mirror.saw(openai(10_000), 200, `model-${model}`);
  };
  await seeModels();
  expect(reads()).toBe(1001);
  // The first one was forgotten, so it is compared again within the same second.
  await mirror.saw(openai(10_000), 200, "model-1000");
  expect(reads()).toBe(1001);
  await mirror.saw(openai(10_000), 200, "model-0");
  expect(reads()).toBe(1002);
});

it.each([
  ["no account", {}, "upstream.entityId"],
  ["an account that is no id", { entityId: "a#b" }, "upstream.entityId"],
  ["an unknown option", { entityId: "a", maxPause: 5 }, "maxPause"],
  ["no object", "account", "options"],
  ["an unknown kind", { entityId: "a", limits: { token: "tpm" } }, "token"],
  ["a limit that is no name", { entityId: "a", limits: { tokens: "1" } }, "upstream.limits.tokens"],
  ["limits that are no object", { entityId: "a", limits: "tpm" }, "options"],
  ["a resource that is no function", { entityId: "a", resource: "gpt" }, "upstream.resource"],
  ["an onMirror that is no function", { entityId: "a", onMirror: 1 }, "upstream.onMirror"],
  ["a negative pause", { entityId: "a", maxPauseMs: -1 }, "upstream.maxPauseMs"],
  ["an endless pause", { entityId: "a", maxPauseMs: Infinity }, "upstream.maxPauseMs"],
  ["a pause in words", { entityId: "a", maxPauseMs: "60" }, "upstream.maxPauseMs"],
])("refuses %s when the client is made", (_, options, field) => {
  expect(() => new Mirror(limiter, options as never, (model) => model)).toThrow(
    expect.objectContaining({ code: expect.stringMatching(/^ERR_LIMITER_/), field }),
  );
});

function wait(needed: Record<string, number>): Promise<number> {
  return limiter.timeUntilAvailable("account", "gpt-5", needed);
}
