import * as fc from "fast-check";
import { Limit, RateLimiter } from "zae-limiter";
import { METERING, modelResource, type Estimator, type Metering } from "zae-limiter/llm";
import { MemoryRepository } from "zae-limiter/memory";
import { faultyRepository } from "zae-limiter/testing";
import { afterEach, beforeEach, describe, expect, it, vi, type MockInstance } from "vitest";
import { CALL, fixedEstimate, MeteredSetting } from "../../test/llm/metered-setting.ts";
import { forgetWarnings } from "../warnings/warn-once.ts";
import { Meter } from "./meter.ts";

let setting: MeteredSetting;
let warned: MockInstance;

beforeEach(async () => {
  forgetWarnings();
  warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  setting = await MeteredSetting.create();
});

afterEach(() => {
  vi.restoreAllMocks();
  forgetWarnings();
});

const NOTHING = { rpm: 0, tpm: 0 };

it("takes what was estimated, from the entity and the resource of the model", async () => {
  await setting.meter().begin({ ...CALL, model: "@cf/llama" }, "context");
  expect(await setting.charged("key-1", modelResource("@cf/llama"))).toEqual({ rpm: 1, tpm: 150 });
});

describe("the entity of a call", () => {
  it("may come from a function, at once or later", async () => {
    await setting.meter({ entity: (context) => `${context}-1` }).begin(CALL, "a");
    await setting.meter({ entity: async (context) => `${context}-1` }).begin(CALL, "b");
    expect(await setting.charged("a-1")).toEqual({ rpm: 1, tpm: 150 });
    expect(await setting.charged("b-1")).toEqual({ rpm: 1, tpm: 150 });
  });

  it("is asked first: what the function throws ends the call, and nothing is estimated", async () => {
    const estimate = vi.fn<Estimator["estimate"]>();
    const failure = new Error("no session");
    const throwing = (): string => {
      throw failure;
    };
    for (const entity of [throwing, () => Promise.reject(failure)])
      await expect(
        setting.meter({ entity, estimator: { estimate } }).begin(CALL, "x"),
      ).rejects.toBe(failure);
    expect(estimate).not.toHaveBeenCalled();
  });

  it.each([
    [undefined, "Invalid entity: must return an id for every call, not undefined"],
    ["", "Invalid entity: must not be empty (got '')"],
    [7, "Invalid entity: must be a string, not number (got 7)"],
    ["a b", "must begin with a letter or digit and hold only letters, digits and _ . - : @"],
  ])("must be an id, not %j", async (id, message) => {
    const meter = setting.meter({ entity: () => id as string });
    await expect(meter.begin(CALL, "x")).rejects.toThrow(message);
  });

  it("should not be a secret: one warning, without the secret", async () => {
    const secret = "sk-proj-abcdefghijklmnopqrstuvwx";
    const meter = setting.meter({ entity: () => secret });
    await meter.begin(CALL, "x");
    await meter.begin(CALL, "x");
    expect(warned).toHaveBeenCalledOnce();
    expect(warned).toHaveBeenCalledWith(expect.not.stringContaining(secret), {
      code: "WARN_LIMITER_SECRET_AS_ID",
    });
  });
});

it.each([undefined, "", "a b", "x".repeat(65), 7, Promise.resolve("x")])(
  "a resource must be a name, not %j",
  async (name) => {
    const meter = setting.meter({ resource: () => name as string });
    await expect(meter.begin(CALL, "x")).rejects.toThrow("Invalid resource: must");
    expect(await setting.charged()).toEqual(NOTHING);
  },
);

