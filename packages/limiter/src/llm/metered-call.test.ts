import { RateLimiterUnavailable, type Lease } from "zae-limiter";
import { CHANNELS, type MeteredMessage, type StreamMessage } from "zae-limiter/diagnostics";
import type { Estimator, MeteredRecord } from "zae-limiter/llm";
import { faultyRepository } from "zae-limiter/testing";
import { afterEach, beforeEach, describe, expect, it, vi, type MockInstance } from "vitest";
import {
  CALL,
  fixedEstimate,
  MeteredSetting,
  PartReader,
  type Part,
} from "../../test/llm/metered-setting.ts";
import { HeardMessages } from "../../test/support/heard-messages.ts";
import { forgetWarnings } from "../warnings/warn-once.ts";
import type { AnswerSoFar } from "./answers/answer-reader.ts";
import { NO_TOKENS } from "./tokens/token-usage.ts";

let setting: MeteredSetting;
let warned: MockInstance;
let heard: HeardMessages;

beforeEach(async () => {
  forgetWarnings();
  warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  setting = await MeteredSetting.create();
  heard = new HeardMessages();
});

afterEach(() => {
  heard.stop();
  vi.restoreAllMocks();
  forgetWarnings();
});

const NOTHING_READ: AnswerSoFar = {
  outputBytes: 0,
  reported: undefined,
  isReportFinal: false,
  isComplete: true,
  hasUnreadableUsage: false,
};

function reporting(usage: Partial<AnswerSoFar["reported"]>): AnswerSoFar {
  return { ...NOTHING_READ, reported: { ...NO_TOKENS, ...usage }, isReportFinal: true };
}

/** The codes and texts of the warnings, without the sentence that they are not repeated. */
function warnings(): readonly (readonly [string, string])[] {
  return warned.mock.calls.map(([text, { code }]) => [
    code as string,
    (text as string).replace(" This process does not warn again.", ""),
  ]);
}

function failing(): never {
  throw new Error("oops");
}

