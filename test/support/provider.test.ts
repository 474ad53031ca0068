// The real clients understand the server, so the recipes are tried against the protocols.
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ANSWER, answerTokens, questionTokens, startProvider, type Provider } from "./provider.ts";

const messages = [{ role: "user" as const, content: "What is a token bucket?" }];
const [INPUT, OUTPUT] = [questionTokens(messages), answerTokens(ANSWER)];

let provider: Provider;
let openai: OpenAI;
let anthropic: Anthropic;

beforeAll(async () => {
  provider = await startProvider();
  const { environment } = provider;
  openai = new OpenAI({ baseURL: environment["OPENAI_BASE_URL"]!, apiKey: "local" });
  anthropic = new Anthropic({ baseURL: environment["ANTHROPIC_BASE_URL"]!, apiKey: "local" });
});
afterAll(() => provider.stop());

it.each([
  [{ include_usage: true }, [INPUT + OUTPUT]],
  [undefined, []],
])("OpenAI's stream with the options %j has the usages %j", async (options, expected) => {
  const stream = await openai.chat.completions.create({
    model: "gpt-4.1-mini",
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

it("Anthropic's stream has the input tokens at its start, and the output tokens at its end", async () => {
  const request = { model: "claude-haiku-4-5", max_tokens: 50, messages };
  const stream = await anthropic.messages.create({ ...request, stream: true });
  const usages: unknown[] = [];
  for await (const event of stream) {
    if (event.type === "message_start") usages.push(event.message.usage.input_tokens);
    if (event.type === "message_delta") usages.push(event.usage.output_tokens);
  }
  expect(usages).toEqual([INPUT, OUTPUT]);

  const whole = await anthropic.messages.stream(request).finalMessage();
  expect(whole.content).toMatchObject([{ type: "text", text: ANSWER }]);
  expect(whole.usage).toMatchObject({ input_tokens: INPUT, output_tokens: OUTPUT });
});