describe("estimates of a custom estimator", () => {
  it("are rounded up", async () => {
    await setting.meter({ estimator: fixedEstimate(0.1, 10.5) }).begin(CALL, "x");
    expect(await setting.charged()).toEqual({ rpm: 1, tpm: 12 });
  });

  const rubbish: readonly unknown[] = [
    ...[-1, NaN, Infinity, 1e300, "5", undefined, null, 5n].map((input) => ({ input, output: 1 })),
    ...[-1, NaN, Infinity, undefined].map((output) => ({ input: 1, output })),
    undefined,
    null,
    7,
    [1, 2],
    Promise.resolve({ input: 1, output: 1 }),
  ];
  it.each(rubbish)("must be tokens: %o", async (estimate) => {
    const meter = setting.meter({ estimator: { estimate: () => estimate as never } });
    await expect(meter.begin(CALL, "x")).rejects.toThrow(
      /^Invalid estimate\.(in|out)put: must be from 0 to 9007199254740 tokens; estimator\.estimate must return { input, output }, not a promise/,
    );
    expect(await setting.charged()).toEqual(NOTHING);
  });

  it("must not cost more than can be counted", async () => {
    const metering = { tpm: { input: 1_000_000 } };
    const meter = setting.meter({ metering, estimator: fixedEstimate(1e12, 0) });
    await expect(meter.begin(CALL, "x")).rejects.toThrow(
      "Invalid metering.tpm: must be at most 9007199254740; lower its weights, or the estimate",
    );
  });

  it("may fail: then nothing was taken", async () => {
    const failure = new Error("tokenizer");
    const estimate = (): never => {
      throw failure;
    };
    await expect(setting.meter({ estimator: { estimate } }).begin(CALL, "x")).rejects.toBe(failure);
    expect(await setting.charged()).toEqual(NOTHING);
  });
});

describe("limits that the metering names and that are not stored", () => {
  it("are reported in terms of the metering, with what to do", async () => {
    const meter = setting.meter({ metering: METERING.anthropic });
    await expect(meter.begin(CALL, "x")).rejects.toThrow(
      expect.objectContaining({
        message:
          "Invalid metering.itpm: no such limit; the limits are rpm, tpm; set a limit of this name " +
          "with setSystemDefaults, setResourceDefaults or setLimits, or name another one in metering",
        field: "metering.itpm",
        code: "ERR_LIMITER_VALIDATION",
      }),
    );
    expect(await setting.charged()).toEqual(NOTHING);
  });

  it("are all of them if there are no limits at all", async () => {
    const limiter = new RateLimiter({ repository: new MemoryRepository() });
    await expect(setting.meter({ limiter }).begin(CALL, "x")).rejects.toThrow(
      expect.objectContaining({
        message:
          "Invalid metering: no limits are configured that it could count; set rpm, tpm with " +
          "setSystemDefaults, setResourceDefaults or setLimits",
      }),
    );
  });
});

