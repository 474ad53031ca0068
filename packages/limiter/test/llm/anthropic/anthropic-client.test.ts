/* Anthropic's own clients with `limitMiddleware` and `limitFetch`, against a local provider. */
import Anthropic, { type Middleware } from "@anthropic-ai/sdk";
import Anthropic0 from "anthropic-sdk-0";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RateLimitExceeded } from "zae-limiter";
import { limitFetch, limitMiddleware } from "zae-limiter/anthropic";
import { METERING } from "zae-limiter/llm";
import { startProvider, type Provider } from "../../../../../examples/local-provider/provider.ts";
import { meteredCalls } from "../fetch/metered-calls.ts";

const MODEL = "claude-haiku-4-5";
const messages = [{ role: "user" as const, content: "What is a token bucket?" }];
const REQUEST = { model: MODEL, max_tokens: 50, messages };
const [INPUT, OUTPUT] = [8, 8];
const USED = { rpm: 1, itpm: INPUT, otpm: OUTPUT };
const tools = [
  {
    name: "weather",
    input_schema: { type: "object" as const, properties: { city: { type: "string" } } },
  },
];

let provider: Provider;
beforeAll(async () => {
  provider = await startProvider();
});
afterAll(() => provider.stop());

const HOLDS = ["limitMiddleware", "limitFetch", "limitFetch of version 0"] as const;

async function limitedClient(hold: (typeof HOLDS)[number], maxRetries = 0) {
  const calls = await meteredCalls({ metering: METERING.anthropic });
  const settings = { baseURL: provider.url, apiKey: "local", maxRetries };
  const { options } = calls;
  const client =
    hold === "limitMiddleware"
      ? new Anthropic({ ...settings, middleware: [limitMiddleware(options)] })
      : hold === "limitFetch"
        ? new Anthropic({ ...settings, fetch: limitFetch(options) })
        : // What is used of it here is the same in both versions.
          (new Anthropic0({ ...settings, fetch: limitFetch(options) }) as unknown as Anthropic);
  return { ...calls, client };
}

describe.each(HOLDS)("%s", (hold) => {
  type Call = (client: Anthropic) => Promise<unknown>;
  it.each<[string, Call]>([
    ["a message", (client) => client.messages.create(REQUEST)],
    ["a stream with helpers", (client) => client.messages.stream(REQUEST).finalMessage()],
    [
      "a stream of events",
      async (client) => {
        const types: string[] = [];
        for await (const { type } of await client.messages.create({ ...REQUEST, stream: true }))
          types.push(type);
        expect(types.at(-1)).toBe("message_stop");
      },
    ],
  ])("settles %s to the reported usage", async (_name, call) => {
    const { client, records, taken } = await limitedClient(hold);
    await call(client);
    expect(records).toMatchObject([
      {
        model: MODEL,
        end: "complete",
        source: "reported",
        usage: { input: INPUT, output: OUTPUT },
      },
    ]);
    expect(await taken(MODEL)).toEqual(USED);
  });

  it("settles calls of tools", async () => {
    const { client, records } = await limitedClient(hold);
    const options = { headers: { "x-local-tool-calls": "1" } };
    for (const { content } of [
      await client.messages.stream({ ...REQUEST, tools }, options).finalMessage(),
      await client.messages.create({ ...REQUEST, tools }, options),
    ])
      expect(content).toMatchObject([{ type: "tool_use", input: { city: "city" } }]);
    expect(records.map(({ source }) => source)).toEqual(["reported", "reported"]);
  });

  it("counts what was delivered of a stream that is left", async () => {
    const { client, records } = await limitedClient(hold);
    const options = { headers: { "x-local-fault": "slow" } };
    const hangUp = provider.nextHangUp();
    const stream = await client.messages.create({ ...REQUEST, stream: true }, options);
    let text = "";
    for await (const event of stream) {
      if (event.type === "content_block_delta" && event.delta.type === "text_delta")
        text += event.delta.text;
      if (text === "A bucket holds ") break;
    }
    await hangUp;
    while (records.length === 0) await new Promise(setImmediate);
    expect(records).toMatchObject([
      { end: "abandoned", source: "counted", usage: { input: INPUT, output: 4 } },
    ]);
  });

  it("takes for each attempt of the client, and gives back those that fail", async () => {
    const { client, records, taken } = await limitedClient(hold, 1);
    const fault = { "x-local-fault": "529 1", "x-local-call": hold };
    const headers = { ...fault, "x-local-headers": '{"retry-after-ms":"1"}' };
    await client.messages.create(REQUEST, { headers });
    expect(records.map(({ end }) => end)).toEqual(["failed", "complete"]);
    expect(await taken(MODEL)).toEqual(USED);
  });

  it("gives back what could not connect", async () => {
    const { client, records, taken } = await limitedClient(hold);
    const lost = client.withOptions({ baseURL: provider.refusedUrl });
    await expect(lost.messages.create(REQUEST)).rejects.toThrow("Connection error.");
    expect(records).toMatchObject([{ end: "failed" }]);
    expect(await taken(MODEL)).toEqual({});
  });

  it("does not limit what asks no model", async () => {
    const { client, records } = await limitedClient(hold);
    await expect(client.messages.countTokens(REQUEST)).rejects.toThrow("There is no");
    expect(records).toEqual([]);
  });
});

