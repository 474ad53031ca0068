/* Our types beside those of the clients. Compiled by `tsc -b`; nothing here runs. */
import Anthropic, { type Middleware } from "@anthropic-ai/sdk";
import Anthropic0 from "anthropic-sdk-0";
import OpenAI from "openai";
import { expectTypeOf } from "vitest";
import type { RateLimiter } from "zae-limiter";
import { limitFetch, limitMiddleware } from "zae-limiter/anthropic";
import { METERING } from "zae-limiter/llm";

declare const limiter: RateLimiter;
const options = { limiter, entity: "key-1", metering: METERING.anthropic };

const middleware = limitMiddleware({
  ...options,
  entity: ({ url, headers, model }) => {
    expectTypeOf(url).toEqualTypeOf<URL>();
    expectTypeOf(headers).toEqualTypeOf<Headers>();
    return model;
  },
});
expectTypeOf(middleware).toExtend<Middleware>();
const client = new Anthropic({ middleware: [middleware] });
await client.messages.create(
  { model: "claude", max_tokens: 1, messages: [] },
  { middleware: [middleware] },
);

const fetch = limitFetch({ ...options, refusal: "throw", usage: "leave", otherPaths: "requests" });
expectTypeOf(fetch).toEqualTypeOf<typeof globalThis.fetch>();
for (const Client of [Anthropic, Anthropic0]) expectTypeOf(new Client({ fetch })).toBeObject();
expectTypeOf(new OpenAI({ fetch })).toBeObject();

// @ts-expect-error: a middleware throws its refusals
limitMiddleware({ ...options, refusal: "respond" });
// @ts-expect-error: the entity is missing
limitFetch({ limiter, metering: METERING.openai });
