import { beforeEach, describe, expect, it, vi } from "vitest";
import { Limit, RateLimiter, type Lease } from "zae-limiter";
import { LIMITS, MirroredAccount, openai } from "../../../test/llm/mirror/mirrored-account.ts";
import { Mirror, type UpstreamMirror } from "./upstream-mirror.ts";

let account: MirroredAccount;

beforeEach(async () => {
  account = await MirroredAccount.create();
});

describe("a 429", () => {
  it("pauses the limit that is exhausted, until retry-after is covered by debt", async () => {
    const headers = { ...openai(0, 80), "retry-after": "6" };
    await account.mirror().observeProviderLimits(headers, 429, "gpt-5");
    expect(await account.left()).toEqual({ rpm: 80, tpm: -1000 });
    expect(
      await account.limiter.timeUntilAvailable("account", "gpt-5", { tpm: 1 }),
    ).toBeGreaterThanOrEqual(6);
    await account.clock.advance(6006);
    expect(await account.limiter.timeUntilAvailable("account", "gpt-5", { tpm: 1 })).toBe(0);
  });

  it("pauses all mirrored limits, and no other, if none is exhausted", async () => {
    await account.repository.setLimits("account", [...LIMITS, Limit.perDay("tpd", 100)]);
    await account.mirror().observeProviderLimits({ "retry-after-ms": "6000" }, 429, "gpt-5");
    expect(await account.left()).toEqual({ rpm: -10, tpm: -1000, tpd: 100 });
  });

  it("takes nothing of a quota or session, whatever is reported", async () => {
    const quota = Limit.quota("tpm", 1000, { every: "day", zone: "UTC" });
    const session = Limit.session("rpm", 100, { windowSeconds: 3600 });
    await account.repository.setLimits("account", [quota, session]);
    await account
      .mirror()
      .observeProviderLimits({ ...openai(0, 80), "retry-after": "6" }, 429, "gpt-5");
    await account.mirror().observeProviderLimits(openai(10, 10), 200, "gpt-5");
    expect(await account.left()).toEqual({ rpm: 100, tpm: 1000 });
  });

  it("pauses all mirrored limits if the exhausted limit is not one of the account's", async () => {
    const headers = {
      "anthropic-ratelimit-input-tokens-remaining": "0",
      "retry-after": "6",
    };
    await account.mirror().observeProviderLimits(headers, 429, "gpt-5");
    expect(await account.left()).toEqual({ rpm: -10, tpm: -1000 });
  });

  it("believes a 0 without a limit", async () => {
    const headers = { "x-ratelimit-remaining-tokens": "0", "retry-after": "6" };
    await account.mirror().observeProviderLimits(headers, 429, "gpt-5");
    expect(await account.left()).toEqual({ rpm: 100, tpm: -1000 });
  });

  it.each([
    [undefined, -10_000],
    [12_000, -2000],
    [0, 0],
  ])("pauses for at most maxPauseMs: %j", async (maxPauseMs, tpm) => {
    const headers = { ...openai(0), "retry-after": "86400" };
    await account
      .mirror(maxPauseMs === undefined ? {} : { maxPauseMs })
      .observeProviderLimits(headers, 429, "gpt-5");
    expect((await account.left())["tpm"]).toBe(tpm);
  });

  it.each([
    ["reports neither how long nor what", {}, { rpm: -2, tpm: -167 }],
    ["asks for less", { ...openai(0), "retry-after-ms": "12" }, { rpm: 100, tpm: -167 }],
    [
      "is filled later",
      { ...openai(0), "x-ratelimit-reset-tokens": "1m0s" },
      { rpm: 100, tpm: -167 },
    ],
  ])("pauses for a second if it %s", async (_, headers, expected) => {
    await account.mirror().observeProviderLimits(headers, 429, "gpt-5");
    expect(await account.left()).toEqual(expected);
  });

  it("holds back a limit of few tokens for as long as it asks", async () => {
    await account.repository.setLimits("account", [Limit.perMinute("rpm", 3)]);
    for (const afterMs of [0, 1, 5_000, 19_999]) {
      const resource = `after-${afterMs}`;
      await account.limiter.charge({ entityId: "account", resource, amounts: { rpm: 3 } });
      await account.clock.advance(afterMs);
      await account.mirror().observeProviderLimits({ "retry-after": "20" }, 429, resource);
      expect(
        await account.limiter.timeUntilAvailable("account", resource, { rpm: 1 }),
      ).toBeGreaterThanOrEqual(20);
    }
  });

  it("never charges twice if it is replayed, at once or while the pause lasts", async () => {
    const mirror = account.mirror();
    const headers = { ...openai(0), "retry-after": "6" };
    await Promise.all(
      Array.from({ length: 10 }, () => mirror.observeProviderLimits(headers, 429, "gpt-5")),
    );
    expect(account.takes).toBe(2);
    expect((await account.left())["tpm"]).toBe(-1000);
    await account.clock.advance(3000);
    await mirror.observeProviderLimits(headers, 429, "gpt-5");
    await account.mirror().observeProviderLimits(headers, 429, "gpt-5");
    expect((await account.left())["tpm"]).toBe(-500);
    expect(account.takes).toBe(2);
  });

  it("pauses for as long as it asks although calls in flight give back", async () => {
    const mirror = account.mirror();
    const headers = { ...openai(0), "retry-after": "6" };
    const called = { entityId: "account", resource: "gpt-5" };
    const reserved = { tpm: 2500 };
    const reserve = () => account.limiter.acquire({ ...called, consume: reserved });
    const leases = [await reserve(), await reserve(), await reserve()];
    const last = await reserve();
    for (const lease of leases) {
      await lease.rollback();
      await mirror.observeProviderLimits(headers, 429, "gpt-5", reserved);
      expect((await account.left())["tpm"]).toBe(-1000);
    }
    await account.clock.advance(3000);
    await last.rollback();
    await mirror.observeProviderLimits(headers, 429, "gpt-5", reserved);
    expect((await account.left())["tpm"]).toBe(-500);
    await account.limiter.charge({ ...called, amounts: { tpm: 300 } });
    await mirror.observeProviderLimits(headers, 429, "gpt-5", reserved);
    expect((await account.left())["tpm"]).toBe(-800);
  });

  it("takes no more again than its own call gave back: others take theirs", async () => {
    const mirror = account.mirror();
    const headers = { ...openai(0), "retry-after": "6" };
    await account.limiter.charge({
      entityId: "account",
      resource: "gpt-5",
      amounts: { tpm: 10_000 },
    });
    await mirror.observeProviderLimits(headers, 429, "gpt-5");
    await account.clock.advance(12_000);
    const reserved = { tpm: 400 };
    const called = { entityId: "account", resource: "gpt-5", consume: reserved };
    const leases = [await account.limiter.acquire(called), await account.limiter.acquire(called)];
    await mirror.observeProviderLimits(headers, 429, "gpt-5");
    expect((await account.left())["tpm"]).toBe(-1000);
    for (const lease of leases) await lease.rollback();
    await mirror.observeProviderLimits(headers, 429, "gpt-5", reserved);
    expect((await account.left())["tpm"]).toBe(-600);
    await mirror.observeProviderLimits(headers, 429, "gpt-5", reserved);
    expect((await account.left())["tpm"]).toBe(-1000);
  });

  it("charges the rest if it asks for a longer pause than the one before", async () => {
    const mirror = account.mirror();
    await mirror.observeProviderLimits({ ...openai(0), "retry-after": "6" }, 429, "gpt-5");
    await account.clock.advance(3000);
    await mirror.observeProviderLimits({ ...openai(0), "retry-after": "12" }, 429, "gpt-5");
    expect((await account.left())["tpm"]).toBe(-2000);
  });

  it("pauses another limit while the first one pauses", async () => {
    const mirror = account.mirror();
    await mirror.observeProviderLimits({ ...openai(0), "retry-after": "6" }, 429, "gpt-5");
    await mirror.observeProviderLimits({ ...openai(5000, 0), "retry-after": "6" }, 429, "gpt-5");
    expect(await account.left()).toEqual({ rpm: -10, tpm: -1000 });
  });

  it("is never left out because of an answer before", async () => {
    const mirror = account.mirror();
    const before = mirror.observeProviderLimits(openai(9000), 200, "gpt-5");
    await mirror.observeProviderLimits({ ...openai(0), "retry-after": "6" }, 429, "gpt-5");
    await before;
    expect((await account.left())["tpm"]).toBe(-1000);
  });

  it("is compared together with those that waited meanwhile, and takes what all gave back", async () => {
    const mirror = account.mirror();
    const reserved = { tpm: 500 };
    const request = { entityId: "account", resource: "gpt-5", consume: reserved };
    const reserve = () => account.limiter.acquire(request);
    const leases = await Promise.all(Array.from({ length: 20 }, reserve));
    const headers = { ...openai(0), "retry-after": "6" };
    const refuse = async (lease: Lease): Promise<void> => {
      await lease.rollback();
      await mirror.observeProviderLimits(headers, 429, "gpt-5", reserved);
    };
    const others: Promise<void>[] = [];
    account.findFault = (operation) => {
      // The first one has read the account, and begins its pause: the others give back now.
      if (operation === "charge" && others.length === 0) others.push(...leases.map(refuse));
      return undefined;
    };
    await refuse(leases.pop()!);
    await Promise.all(others);
    expect((await account.left())["tpm"]).toBe(-1000);
    expect(account.reads).toBe(3); // with the one of this test
  });

  it("is compared once for a crowd, by the strictest values", async () => {
    const mirror = account.mirror();
    const saw = (seconds: number, requests = 100): Promise<void> =>
      mirror.observeProviderLimits(
        { ...openai(0, requests), "retry-after": `${seconds}` },
        429,
        "gpt-5",
      );
    await Promise.all(Array.from({ length: 200 }, () => saw(6)));
    expect(account.reads).toBe(1);
    expect(await account.left()).toEqual({ rpm: 100, tpm: -1000 });
    await Promise.all([saw(6), saw(12), saw(6, 0), saw(6)]);
    expect(await account.left()).toEqual({ rpm: -20, tpm: -2000 });
  });
});

