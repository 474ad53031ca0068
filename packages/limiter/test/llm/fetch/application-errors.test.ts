/* Errors of `entity` and of an estimator are the `cause` of what the SDKs throw. */
import Anthropic from "@anthropic-ai/sdk";
import Anthropic0 from "anthropic-sdk-0";
import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { RateLimiterUnavailable, ValidationError } from "zae-limiter";
import { limitFetch, limitMiddleware, type LlmRequest } from "zae-limiter/anthropic";
import type { MeteredOptions } from "zae-limiter/llm";
import { meteredCalls } from "../metered-calls.ts";

const messages = [{ role: "user" as const, content: "What is a token bucket?" }];
const COMPLETION = { model: "gpt-5", messages };
const MESSAGE = { ...COMPLETION, max_tokens: 50 };
/** Nothing is sent there. */
const SETTINGS = { apiKey: "local", baseURL: "http://127.0.0.1:1", maxRetries: 0 };

type Options = MeteredOptions<LlmRequest>;

const CLIENTS: Readonly<Record<string, (options: Options) => Promise<unknown>>> = {
  "openai by fetch": (options) =>
    new OpenAI({ ...SETTINGS, fetch: limitFetch(options) }).chat.completions.create(COMPLETION),
  "openai by fetch that throws": (options) =>
    new OpenAI({
      ...SETTINGS,
      fetch: limitFetch({ ...options, refusal: "throw" }),
    }).chat.completions.create(COMPLETION),
  "anthropic 0 by fetch": (options) =>
    new Anthropic0({ ...SETTINGS, fetch: limitFetch(options) }).messages.create(MESSAGE),
  "anthropic 1 by fetch": (options) =>
    new Anthropic({ ...SETTINGS, fetch: limitFetch(options) }).messages.create(MESSAGE),
};

const byMiddleware = (options: Options): Promise<unknown> =>
  new Anthropic({ ...SETTINGS, middleware: [limitMiddleware(options)] }).messages.create(MESSAGE);

/** The functions that may throw. */
const OWNERS: Readonly<Record<string, (thrown: unknown) => Partial<Options>>> = {
  entity: (thrown) => ({ entity: () => throwing(thrown) }),
  "an entity that is looked up": (thrown) => ({ entity: async () => throwing(thrown) }),
  resource: (thrown) => ({ resource: () => throwing(thrown) }),
  estimator: (thrown) => ({ estimator: { estimate: () => throwing(thrown) } }),
};

const ERRORS: readonly Error[] = [
  new TypeError("Cannot read properties of undefined (reading 'keyId')"),
  new ValidationError("keyId", "?", "must be known"),
  new RateLimiterUnavailable("The store of the keys is unavailable"),
];

/** SDKs take these for a time-out of their own, which has no cause. */
const TIME_OUTS: readonly Error[] = [
  new Error("Query timed out"),
  new Error("No key", { cause: new Error("connect timeout") }),
  new DOMException("The operation was aborted", "AbortError"),
];

function throwing(error: unknown): never {
  throw error;
}

async function thrownBy(
  call: (options: Options) => Promise<unknown>,
  changes: Partial<Options>,
): Promise<Error> {
  const { options, records } = await meteredCalls<LlmRequest>(changes);
  const error: unknown = await call(options).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(Error);
  expect(records).toEqual([]);
  return error as Error;
}

function listCauses(error: Error): readonly unknown[] {
  const causes: unknown[] = [];
  for (let { cause } = error; cause instanceof Error; { cause } = cause) causes.push(cause);
  return causes;
}

describe.each(Object.entries(OWNERS))("what %s throws", (_owner, changesFor) => {
  describe.each(Object.entries(CLIENTS))("%s", (_client, call) => {
    it.each(ERRORS)("is the cause: %s", async (error) => {
      expect((await thrownBy(call, changesFor(error))).cause).toBe(error);
    });

    it.each(TIME_OUTS)("is among the causes, not lost: %s", async (error) => {
      expect(listCauses(await thrownBy(call, changesFor(error)))).toContain(error);
    });
  });

  it.each(ERRORS)("anthropic 1 by middleware throws itself: %s", async (error) => {
    expect(await thrownBy(byMiddleware, changesFor(error))).toBe(error);
  });

  it.each(TIME_OUTS)("anthropic 1 by middleware does not lose: %s", async (error) => {
    expect(listCauses(await thrownBy(byMiddleware, changesFor(error)))).toContain(error);
  });
});