describe("a guess that no limit can hold", () => {
  it("is cut to what fits besides the input", async () => {
    const call = await setting.meter({ estimator: fixedEstimate(100, 50_000) }).begin(CALL, "x");
    expect(await setting.charged()).toEqual({ rpm: 1, tpm: 10_000 });
    await call.settleFailed();
    expect(setting.records[0]!.estimate).toEqual({ input: 100, output: 9_900 });
  });

  it("is cut to nothing if the input needs all of it", async () => {
    await setting.meter({ estimator: fixedEstimate(10_000, 1) }).begin(CALL, "x");
    expect(await setting.charged()).toEqual({ rpm: 1, tpm: 10_000 });
  });

  it("waits for its turn like any other if it fits later", async () => {
    const meter = setting.meter({ estimator: fixedEstimate(100, 50_000) });
    await meter.begin(CALL, "x");
    await expect(meter.begin(CALL, "x")).rejects.toMatchObject({ retryAfterSeconds: 60 });
  });

  it("is refused if the caller has named it as the maximum", async () => {
    const meter = setting.meter({ estimator: fixedEstimate(100, 20_000) });
    const named = { ...CALL, maxOutputTokens: 10_000, choices: 2 };
    await expect(meter.begin(named, "x")).rejects.toMatchObject({ retryAfterSeconds: Infinity });
    await meter.begin({ ...named, maxOutputTokens: 10_001 }, "x");
  });

  it("is cut in the input too, if the text alone would fit", async () => {
    const meter = setting.meter({ estimator: fixedEstimate(80_000, 50) });
    const call = await meter.begin({ ...CALL, textBytes: 40_000 }, "x");
    expect(await setting.charged()).toEqual({ rpm: 1, tpm: 10_000 });
    await call.settleFailed();
    expect(setting.records[0]!.estimate).toEqual({ input: 10_000, output: 0 });
  });

  it("leaves room for the maximum that the caller has named", async () => {
    const meter = setting.meter({ estimator: fixedEstimate(80_000, 50) });
    await (await meter.begin({ ...CALL, maxOutputTokens: 50 }, "x")).settleFailed();
    expect(setting.records[0]!.estimate).toEqual({ input: 9_950, output: 50 });
    const long = { ...CALL, textBytes: 39_804, maxOutputTokens: 50 };
    await expect(meter.begin(long, "x")).rejects.toMatchObject({ retryAfterSeconds: Infinity });
  });

  it("does not help a text that is too long, and is not tried twice", async () => {
    const consume = vi.spyOn(setting.repository, "consume");
    const meter = setting.meter({ estimator: fixedEstimate(10_001, 50) });
    const long = { ...CALL, textBytes: 40_001 };
    await expect(meter.begin(long, "x")).rejects.toMatchObject({ retryAfterSeconds: Infinity });
    expect(consume).toHaveBeenCalledOnce();
  });

  it("does not help if another limit refuses, and is not tried twice", async () => {
    await setting.repository.setSystemDefaults([
      Limit.perMinute("rpm", 100),
      Limit.perMinute("itpm", 100),
      Limit.perMinute("otpm", 100),
    ]);
    const consume = vi.spyOn(setting.repository, "consume");
    const metering = METERING.anthropic;
    const meter = setting.meter({ metering, estimator: fixedEstimate(101, 50) });
    await expect(meter.begin({ ...CALL, textBytes: 401 }, "x")).rejects.toMatchObject({
      retryAfterSeconds: Infinity,
    });
    expect(consume).toHaveBeenCalledOnce();
  });

  it("is cut to what a quota can ever hold, not to what is left of it", async () => {
    const day = { every: "day", zone: "UTC" } as const;
    const tpm = Limit.quota("tpm", 1000, day, { carry: { unused: 500 } });
    await setting.repository.setLimits("key-1", [Limit.perMinute("rpm", 100), tpm]);
    const begin = (output: number) =>
      setting.meter({ estimator: fixedEstimate(100, output) }).begin(CALL, "x");
    await begin(300);
    await expect(begin(50_000)).rejects.toMatchObject({ violations: [{ available: 600 }] });
    await setting.clock.advance(2 * 86_400_000);
    await begin(50_000);
    expect(await setting.limiter.available("key-1", "gpt-5")).toEqual({ rpm: 99, tpm: 0 });
  });

  it("is cut to what a parent can hold too", async () => {
    await setting.repository.createEntity("org");
    await setting.repository.createEntity("key-1", { parentId: "org", cascade: true });
    await setting.repository.setLimits("org", [Limit.perMinute("tpm", 500)], { resource: "gpt-5" });
    await setting.meter({ estimator: fixedEstimate(100, 50_000) }).begin(CALL, "x");
    expect(await setting.limiter.available("org", "gpt-5")).toMatchObject({ tpm: 0 });
  });

  it("is cut to what a limit can hold that counts another name", async () => {
    await setting.repository.setSystemDefaults([
      Limit.perMinute("rpm", 100),
      Limit.perMinute("tpm", 10_000),
      Limit.quota("tpd", 500, { every: "day", zone: "UTC" }, { counts: "tpm" }),
    ]);
    await setting.meter({ estimator: fixedEstimate(100, 50_000) }).begin(CALL, "x");
    expect(await setting.charged()).toEqual({ rpm: 1, tpm: 500 });
  });

  it("always fits once it was cut", async () => {
    const weight = fc.nat(2_000_000).map((parts) => parts / 1_000_000);
    await fc.assert(
      fc.asyncProperty(
        weight,
        weight,
        fc.integer({ min: 1, max: 100_000 }),
        fc.nat(100_000),
        async (input, output, capacity, tokens) => {
          const metering: Metering = { credits: { input, output, requests: 1 } };
          const repository = new MemoryRepository();
          await repository.setSystemDefaults([Limit.perMinute("credits", capacity)]);
          const limiter = new RateLimiter({ repository });
          const begun = setting
            .meter({ limiter, metering, estimator: fixedEstimate(tokens, 10_000_000) })
            .begin({ ...CALL, textBytes: tokens * 4 }, "x");
          const fits = Math.ceil((1e6 + Math.round(input * 1e6) * tokens) / 1e6) <= capacity;
          expect(await begun.then(() => true).catch(() => false)).toBe(fits);
        },
      ),
    );
  });
});