it("the middleware throws refusals and mistakes as they are, and the client retries neither", async () => {
  const { options, limiter, records } = await meteredCalls({ metering: METERING.anthropic });
  const client = (entity: string, metering = options.metering): Anthropic =>
    new Anthropic({
      baseURL: provider.url,
      apiKey: "local",
      middleware: [limitMiddleware({ ...options, entity, metering })],
    });
  await limiter.charge({ entityId: "key-1", resource: MODEL, amounts: { otpm: 10_000 } });
  const asked = provider.requests.length;
  const refusal: unknown = await client("key-1")
    .messages.create(REQUEST)
    .catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(RateLimitExceeded);
  expect((refusal as RateLimitExceeded).primaryViolation).toMatchObject({ limitName: "otpm" });
  await expect(
    client("key-1", { wpm: { requests: 1 } }).messages.create(REQUEST),
  ).rejects.toMatchObject({ code: "ERR_LIMITER_VALIDATION" });
  expect([provider.requests.length, records]).toEqual([asked, []]);
});

it("the middleware sees what an outer one has changed, and inner ones may read the answer", async () => {
  const { options, records } = await meteredCalls({ metering: METERING.anthropic });
  const parsed: unknown[] = [];
  const told: unknown[] = [];
  const client = new Anthropic({
    baseURL: provider.url,
    apiKey: "local",
    defaultHeaders: { "x-team": "red" },
    middleware: [
      async (request, next, context) => {
        const body = JSON.stringify({ ...REQUEST, model: "claude-other" });
        const response = await next({ ...request, body });
        parsed.push(await context.parse(response));
        return response;
      },
      limitMiddleware({
        ...options,
        entity: ({ url, headers, model }) => {
          told.push(url.pathname, headers.get("x-team"), model);
          return "key-1";
        },
      }),
    ],
  });
  const message = await client.messages.create(REQUEST);
  expect(message.model).toBe("claude-other");
  expect(parsed).toEqual([message]);
  expect(told).toEqual(["/v1/messages", "red", "claude-other"]);
  expect(records).toMatchObject([{ model: "claude-other", end: "complete", source: "reported" }]);
});

it("the middleware sees Anthropic's own request, wherever the client sends it", async () => {
  const { options, records } = await meteredCalls({ metering: METERING.anthropic });
  /** A client of another backend: it sends what it is asked to another address. */
  class Elsewhere extends Anthropic {
    protected override backendMiddleware(): readonly Middleware[] {
      return [
        (request, next) => next({ ...request, url: `${provider.url}/v1/messages?region=eu` }),
      ];
    }
  }
  const client = new Elsewhere({
    baseURL: "http://backend.invalid",
    apiKey: "local",
    middleware: [limitMiddleware(options)],
  });
  await client.messages.stream(REQUEST).finalMessage();
  expect(provider.requests.at(-1)!.path).toBe("/v1/messages?region=eu");
  expect(records).toMatchObject([{ model: MODEL, end: "complete", source: "reported" }]);
});

it("a middleware says so if it is used as a fetch", async () => {
  const { options } = await meteredCalls();
  const fetch = limitMiddleware(options) as unknown as typeof globalThis.fetch;
  const client = new Anthropic({ apiKey: "local", maxRetries: 0, fetch });
  await expect(client.messages.create(REQUEST)).rejects.toMatchObject({
    cause: { message: expect.stringContaining("limitMiddleware makes no fetch") },
  });
});
