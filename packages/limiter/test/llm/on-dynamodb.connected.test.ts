import { expect, it } from "vitest";
import { Limit, RateLimiter, RateLimitExceeded } from "zae-limiter";
import { limitLanguageModel } from "zae-limiter/ai-sdk";
import { openAggregator } from "zae-limiter/aggregator";
import { METERING, simpleEstimator, type MeteredRecord } from "zae-limiter/llm";
import { limitFetch } from "zae-limiter/openai";
import { connect } from "../support/connect.ts";
import { describeWithEngine } from "../support/engine.ts";
import { useProxiedTable } from "../support/proxied-table.ts";
import { StreamReader } from "../support/stream-reader.ts";
import { BODIES, event, posted } from "./fetch/provider-answers.ts";
import { summarize } from "./metered-calls.ts";

/** Reserved for each call, besides its input, which is empty. */
const OUTPUT = 100;
const BUDGET = 5000;
const REQUESTS = 1000;
const FIRST = { rpm: 1, tpm: 1 };

/** Takes are 256 tokens each. */
const STRIDE = 256;

/** One token in three years, so that none flows back. */
const buildLimit = (name: string, capacity: number): Limit =>
  Limit.custom({ name, capacity, refillAmount: 1, refillPeriodSeconds: 100_000_000 });

const answers =
  (body: object, status = 200, headers = {}): typeof fetch =>
  async () =>
    Response.json(body, { status, headers });

/** Streams words of a token each. Reports them, and 3 tokens for the prompt. */
const streams =
  (words: number): typeof fetch =>
  async () => {
    const { readable, writable } = new TransformStream<string, string>();
    const writer = writable.getWriter();
    const write = async (): Promise<void> => {
      for (let word = 0; word < words; word += 1)
        await writer.write(event({ choices: [{ index: 0, delta: { content: "word" } }] }));
      const usage = { prompt_tokens: 3, completion_tokens: words };
      await writer.write(event({ choices: [], usage }));
      await writer.write(event("[DONE]"));
      await writer.close();
    };
    write().catch(() => {}); // a reader that stops cancels it
    const headers = { "content-type": "text/event-stream" };
    return new Response(readable.pipeThrough(new TextEncoderStream()), { headers });
  };

const post = (stream: boolean, signal?: AbortSignal): [string, RequestInit] => {
  const [url, init] = posted("http://provider.test", "chat/completions", stream);
  return [url, { ...init, ...(signal && { signal }) }];
};

/** Reads a body. Returns the error that it ends with, if any. */
const waitForEnd = async ({ body }: Response): Promise<unknown> => {
  try {
    for await (const _ of body!);
    return undefined;
  } catch (error) {
    return error;
  }
};

describeWithEngine("LLM calls on DynamoDB", (engine) => {
  const table = useProxiedTable(engine, "lean");

  /** A child with a parent, both known to the process, and calls of the child. */
  const setting = async (options: { readonly requestTimeoutMs?: number } = {}) => {
    const repository = await table.open("app", { stream: true, maxAttempts: 2, ...options });
    await repository.setSystemDefaults([buildLimit("rpm", REQUESTS), buildLimit("tpm", BUDGET)]);
    await repository.createEntity("team");
    await repository.createEntity("key-1", { parentId: "team", cascade: true });
    const limiter = new RateLimiter({ repository });
    // The first call makes the buckets, and all their counters.
    await limiter.acquire({ entityId: "key-1", resource: "gpt-5", consume: FIRST }, () => {});
    const ends: string[] = [];
    const metered = {
      limiter,
      entity: "key-1",
      metering: METERING.openai,
      estimator: simpleEstimator({ output: OUTPUT }),
      onSettled: (record: MeteredRecord) => void ends.push(summarize(record)),
    };
    const taken = async (entityId: string): Promise<Record<string, number>> => {
      const { rpm, tpm } = await limiter.available(entityId, "gpt-5");
      return { rpm: REQUESTS - FIRST.rpm - rpm!, tpm: BUDGET - FIRST.tpm - tpm! };
    };
    return { repository, limiter, metered, ends, taken };
  };

  /** Counts what the stream of the table holds. */
  const aggregate = async (stack: string): Promise<void> => {
    const { endpointUrl } = engine();
    const aggregator = await openAggregator({ stack, endpointUrl, region: "us-east-1" });
    const { connection } = await connect(endpointUrl, { tableName: stack });
    const records = await (await StreamReader.open(connection)).read();
    expect((await aggregator.process(records)).failures).toEqual([]);
    await aggregator.pulse();
    aggregator.close();
    connection.close();
  };

  it("are a request to take, with the parent, and one to settle, however they end", async () => {
    const { repository, metered, ends, taken } = await setting();
    const limited = (fetch: typeof globalThis.fetch) => limitFetch(metered, fetch);
    const abort = new AbortController();
    const ways: Record<string, () => Promise<unknown>> = {
      answered: async () =>
        (await limited(answers(BODIES["chat/completions"]!))(...post(false))).json(),
      failed: () => limited(answers({}, 500))(...post(false)),
      streamed: async () => waitForEnd(await limited(streams(20))(...post(true))),
      left: async () => {
        for await (const _ of (await limited(streams(20))(...post(true))).body!) break;
      },
      aborted: async () => {
        const { body } = await limited(streams(20))(...post(true, abort.signal));
        const reader = body!.getReader();
        await reader.read();
        abort.abort();
        await expect(reader.read()).rejects.toThrow("aborted");
      },
      generated: () =>
        limitLanguageModel(metered).wrapGenerate({
          doGenerate: async () => ({
            usage: { inputTokens: { total: 3 }, outputTokens: { total: 2 } },
          }),
          params: { prompt: [] },
          model: { provider: "p", modelId: "gpt-5" },
        }),
    };
    for (const [way, call] of Object.entries(ways))
      expect(await table.listOperations(call), way).toEqual([
        "BatchExecuteStatement",
        "BatchExecuteStatement",
      ]);
    expect(ends).toEqual([
      "complete reported 3+2",
      "failed estimated 0+0",
      "complete reported 3+20",
      "abandoned counted 0+1",
      "abandoned counted 0+1",
      "complete reported 3+2",
    ]);
    const used = { rpm: 5, tpm: 35 };
    expect([await taken("key-1"), await taken("team")]).toEqual([used, used]);
    await aggregate(repository.tableName);
    for (const entityId of ["key-1", "team"])
      expect(await repository.getUsageSummary({ entityId, resource: "gpt-5" })).toMatchObject({
        total: { rpm: used.rpm + FIRST.rpm, tpm: used.tpm + FIRST.tpm },
        requests: used.rpm + 1,
      });
  });

  it("take on for a stream once every 256 tokens, until the parent has no more", async () => {
    const { metered, taken, ends } = await setting();
    const strict = (words: number) =>
      limitFetch({ ...metered, overrun: "stop" }, streams(words))(...post(true));
    const whole = await table.listOperations(async () => waitForEnd(await strict(1000)));
    expect(whole).toHaveLength(1 + Math.ceil((1000 - OUTPUT) / STRIDE) + 1);
    expect(await taken("team")).toEqual({ rpm: 1, tpm: 1003 });
    expect(await waitForEnd(await strict(100_000))).toBeInstanceOf(RateLimitExceeded);
    expect(await taken("team")).toEqual({ rpm: 2, tpm: BUDGET - FIRST.tpm });
    expect(await taken("key-1")).toEqual({ rpm: 2, tpm: BUDGET - FIRST.tpm });
    expect(ends.at(-1)).toMatch(/^stopped counted/);
  });
});
