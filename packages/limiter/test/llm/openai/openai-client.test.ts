/* OpenAI's own client with `limitFetch`, besides what every client does in the matrix. */
import OpenAI, { APIUserAbortError } from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { limitFetch, type FetchOptions } from "zae-limiter/openai";
import { startProvider, type Provider } from "../../../../../examples/local-provider/provider.ts";
import { meteredCalls } from "../metered-calls.ts";

const MODEL = "gpt-4.1-mini";
const messages = [{ role: "user" as const, content: "What is a token bucket?" }];
/** The provider counts three bytes of a question, and the words of its answer. */
const [INPUT, OUTPUT] = [8, 8];
const USED = { rpm: 1, tpm: INPUT + OUTPUT };
const COMPLETE = {
  end: "complete",
  source: "reported",
  usage: { input: INPUT, cachedInput: 0, cacheWriteInput: 0, output: OUTPUT, reasoning: 0 },
};
const tools = [
  {
    type: "function" as const,
    function: {
      name: "weather",
      parameters: { type: "object", properties: { city: { type: "string" } } },
    },
  },
];

let provider: Provider;
beforeAll(async () => {
  provider = await startProvider();
});
afterAll(() => provider.stop());

async function limitedClient(changes: FetchOptions = {}) {
  const calls = await meteredCalls();
  const client = new OpenAI({
    baseURL: `${provider.url}/v1`,
    apiKey: "local",
    maxRetries: 0,
    fetch: limitFetch({ ...calls.options, ...changes }),
  });
  return { ...calls, client };
}

describe("what is settled to the reported usage", () => {
  type Call = (client: OpenAI) => Promise<unknown>;
  it.each<[string, Call]>([
    ["a chat completion", (client) => client.chat.completions.create({ model: MODEL, messages })],
    ["a response", (client) => client.responses.create({ model: MODEL, input: messages })],
    [
      "a streamed response",
      (client) => client.responses.stream({ model: MODEL, input: messages }).finalResponse(),
    ],
    [
      "a stream of chunks",
      async (client) => {
        const stream = await client.chat.completions.create({
          model: MODEL,
          messages,
          stream: true,
        });
        for await (const chunk of stream) expect(chunk.choices).toHaveLength(1);
      },
    ],
    [
      "a stream with helpers",
      async (client) => {
        const stream = client.chat.completions.stream({ model: MODEL, messages });
        const whole = await stream.finalChatCompletion();
        expect(whole.usage ?? undefined).toBeUndefined();
        expect(await stream.totalUsage()).toMatchObject({ total_tokens: 0 });
      },
    ],
    [
      "a stream that asks for its usage itself",
      async (client) => {
        const stream_options = { include_usage: true };
        const stream = client.chat.completions.stream({ model: MODEL, messages, stream_options });
        expect(await stream.totalUsage()).toMatchObject({ total_tokens: INPUT + OUTPUT });
      },
    ],
  ])("%s", async (_name, call) => {
    const { client, records, taken } = await limitedClient();
    await call(client);
    expect(records).toMatchObject([{ ...COMPLETE, model: MODEL, entityId: "key-1" }]);
    expect(await taken(MODEL)).toEqual(USED);
  });

  it("embeddings, which reserve no output", async () => {
    const { client, records, taken } = await limitedClient();
    await client.embeddings.create({ model: MODEL, input: ["abc", "defghi"] });
    expect(records).toMatchObject([{ estimate: { output: 0 }, usage: { input: 3, output: 0 } }]);
    expect(await taken(MODEL)).toEqual({ rpm: 1, tpm: 3 });
  });

  it.each([true, false])("calls of tools, streamed: %s", async (isStreamed) => {
    const { client, records, taken } = await limitedClient();
    const options = { headers: { "x-local-tool-calls": "1" } };
    const request = { model: MODEL, messages, tools };
    const { choices } = isStreamed
      ? await client.chat.completions.stream(request, options).finalChatCompletion()
      : await client.chat.completions.create(request, options);
    const [call] = choices[0]!.message.tool_calls!;
    expect(call).toMatchObject({ function: { arguments: '{"city":"city"}' } });
    expect(records).toMatchObject([{ end: "complete", source: "reported", usage: { output: 1 } }]);
    expect(await taken(MODEL)).toEqual({ rpm: 1, tpm: INPUT + 1 });
  });
});

it("counts what went by where the usage is not asked for", async () => {
  const { client, records } = await limitedClient({ usage: "leave" });
  const asked = provider.requests.length;
  const stream = await client.chat.completions.create({ model: MODEL, messages, stream: true });
  for await (const chunk of stream) expect(chunk.usage).toBeUndefined();
  expect(provider.requests[asked]?.body.stream_options).toBeUndefined();
  expect(records).toMatchObject([{ end: "complete", source: "counted" }]);
});

it("charges nothing when the caller aborts while the call waits for tokens", async () => {
  const { options, limiter, records, taken } = await meteredCalls({ waitUpToMs: 60_000 });
  const hold = await limiter.acquire({
    entityId: "key-1",
    resource: MODEL,
    consume: { tpm: 10_000 },
  });
  const asked = provider.requests.length;
  const controller = new AbortController();
  const client = new OpenAI({
    baseURL: `${provider.url}/v1`,
    apiKey: "local",
    fetch: limitFetch(options),
  });
  const call = client.chat.completions.create(
    { model: MODEL, messages },
    { signal: controller.signal },
  );
  setImmediate(() => controller.abort());
  await expect(call).rejects.toThrow(APIUserAbortError);
  await hold.rollback();
  expect([provider.requests.length, records]).toEqual([asked, []]);
  expect(await taken(MODEL)).toEqual({});
});

it("passes what is not a model call, or takes a request for it", async () => {
  const passed = await limitedClient();
  expect((await passed.client.models.list()).data).not.toEqual([]);
  expect(passed.records).toEqual([]);
  const limited = await limitedClient({ otherPaths: "requests" });
  expect((await limited.client.models.list()).data).not.toEqual([]);
  expect(limited.records).toMatchObject([{ model: "unknown", end: "complete" }]);
  expect(await limited.taken("unknown")).toEqual({ rpm: 1 });
});
