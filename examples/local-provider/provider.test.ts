// Real clients understand the provider. Its answers, tool calls and faults, in every protocol, are
// what the matrix of packages/limiter/test/llm is played with.
import Anthropic from "@anthropic-ai/sdk";
import OpenAI, { RateLimitError } from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Account } from "./account.ts";
import { startProvider, type Provider } from "./provider.ts";
import { questionTokens } from "./request.ts";
import { answerTokens } from "./respond.ts";
import { ANSWER } from "./wishes.ts";

const messages = [{ role: "user" as const, content: "What is a token bucket?" }];
const [INPUT, OUTPUT] = [questionTokens({ messages }), answerTokens(ANSWER)];
const GPT = "gpt-4.1-mini";
const CLAUDE = { model: "claude-haiku-4-5", max_tokens: 50, messages };

let provider: Provider;
let openai: OpenAI;
let anthropic: Anthropic;

beforeAll(async () => {
  provider = await startProvider();
  openai = new OpenAI({ baseURL: `${provider.url}/v1`, apiKey: "local", maxRetries: 0 });
  anthropic = new Anthropic({ baseURL: provider.url, apiKey: "local", maxRetries: 0 });
});
afterAll(() => provider.stop());

describe("chat completions", () => {
  it.each([
    [{ include_usage: true }, [INPUT + OUTPUT]],
    [undefined, []],
  ])("stream with the options %j and the usages %j", async (options, expected) => {
    const stream = await openai.chat.completions.create({
      model: GPT,
      messages,
      stream: true,
      ...(options && { stream_options: options }),
    });
    let text = "";
    const usages: number[] = [];
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? "";
      if (chunk.usage) usages.push(chunk.usage.total_tokens);
    }
    expect(text).toBe(ANSWER);
    expect(usages).toEqual(expected);
  });

  it("stop at the request's maximum", async () => {
    const { choices, usage } = await openai.chat.completions.create(
      { model: GPT, messages, max_completion_tokens: 3, n: 2 },
      { headers: { "x-local-answer": "5" } },
    );
    expect(choices.map(({ finish_reason }) => finish_reason)).toEqual(["length", "length"]);
    expect(choices[1]?.message.content).toBe("word word word ");
    expect(usage?.completion_tokens).toBe(6);
  });
});

it("lists models", async () => {
  const names = (await openai.models.list()).data.map(({ id }) => id);
  expect(names).toContain(GPT);
});

describe("messages", () => {
  it("report the input tokens at the start of a stream, and the output tokens at its end", async () => {
    const stream = await anthropic.messages.create({ ...CLAUDE, stream: true });
    const usages: unknown[] = [];
    for await (const event of stream) {
      if (event.type === "message_start") usages.push(event.message.usage.input_tokens);
      if (event.type === "message_delta") usages.push(event.usage.output_tokens);
    }
    expect(usages).toEqual([INPUT, OUTPUT]);

    const whole = await anthropic.messages.stream(CLAUDE).finalMessage();
    expect(whole.content).toMatchObject([{ type: "text", text: ANSWER }]);
    expect(whole.usage).toMatchObject({ input_tokens: INPUT, output_tokens: OUTPUT });
  });
});

it("refuses when its account is used up, and reports what is left", async () => {
  const account = { requestsPerMinute: 600, tokensPerMinute: INPUT + OUTPUT };
  const limited = await startProvider({ account });
  try {
    const client = openai.withOptions({ baseURL: `${limited.url}/v1` });
    const request = { model: GPT, messages };
    const { response } = await client.chat.completions.create(request).withResponse();
    expect(response.headers.get("x-ratelimit-limit-tokens")).toBe("16");
    expect(response.headers.get("x-ratelimit-remaining-requests")).toBe("599");
    const refused = await client.chat.completions.create(request).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(RateLimitError);
    const { headers } = refused as RateLimitError;
    expect(Number(headers?.get("retry-after-ms"))).toBeGreaterThan(50_000);
    expect(Object.fromEntries(limited.statuses)).toEqual({ 200: 1, 429: 1 });
  } finally {
    await limited.stop();
  }
});

it("fills an account evenly, and takes nothing for what it refuses", () => {
  let nowMs = 0;
  const account = new Account({ requestsPerMinute: 60, tokensPerMinute: 600, now: () => nowMs });
  expect(account.take(600)).toBe(0);
  expect(account.take(10)).toBe(1000);
  nowMs = 1000;
  expect(account.take(10)).toBe(0);
  expect(account.headers("anthropic", 0)).toEqual({
    "anthropic-ratelimit-requests-limit": "60",
    "anthropic-ratelimit-requests-remaining": "59",
    "anthropic-ratelimit-requests-reset": "1970-01-01T00:00:01.000Z",
    "anthropic-ratelimit-tokens-limit": "600",
    "anthropic-ratelimit-tokens-remaining": "0",
    "anthropic-ratelimit-tokens-reset": "1970-01-01T00:01:00.000Z",
  });
});