describe("the account", () => {
  it("slows its children down, in whatever process they run", async () => {
    await account.repository.createEntity("account");
    await account.repository.createEntity("key-1", { parentId: "account", cascade: true });
    await account.repository.setLimits("key-1", LIMITS);
    await account
      .mirror()
      .observeProviderLimits({ ...openai(0), "retry-after": "6" }, 429, "gpt-5");
    const other = new RateLimiter({ repository: account.repository });
    const request = { entityId: "key-1", resource: "gpt-5", consume: { rpm: 1, tpm: 10 } };
    const verdict = await other.tryAcquire(request);
    expect(verdict.granted).toBe(false);
    expect(await account.limiter.available("key-1", "gpt-5")).toEqual({ rpm: 100, tpm: -1000 });
  });

  it.each([
    ["an answer", 200, 4000, 4000],
    ["a 429", 429, 0, 0],
  ])(
    "is taken from once if four processes hear the same at once: %s",
    async (_, status, remaining, expected) => {
      const saws = Array.from({ length: 4 }, () => {
        const process = new RateLimiter({ repository: account.repository });
        const options = { entityId: "account", maxPauseMs: 0 };
        const mirror = new Mirror(process, options, (model) => model);
        return mirror.observeProviderLimits(openai(remaining), status, "gpt-5");
      });
      await Promise.all(saws);
      expect((await account.left())["tpm"]).toBe(expected);
      expect(account.reads).toBeGreaterThanOrEqual(4);
    },
  );

  it("is taken from once by four processes, also if another limit is in debt", async () => {
    await account.limiter.charge({ entityId: "account", resource: "gpt-5", amounts: { rpm: 150 } });
    const saws = Array.from({ length: 4 }, () => {
      account.limiter = new RateLimiter({ repository: account.repository });
      return account
        .mirror()
        .observeProviderLimits({ ...openai(0, 50), "retry-after": "6" }, 429, "gpt-5");
    });
    await Promise.all(saws);
    // The debt of each pause, and not four times what was there.
    expect(await account.left()).toEqual({ rpm: -50, tpm: -4000 });
  });

  it("is not taken into debt by what its parent refuses, except to pause", async () => {
    await account.repository.createEntity("company");
    await account.repository.setLimits("company", [Limit.perMinute("tpm", 10)]);
    await account.repository.createEntity("account", { parentId: "company", cascade: true });
    await account
      .mirror()
      .observeProviderLimits({ ...openai(4000, 0), "retry-after": "6" }, 429, "gpt-5");
    const buckets = await account.repository.getBuckets("account", { resource: "gpt-5" });
    const left = buckets.map(({ limitName, available }) => [limitName, available]);
    expect(Object.fromEntries(left)).toEqual({ rpm: -10, tpm: 10_000 });
  });

  it("is compared by its own balance, not by that of its parent", async () => {
    await account.repository.createEntity("company");
    await account.repository.setLimits("company", [Limit.perMinute("tpm", 8000)]);
    await account.repository.createEntity("account", { parentId: "company", cascade: true });
    await account.mirror().observeProviderLimits(openai(9000), 200, "gpt-5");
    const { statuses } = await account.limiter.check({
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
    await account.repository.setLimits("account", [
      Limit.perMinute("calls", 100),
      Limit.perMinute("in", 1000),
    ]);
    const mirror = account.mirror({
      resource: () => "all-models",
      limits: { requests: "calls", inputTokens: "in" },
    });
    await mirror.observeProviderLimits(
      {
        "anthropic-ratelimit-requests-remaining": "60",
        "anthropic-ratelimit-input-tokens-remaining": "700",
        "anthropic-ratelimit-output-tokens-remaining": "1",
      },
      200,
      "claude",
    );
    expect(await account.left("all-models")).toEqual({ calls: 60, in: 700 });
  });

  it("is charged once for two kinds that share a limit, the larger difference", async () => {
    const mirror = account.mirror({ limits: { inputTokens: "tpm", outputTokens: "tpm" } });
    const headers = {
      "anthropic-ratelimit-input-tokens-remaining": "7000",
      "anthropic-ratelimit-output-tokens-remaining": "6000",
    };
    await mirror.observeProviderLimits(headers, 200, "claude");
    expect((await account.left("claude"))["tpm"]).toBe(6000);
  });

  it("may lack the limits that the provider reports: only onMirror gets them", async () => {
    await account.repository.setLimits("account", [Limit.perMinute("images", 5)]);
    const seen = vi.fn<NonNullable<UpstreamMirror["onMirror"]>>();
    await account
      .mirror({ onMirror: seen })
      .observeProviderLimits({ ...openai(0), "retry-after": "6" }, 429, "gpt-5");
    expect(await account.left()).toEqual({ images: 5 });
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