it("calls of a class leave what is reserved from it, and are cut to what fits beside that", async () => {
  await setting.repository.setSystemDefaults([
    Limit.perMinute("tpm", 10_000, { reserve: { batch: 9_000 } }),
    Limit.perMinute("rpm", 100),
  ]);
  const meter = setting.meter({ priority: "batch", estimator: fixedEstimate(500, 9_900) });
  await meter.begin({ ...CALL, textBytes: 2_000 }, "x");
  expect(await setting.charged()).toEqual({ rpm: 1, tpm: 1_000 });
});

it("a call that waits ends with its signal, and nothing is charged", async () => {
  const meter = setting.meter({ estimator: fixedEstimate(9_000, 900), waitUpToMs: 60_000 });
  await meter.begin(CALL, "x");
  const abort = new AbortController();
  const waiting = meter.begin(CALL, "x", abort.signal);
  abort.abort("left");
  await expect(waiting).rejects.toBe("left");
  await expect(meter.begin(CALL, "x", AbortSignal.abort("gone"))).rejects.toBe("gone");
  expect(await setting.charged()).toEqual({ rpm: 1, tpm: 9_900 });
});

it("a call that is aborted while the store takes for it never begins, and nothing is charged", async () => {
  const abort = new AbortController();
  const aborting = faultyRepository(setting.repository, () => {
    abort.abort("left");
    return undefined;
  });
  setting.through(aborting);
  await expect(setting.meter().begin(CALL, "x", abort.signal)).rejects.toBe("left");
  expect(await setting.charged()).toEqual(NOTHING);
  expect(setting.records).toMatchObject([{ end: "failed" }]);
});

it("a signal of another kind ends no wait, and is not a mistake", async () => {
  const foreign = { aborted: false, addEventListener: () => {} } as unknown as AbortSignal;
  await setting.meter().begin(CALL, "x", foreign);
  await setting.meter().begin(CALL, "x", null);
  expect(await setting.charged()).toEqual({ rpm: 2, tpm: 300 });
});

it("a closed limiter begins no call, whatever happens when the store is unavailable", async () => {
  const meter = setting.meter({ onUnavailable: "allow" });
  const open = await meter.begin(CALL, "x");
  await setting.limiter.close();
  await expect(meter.begin(CALL, "x")).rejects.toMatchObject({ code: "ERR_LIMITER_UNAVAILABLE" });
  await open.settleFailed();
  expect(await setting.charged()).toEqual(NOTHING);
});

it("what a call may do when the store is unavailable is its own choice", async () => {
  setting.through(faultyRepository(setting.repository, () => "error-before"));
  await expect(setting.meter().begin(CALL, "x")).rejects.toMatchObject({
    code: "ERR_LIMITER_UNAVAILABLE",
  });
  await expect(setting.meter({ onUnavailable: "allow" }).begin(CALL, "x")).resolves.toBeDefined();
});

it("options are checked when the meter is made", () => {
  expect(() => new Meter({} as never, "limitFetch")).toThrow("Invalid limiter");
});
