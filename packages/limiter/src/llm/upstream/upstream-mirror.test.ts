import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Limit } from "zae-limiter";
import { LIMITS, MirroredAccount, openai } from "../../../test/llm/mirror/mirrored-account.ts";
import { forgetWarnings } from "../../warnings/warn-once.ts";
import { Mirror, type UpstreamMirror } from "./upstream-mirror.ts";

let account: MirroredAccount;

beforeEach(async () => {
  account = await MirroredAccount.create();
});

afterEach(() => {
  forgetWarnings();
  vi.restoreAllMocks();
});

describe("an answer that is not a 429", () => {
  it("charges what the account holds above what its provider reports", async () => {
    await account.mirror().observeProviderLimits(openai(4000, 90), 200, "gpt-5");
    expect(await account.left()).toEqual({ rpm: 90, tpm: 4000 });
  });

  it("credits nothing if more is left than the account holds", async () => {
    await account.limiter.charge({
      entityId: "account",
      resource: "gpt-5",
      amounts: { rpm: 90, tpm: 9000 },
    });
    await account.mirror().observeProviderLimits(openai(9000, 99), 200, "gpt-5");
    expect(await account.left()).toEqual({ rpm: 10, tpm: 1000 });
    expect(account.takes).toBe(1);
  });

  it("charges once for ten equal answers, at a time or one by one", async () => {
    const mirror = account.mirror();
    const answers = Array.from({ length: 10 }, () =>
      mirror.observeProviderLimits(openai(4000), 200, "gpt-5"),
    );
    await Promise.all(answers);
    expect([account.reads, account.takes]).toEqual([1, 1]);
    for (let count = 0; count < 10; count += 1)
      await mirror.observeProviderLimits(openai(4000), 200, "gpt-5");
    expect([account.reads, account.takes]).toEqual([1, 1]);
    expect(await account.left()).toEqual({ rpm: 100, tpm: 4000 });
  });

  it("is compared at most once a second, by all clients of a limiter together", async () => {
    await account.mirror().observeProviderLimits(openai(9000), 200, "gpt-5");
    await account.clock.advance(999);
    await account.mirror().observeProviderLimits(openai(2000), 200, "gpt-5");
    expect(account.reads).toBe(1);
    await account.clock.advance(1);
    await account.mirror().observeProviderLimits(openai(2000), 200, "gpt-5");
    expect(account.reads).toBe(2);
    expect((await account.left())["tpm"]).toBe(2000);
  });

  it("is compared again after the clock was set back", async () => {
    const mirror = account.mirror();
    await mirror.observeProviderLimits(openai(9000), 200, "gpt-5");
    account.clock.set(account.clock.now() - 3_600_000);
    await mirror.observeProviderLimits(openai(2000), 200, "gpt-5");
    expect((await account.left())["tpm"]).toBe(2000);
  });

  it.each([
    ["below 1 % of the limit is ignored", 9901, 10_000],
    ["of 1 % is charged", 9900, 9900],
  ])("a difference %s: Anthropic rounds", async (_, remaining, expected) => {
    await account.mirror().observeProviderLimits(openai(remaining), 200, "gpt-5");
    expect((await account.left())["tpm"]).toBe(expected);
  });

  it.each(["-1", "abc", "", "5, 5"])("a remaining of %j charges nothing", async (remaining) => {
    await account.mirror().observeProviderLimits(openai(remaining, remaining), 200, "gpt-5");
    expect(await account.left()).toEqual({ rpm: 100, tpm: 10_000 });
  });

  it("a remaining of 0 is believed beside a limit, and not without one", async () => {
    await account
      .mirror()
      .observeProviderLimits({ "x-ratelimit-remaining-tokens": "0" }, 200, "gpt-5");
    expect((await account.left())["tpm"]).toBe(10_000);
    await account.clock.advance(1000);
    await account
      .mirror()
      .observeProviderLimits({ "x-ratelimit-remaining-tokens": "500" }, 200, "gpt-5");
    expect((await account.left())["tpm"]).toBe(500);
    await account.clock.advance(1000);
    await account.mirror().observeProviderLimits(openai(0), 200, "gpt-5");
    expect((await account.left())["tpm"]).toBe(0);
  });

  it("does not cause a read if it has no limits", async () => {
    await account
      .mirror()
      .observeProviderLimits({ "content-type": "application/json" }, 200, "gpt-5");
    await account.mirror().observeProviderLimits(new Headers(), 500, "gpt-5");
    expect(account.operations).toEqual([]);
  });

  it("changes no stored limit", async () => {
    const headers = { ...openai(4000), "x-ratelimit-limit-tokens": "5000" };
    await account.mirror().observeProviderLimits(headers, 200, "gpt-5");
    expect(await account.repository.getLimits("account")).toEqual(LIMITS);
  });
});

