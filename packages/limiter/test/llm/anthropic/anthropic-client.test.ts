/* Anthropic's client, besides what every client does in the matrix. */
import Anthropic, { type Middleware } from "@anthropic-ai/sdk";
import { afterAll, beforeAll, expect, it } from "vitest";
import { RateLimitExceeded } from "zae-limiter";
import { limitMiddleware } from "zae-limiter/anthropic";
import { METERING } from "zae-limiter/llm";
import { startProvider, type Provider } from "../../../../../examples/local-provider/provider.ts";
import { meteredCalls } from "../metered-calls.ts";

const MODEL = "claude-haiku-4-5";
const messages = [{ role: "user" as const, content: "What is a token bucket?" }];
const REQUEST = { model: MODEL, max_tokens: 50, messages };

let provider: Provider;
beforeAll(async () => {
  provider = await startProvider();
});
afterAll(() => provider.stop());

it("the middleware does not limit requests that are not for a model", async () => {
  const { options, records } = await meteredCalls({ metering: METERING.anthropic });
  const client = new Anthropic({
    baseURL: provider.url,
    apiKey: "local",
    maxRetries: 0,
    middleware: [limitMiddleware(options)],
  });
  await expect(client.messages.countTokens(REQUEST)).rejects.toThrow("There is no");
  expect(records).toEqual([]);
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
  /** A client of another backend, which sends its requests to another address. */
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

it("a middleware that is used as a fetch throws an error with advice", async () => {
  const { options } = await meteredCalls();
  const fetch = limitMiddleware(options) as unknown as typeof globalThis.fetch;
  const client = new Anthropic({ apiKey: "local", maxRetries: 0, fetch });
  await expect(client.messages.create(REQUEST)).rejects.toMatchObject({
    cause: { message: expect.stringContaining("limitMiddleware does not return a fetch function") },
  });
});
