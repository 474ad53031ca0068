import { createOpenAI } from "@ai-sdk/openai";
import {
  APICallError,
  embed,
  generateText,
  streamText,
  wrapEmbeddingModel,
  wrapLanguageModel,
} from "ai";
import { afterEach, beforeEach, describe, expect, it, vi, type MockInstance } from "vitest";
import { Limit, RateLimiter, ValidationError } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { ManualClock } from "zae-limiter/testing";
import { forgetWarnings } from "../../warnings/warn-once.ts";
import { simpleEstimator } from "../estimating/simple-estimator.ts";
import type { MeteredOptions } from "../options.ts";
import type { MeteredRecord } from "../tokens/metered-record.ts";
import { METERING } from "../tokens/metering.ts";
import type { UpstreamLimits } from "../upstream/upstream-limits.ts";
import { limitEmbeddingModel, limitLanguageModel, type AiSdkCall } from "./limit-model.ts";

const MODEL = { provider: "test", modelId: "gpt-5" };
const PARAMS = { prompt: [{ role: "user", content: [{ type: "text", text: "four" }] }] };
const USAGE = {
  inputTokens: { total: 3, noCache: 3, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 },
};

let repository: MemoryRepository;
let records: MeteredRecord[];
let seen: UpstreamLimits[];
let options: MeteredOptions<AiSdkCall>;
let warned: MockInstance<typeof process.emitWarning>;

beforeEach(async () => {
  forgetWarnings();
  warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  repository = new MemoryRepository({ clock: new ManualClock() });
  const limits = [Limit.perDay("rpm", 10), Limit.perDay("tpm", 1000)];
  for (const id of ["key-1", "account"]) await repository.setLimits(id, limits);
  [records, seen] = [[], []];
  options = {
    limiter: new RateLimiter({ repository }),
    entity: "key-1",
    metering: METERING.openai,
    estimator: simpleEstimator({ output: 100 }),
    onSettled: (record) => void records.push(record),
    upstream: { entityId: "account", onMirror: (limits_) => void seen.push(limits_) },
  };
});

afterEach(() => {
  warned.mockRestore();
  forgetWarnings();
});

async function readLeft(entityId: string): Promise<Record<string, number>> {
  return options.limiter.available(entityId, MODEL.modelId);
}

describe("options", () => {
  it.each([
    [{ specificationVersion: "v5" }, /Invalid specificationVersion: must be "v2" or "v3" or "v4"/],
    [{ specificationVersions: "v4" }, /did you mean specificationVersion\?/],
    [{ metering: undefined }, /metering/],
  ])("%j are refused", (wrong, message) => {
    const made = (): unknown => limitLanguageModel({ ...options, ...wrong } as typeof options);
    expect(made).toThrow(ValidationError);
    expect(made).toThrow(message);
  });

  it("of embedding models know no version 2", () => {
    const wrong = { ...options, specificationVersion: "v2" as "v3" };
    expect(() => limitEmbeddingModel(wrong)).toThrow(/must be "v3" or "v4"/);
  });

  it("set the version, which is 4 by default", () => {
    expect(limitLanguageModel(options).specificationVersion).toBe("v4");
    expect(limitEmbeddingModel({ ...options, specificationVersion: "v3" })).toMatchObject({
      specificationVersion: "v3",
    });
  });
});

it("a middleware for the wrong kind of model refuses calls instead of not limiting them", async () => {
  const openai = createOpenAI({ apiKey: "none" });
  const embedder = wrapEmbeddingModel({
    model: openai.embeddingModel("text-embedding-3-small"),
    middleware: limitLanguageModel({ ...options, specificationVersion: "v3" }),
  });
  await expect(embed({ model: embedder, value: "four" })).rejects.toThrow(/limitEmbeddingModel/);
  const model = wrapLanguageModel({
    model: openai.languageModel("gpt-5"),
    middleware: limitEmbeddingModel({ ...options, specificationVersion: "v3" }),
  });
  await expect(generateText({ model, prompt: "four" })).rejects.toThrow(/limitLanguageModel/);
  const onError = vi.fn();
  await streamText({ model, prompt: "four", onError }).consumeStream();
  expect(onError).toHaveBeenCalledWith({ error: expect.any(ValidationError) });
});