describe("onMirror", () => {
  it("gets every answer with limits, even if it is not compared", async () => {
    const seen = vi.fn<NonNullable<UpstreamMirror["onMirror"]>>();
    const mirror = account.mirror({ onMirror: seen });
    for (let count = 0; count < 3; count += 1)
      await mirror.observeProviderLimits(openai(4000), 200, "gpt-5");
    await mirror.observeProviderLimits({}, 200, "gpt-5");
    await mirror.observeProviderLimits({}, 429, "gpt-5");
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
  ])("may fail: it %s, with one warning", async (_, onMirror) => {
    const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    const mirror = account.mirror({ onMirror });
    await mirror.observeProviderLimits({ ...openai(0), "retry-after": "6" }, 429, "gpt-5");
    await mirror.observeProviderLimits(openai(0), 200, "gpt-5");
    expect((await account.left())["tpm"]).toBe(-1000);
    expect(warned).toHaveBeenCalledExactlyOnceWith(
      expect.stringContaining("upstream.onMirror failed: "),
      { code: "WARN_LIMITER_METERING_FAILED" },
    );
  });
});

describe("a failure", () => {
  it.each(["read", "charge"])(
    "of the store to %s causes one warning, and the next answer tries again",
    async (failing) => {
      const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
      account.findFault = (operation) => (operation === failing ? "error-before" : undefined);
      const mirror = account.mirror();
      const headers = { ...openai(0), "retry-after": "6" };
      await mirror.observeProviderLimits(headers, 429, "gpt-5");
      await mirror.observeProviderLimits(headers, 429, "gpt-5");
      expect(warned).toHaveBeenCalledOnce();
      account.findFault = () => undefined;
      await mirror.observeProviderLimits(headers, 429, "gpt-5");
      expect((await account.left())["tpm"]).toBe(-1000);
    },
  );

  it("of the store is not waited for by each of the 429s that came meanwhile", async () => {
    vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    account.findFault = () => "error-before";
    const mirror = account.mirror();
    const headers = { ...openai(0), "retry-after": "6" };
    const answer = mirror.observeProviderLimits(openai(0), 200, "gpt-5");
    await Promise.all(
      Array.from({ length: 20 }, () => mirror.observeProviderLimits(headers, 429, "gpt-5")),
    );
    await answer;
    expect(account.reads).toBe(2);
  });

  it.each([
    ["an account without limits", { entityId: "unlimited" }],
    ["a resource that is not a name", { resource: () => "#" }],
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
    await account
      .mirror(options)
      .observeProviderLimits({ ...openai(0), "retry-after": "6" }, 429, "gpt-5");
    await account.mirror(options).observeProviderLimits(openai(0), 200, "gpt-5");
    expect(warned).toHaveBeenCalledOnce();
  });
});

it("remembers a bounded number of models", async () => {
  await account.repository.setSystemDefaults([Limit.perMinute("tpm", 10_000)]);
  const mirror = account.mirror();
  const seeModels = async (): Promise<void> => {
    for (let model = 0; model < 1001; model += 1)
      await mirror.observeProviderLimits(openai(10_000), 200, `model-${model}`);
  };
  await seeModels();
  expect(account.reads).toBe(1001);
  // The first one was forgotten, so it is compared again within the same second.
  await mirror.observeProviderLimits(openai(10_000), 200, "model-1000");
  expect(account.reads).toBe(1001);
  await mirror.observeProviderLimits(openai(10_000), 200, "model-0");
  expect(account.reads).toBe(1002);
});

it.each([
  ["no account", {}, "upstream.entityId"],
  ["an account that is not an id", { entityId: "a#b" }, "upstream.entityId"],
  ["an unknown option", { entityId: "a", maxPause: 5 }, "maxPause"],
  ["no object", "account", "upstream"],
  ["an unknown kind", { entityId: "a", limits: { token: "tpm" } }, "token"],
  [
    "a limit that is not a name",
    { entityId: "a", limits: { tokens: "1" } },
    "upstream.limits.tokens",
  ],
  ["limits that are not object", { entityId: "a", limits: "tpm" }, "options"],
  ["a resource that is not a function", { entityId: "a", resource: "gpt" }, "upstream.resource"],
  ["an onMirror that is not a function", { entityId: "a", onMirror: 1 }, "upstream.onMirror"],
  ["a negative pause", { entityId: "a", maxPauseMs: -1 }, "upstream.maxPauseMs"],
  ["an endless pause", { entityId: "a", maxPauseMs: Infinity }, "upstream.maxPauseMs"],
  ["a pause in words", { entityId: "a", maxPauseMs: "60" }, "upstream.maxPauseMs"],
])("refuses %s when the client is made", (_, options, field) => {
  expect(() => new Mirror(account.limiter, options as never, (model) => model)).toThrow(
    expect.objectContaining({ code: expect.stringMatching(/^ERR_LIMITER_/), field }),
  );
});