async function rejecting(): Promise<never> {
  return failing();
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("the end of a call", () => {
  it("settles it once, however often it ends", async () => {
    const call = await setting.meter().begin(CALL, "x");
    const [first, second] = [call.settleAnswered(reporting({ output: 9 })), call.settleFailed()];
    await Promise.all([first, second, call.settleThrown(new Error("late"))]);
    expect(await setting.charged()).toEqual({ rpm: 1, tpm: 9 });
    expect(setting.records).toHaveLength(1);
  });

  it("is reported with everything that is known", async () => {
    const call = await setting.meter().begin(CALL, "x");
    await setting.clock.advance(1_500);
    await call.settleAnswered({ ...NOTHING_READ, outputBytes: 41 });
    expect(setting.records).toEqual<MeteredRecord[]>([
      {
        entityId: "key-1",
        resource: "gpt-5",
        model: "gpt-5",
        estimate: { input: 100, output: 50 },
        usage: { ...NO_TOKENS, input: 100, output: 11 },
        source: "counted",
        end: "complete",
        durationMs: 1_500,
      },
    ]);
  });

  it("by a 429 leaves the account paused, however many calls were under way", async () => {
    const upstream = { entityId: "key-1" };
    const meter = setting.meter({ upstream, estimator: fixedEstimate(2000, 1000) });
    const calls = [await meter.begin(CALL, "x"), await meter.begin(CALL, "x")];
    const headers = { "x-ratelimit-remaining-tokens": "0", "retry-after": "6" };
    for (const call of calls) await call.settleThrown({ status: 429, headers });
    expect(await setting.charged()).toEqual({ rpm: 0, tpm: 11_000 });
  });

  it("is settled whatever a provider reports", async () => {
    const ends = heard.ends();
    const call = await setting.meter().begin(CALL, "x");
    await call.settleAnswered(reporting({ output: Number.MAX_SAFE_INTEGER }));
    expect(ends).toMatchObject([{ how: "commit", settled: { rpm: 1, tpm: 9_007_199_254_740 } }]);
    expect(warnings()).toEqual([]);
  });

  it("leaves limits alone that are not metered", async () => {
    const ends = heard.ends();
    const meter = setting.meter({ metering: { tpm: { output: 1 } } });
    await (await meter.begin(CALL, "x")).settleThrown("x", AbortSignal.abort());
    expect(ends).toMatchObject([{ settled: { tpm: 50 } }]);
    expect(Object.keys(ends[0]!.settled)).toEqual(["tpm"]);
  });

  it("warns once of a usage that cannot be read", async () => {
    const meter = setting.meter();
    for (let calls = 0; calls < 2; calls += 1) {
      const call = await meter.begin(CALL, "x");
      await call.settleAnswered({ ...NOTHING_READ, outputBytes: 40, hasUnreadableUsage: true });
    }
    expect(await setting.charged()).toEqual({ rpm: 2, tpm: 220 });
    expect(warnings()).toEqual([
      [
        "WARN_LIMITER_USAGE_UNREADABLE",
        "A provider reported a usage for gpt-5 whose numbers cannot be read. The call was settled as if nothing had been reported.",
      ],
    ]);
  });
});

describe("a store that fails", () => {
  it("at the end: the caller does not notice, and the limiter reports it", async () => {
    const told: [RateLimiterUnavailable, Lease][] = [];
    const flaky = faultyRepository(setting.repository, (operation) =>
      operation === "settle" || operation === "giveBack" ? "error-before" : undefined,
    );
    setting.through(flaky, { onSettlementFailed: (...args) => told.push(args) });
    await (await setting.meter().begin(CALL, "x")).settleAnswered(reporting({ output: 5 }));
    await (await setting.meter().begin(CALL, "x")).settleFailed();
    expect(told.map(([error]) => error.code)).toEqual([
      "ERR_LIMITER_UNAVAILABLE",
      "ERR_LIMITER_UNAVAILABLE",
    ]);
    expect(await setting.charged()).toEqual({ rpm: 2, tpm: 300 });
    expect(setting.records).toHaveLength(2);
  });

  it("at the end, and so does the callback: there is one warning", async () => {
    const flaky = faultyRepository(setting.repository, (operation) =>
      operation === "giveBack" ? "error-before" : undefined,
    );
    setting.through(flaky, { onSettlementFailed: failing });
    await (await setting.meter().begin(CALL, "x")).settleFailed();
    expect(warnings()).toEqual([
      [
        "WARN_LIMITER_METERING_FAILED",
        "The settlement failed: Error: oops. The model call went on without it.",
      ],
    ]);
    expect(setting.records).toHaveLength(1);
  });

  it("from the beginning: a call that was let through is charged nowhere, and recorded", async () => {
    setting.through(faultyRepository(setting.repository, () => "error-before"));
    const meter = setting.meter({ onUnavailable: "allow", overrun: "stop" });
    await (await meter.begin(CALL, "x")).settleFailed();
    await (await meter.begin(CALL, "x")).settleAnswered(reporting({ output: 7 }));
    await (await meter.begin(CALL, "x")).settleThrown("x", AbortSignal.abort());
    const parts: Part[] = [{ bytes: 4_000_000 }, { isComplete: true }];
    const call = await meter.begin(CALL, "x");
    expect(await readAll(call.watch(toStream(parts), new PartReader()))).toEqual(parts);
    setting.through(setting.repository);
    expect(await setting.charged()).toEqual({ rpm: 0, tpm: 0 });
    expect(setting.records.map(({ end }) => end)).toEqual([
      "failed",
      "complete",
      "abandoned",
      "complete",
    ]);
    expect(warnings()).toEqual([]);
  });
});

describe("functions of the application that fail", () => {
  it.each([
    ["onSettled", { onSettled: failing }],
    ["onSettled", { onSettled: rejecting as () => never }],
    ["estimator.learn", { estimator: { ...fixedEstimate(100, 50), learn: failing } }],
    [
      "estimator.learn",
      { estimator: { ...fixedEstimate(100, 50), learn: rejecting as () => never } },
    ],
  ])("%s: the call is settled, with one warning", async (name, options) => {
    const unhandled = vi.fn<(reason: unknown) => void>();
    process.on("unhandledRejection", unhandled);
    const meter = setting.meter(options);
    for (let calls = 0; calls < 2; calls += 1)
      await (await meter.begin(CALL, "x")).settleAnswered(reporting({ output: 7 }));
    await turn();
    process.off("unhandledRejection", unhandled);
    expect(unhandled).not.toHaveBeenCalled();
    expect(await setting.charged()).toEqual({ rpm: 2, tpm: 14 });
    expect(warnings()).toEqual([
      [
        "WARN_LIMITER_METERING_FAILED",
        `${name} failed: Error: oops. The model call went on without it.`,
      ],
    ]);
  });

  it.each<[unknown, string]>([
    [NaN, "it must return from 0 to 9007199254740 tokens, not NaN"],
    [-1, "it must return from 0 to 9007199254740 tokens, not -1"],
    [Infinity, "it must return from 0 to 9007199254740 tokens, not Infinity"],
    ["7", "it must return from 0 to 9007199254740 tokens, not string"],
    [null, "it must return from 0 to 9007199254740 tokens, not object"],
  ])(
    "tokensOf: %j causes one warning, and a quarter of the bytes counts",
    async (tokens, message) => {
      const estimator: Estimator = { ...fixedEstimate(100, 50), tokensOf: () => tokens as number };
      const meter = setting.meter({ estimator });
      for (let calls = 0; calls < 2; calls += 1)
        await (await meter.begin(CALL, "x")).settleAnswered({ ...NOTHING_READ, outputBytes: 41 });
      expect(await setting.charged()).toEqual({ rpm: 2, tpm: 222 });
      expect(warnings()).toEqual([
        [
          "WARN_LIMITER_METERING_FAILED",
          `estimator.tokensOf failed: ${message}. The model call went on without it.`,
        ],
      ]);
    },
  );

  it("tokensOf: what it throws does not end a stream", async () => {
    const estimator: Estimator = { ...fixedEstimate(100, 50), tokensOf: failing };
    const call = await setting.meter({ estimator, overrun: "stop" }).begin(CALL, "x");
    const parts: Part[] = [{ bytes: 400 }, { bytes: 1 }, { isComplete: true }];
    expect(await readAll(call.watch(toStream(parts), new PartReader()))).toEqual(parts);
    expect(await setting.charged()).toEqual({ rpm: 1, tpm: 201 });
  });

  it("tokensOf: fractions are rounded up", async () => {
    const estimator: Estimator = { ...fixedEstimate(100, 50), tokensOf: (_, bytes) => bytes / 3 };
    const call = await setting.meter({ estimator }).begin(CALL, "x");
    await call.settleAnswered({ ...NOTHING_READ, outputBytes: 10 });
    expect(await setting.charged()).toEqual({ rpm: 1, tpm: 104 });
  });
});

describe("learning", () => {
  it("is from whole reports only", async () => {
    const learn = vi.fn<NonNullable<Estimator["learn"]>>();
    const meter = setting.meter({ estimator: { ...fixedEstimate(100, 50), learn } });
    await (await meter.begin(CALL, "x")).settleFailed();
    await (await meter.begin(CALL, "x")).settleThrown({ code: "ECONNRESET" });
    await (await meter.begin(CALL, "x")).settleAnswered(NOTHING_READ);
    await (await meter.begin(CALL, "x")).settleAnswered(reporting({ input: 90, output: 7 }));
    expect(learn.mock.calls).toEqual([
      [CALL, { input: 100, output: 50 }, { ...NO_TOKENS, input: 90, output: 7 }],
    ]);
  });
});

describe("channels", () => {
  it("publish each call that was granted once, when it is settled", async () => {
    const messages = heard.on<MeteredMessage>(CHANNELS.metered);
    const meter = setting.meter();
    const call = await meter.begin(CALL, "x");
    expect(messages).toEqual([]);
    await Promise.all([call.settleFailed(), call.settleFailed()]);
    await (await meter.begin(CALL, "x")).settleAnswered(reporting({ output: 7 }));
    const refused = setting.meter({ estimator: fixedEstimate(20_000, 0) });
    await refused.begin(CALL, "x").catch(() => {});
    expect(messages).toEqual(setting.records);
    expect(messages.map(({ end }) => end)).toEqual(["failed", "complete"]);
  });

  it("publish the beginning and the end of each stream, with one object for both", async () => {
    const states: [StreamMessage, string][] = [];
    heard.each(CHANNELS.stream, (message) =>
      states.push([message as StreamMessage, (message as StreamMessage).state]),
    );
    const call = await setting.meter().begin(CALL, "x");
    const stream = call.watch(toStream([{ bytes: 1 }, { isComplete: true }]), new PartReader());
    expect(states.map(([, state]) => state)).toEqual(["open"]);
    await readAll(stream);
    await call.settleFailed();
    expect(states.map(([, state]) => state)).toEqual(["open", "closed"]);
    expect(states[0]![0]).toBe(states[1]![0]);
    expect(states[0]![0].resource).toBe("gpt-5");
  });

  it("publish no end of a stream whose beginning had no subscriber", async () => {
    const call = await setting.meter().begin(CALL, "x");
    const stream = call.watch(toStream([{ isComplete: true }]), new PartReader());
    const messages = heard.on<StreamMessage>(CHANNELS.stream);
    await readAll(stream);
    expect(messages).toEqual([]);
  });
});

function toStream(parts: readonly Part[]): ReadableStream<Part> {
  return ReadableStream.from(parts);
}

async function readAll(stream: ReadableStream<Part>): Promise<readonly Part[]> {
  const parts: Part[] = [];
  for await (const part of stream) parts.push(part);
  return parts;
}