it("a function that is given as the middleware without being called refuses calls", async () => {
  const openai = createOpenAI({ apiKey: "none" });
  const message = "give the client limitLanguageModel({ limiter, entity, metering })";
  const model = wrapLanguageModel({
    model: openai.languageModel("gpt-5"),
    middleware: limitLanguageModel as never,
  });
  await expect(generateText({ model, prompt: "four" })).rejects.toThrow(message);
  const onError = vi.fn();
  await streamText({ model, prompt: "four", onError }).consumeStream();
  expect(onError).toHaveBeenCalledWith({ error: expect.any(ValidationError) });
  const embedder = wrapEmbeddingModel({
    model: openai.embeddingModel("text-embedding-3-small"),
    middleware: limitEmbeddingModel as never,
  });
  await expect(embed({ model: embedder, value: "four" })).rejects.toThrow(/limitEmbeddingModel\(/);
});

it("the answer of a stream keeps all that it has besides the stream", async () => {
  const answer = {
    stream: new ReadableStream({ start: (controller) => controller.close() }),
    request: { body: "{}" },
    response: { headers: { "x-request-id": "1" } },
    more: "of a later version",
  };
  const { stream, ...rest } = await limitLanguageModel(options).wrapStream({
    doStream: async () => answer,
    params: PARAMS,
    model: MODEL,
  });
  expect({ stream: answer.stream, ...rest }).toEqual(answer);
  expect(stream).not.toBe(answer.stream);
  await stream.cancel();
  expect(records).toMatchObject([{ end: "abandoned", usage: { input: 1, output: 0 } }]);
});

const noAnswers: readonly (readonly [string, () => unknown])[] = [
  ["nothing", () => undefined],
  ["no stream", () => ({})],
  ["a stream with a reader", () => ({ stream: lockedStream() })],
];
it.each(noAnswers)("a model that answers with %s keeps no lease open", async (_, answer) => {
  const streamed = limitLanguageModel(options).wrapStream({
    doStream: async () => answer() as { stream: ReadableStream },
    params: PARAMS,
    model: MODEL,
  });
  await expect(streamed).rejects.toThrow(TypeError);
  expect(records).toMatchObject([{ end: "failed" }]);
  expect(await readLeft("key-1")).toEqual({ rpm: 10, tpm: 1000 });
});

function lockedStream(): ReadableStream {
  const stream = new ReadableStream();
  stream.getReader();
  return stream;
}

it("`entity` receives the call", async () => {
  await repository.setLimits("user-7", [Limit.perDay("rpm", 10), Limit.perDay("tpm", 1000)]);
  const told: AiSdkCall[] = [];
  const entity = (call: AiSdkCall): string => {
    told.push(call);
    return call.headers?.["x-user"] ?? "anonymous";
  };
  await limitLanguageModel({ ...options, entity }).wrapGenerate({
    doGenerate: async () => ({ content: [], usage: USAGE }),
    params: { ...PARAMS, headers: { "x-user": "user-7" } },
    model: MODEL,
  });
  expect(told).toMatchObject([PARAMS]);
  expect(await readLeft("user-7")).toEqual({ rpm: 9, tpm: 992 });
});

describe("the mirror", () => {
  it("learns from the headers of an answer", async () => {
    const headers = { "x-ratelimit-remaining-tokens": "400", "x-ratelimit-limit-tokens": "1000" };
    await limitLanguageModel(options).wrapGenerate({
      doGenerate: async () => ({ content: [], usage: USAGE, response: { headers } }),
      params: PARAMS,
      model: MODEL,
    });
    await vi.waitFor(async () => expect(await readLeft("account")).toMatchObject({ tpm: 400 }));
    expect(seen).toMatchObject([{ tokens: { remaining: 400 } }]);
  });

  it("has learned from a 429 when the caller gets it, and the call is given back", async () => {
    const error = new APICallError({
      message: "Too many requests",
      url: "http://127.0.0.1",
      requestBodyValues: {},
      statusCode: 429,
      responseHeaders: { "retry-after": "5", "x-ratelimit-remaining-requests": "0" },
    });
    const answer = limitLanguageModel(options).wrapGenerate({
      doGenerate: () => Promise.reject(error),
      params: PARAMS,
      model: MODEL,
    });
    await expect(answer).rejects.toBe(error);
    expect((await readLeft("account"))["rpm"]).toBeLessThanOrEqual(0);
    expect(await readLeft("key-1")).toEqual({ rpm: 10, tpm: 1000 });
    expect(records).toMatchObject([{ end: "failed" }]);
  });
});
