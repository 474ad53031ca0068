/*
 * Plays our refusals to a provider's own client. Its waits take no time, but advance the limiter's
 * clock.
 *
 * As a program, `node refused-client.ts` plays OpenAI's version 7, which needs Node 22, and prints
 * the outcomes.
 */
import { Limit, RateLimiter } from "zae-limiter";
import type { MeteredOptions } from "zae-limiter/llm";
import { MemoryRepository } from "zae-limiter/memory";
import { limitFetch, type FetchOptions, type LlmRequest } from "zae-limiter/openai";
import { ManualClock } from "zae-limiter/testing";
import { startProvider } from "../../../../../examples/local-provider/provider.ts";

/** Calls a model once, with a client that has this `fetch`. */
export type CallOnce = (client: {
  readonly url: string;
  readonly fetch: typeof globalThis.fetch;
  readonly maxRetries?: number;
}) => Promise<unknown>;

/** How a client reacted to a refusal. */
export interface Played {
  /** How often it tried. */
  readonly attempts: number;
  /** How long it waited in between, in milliseconds. */
  readonly waits: readonly number[];
  /** The error that it threw, if any. */
  readonly error: object | undefined;
}

/** Two requests a minute: half a minute until the next one fits. */
const WAIT_MS = 30_000;
const LIMITS = [Limit.perMinute("rpm", 2), Limit.perDay("rpd", 100)];

type Options = Partial<MeteredOptions<LlmRequest>> & FetchOptions;

/** Plays every refusal. */
export async function playRefusals(call: CallOnce): Promise<Readonly<Record<string, Played>>> {
  const provider = await startProvider();
  const play = (scene: Scene): Promise<Played> => getPlayed(call, provider.url, scene);
  const all = {
    waits: await play({ taken: { rpm: 2 } }),
    givesUp: await play({ taken: { rpm: 2 }, isClockStopped: true }),
    long: await play({ taken: { rpd: 100 } }),
    never: await play({ metering: { rpm: { requests: 3 } } }),
    mistake: await play({ metering: { tpm: { requests: 1 } } }),
    closed: await play({ isClosed: true, maxRetries: 0 }),
    thrown: await play({ taken: { rpm: 2 }, refusal: "throw", maxRetries: 0 }),
  };
  await provider.stop();
  return all;
}

interface Scene extends Options {
  /** Tokens that others have taken before. */
  readonly taken?: Readonly<Record<string, number>>;
  readonly isClockStopped?: boolean;
  readonly isClosed?: boolean;
  readonly maxRetries?: number;
}

async function getPlayed(call: CallOnce, url: string, scene: Scene): Promise<Played> {
  const { taken = {}, isClockStopped, isClosed, maxRetries, ...options } = scene;
  const clock = new ManualClock();
  const repository = new MemoryRepository({ clock });
  await repository.setSystemDefaults(LIMITS);
  const limiter = new RateLimiter({ repository });
  await limiter.charge({ entityId: "key-1", resource: "some-model", amounts: taken });
  if (isClosed === true) await limiter.close();
  let attempts = 0;
  const fetch = limitFetch({
    limiter,
    entity: () => {
      attempts += 1;
      return "key-1";
    },
    metering: { rpm: { requests: 1 }, rpd: { requests: 1 } },
    ...options,
  });
  const waits: number[] = [];
  const client = { url, fetch, ...(maxRetries !== undefined && { maxRetries }) };
  const error = await withoutWaiting(
    async (ms) => {
      waits.push(ms);
      if (isClockStopped !== true) await clock.advance(ms);
    },
    () => call(client).then(() => undefined, catchError),
  );
  await repository.close();
  return { attempts, waits, error };
}

/** Runs without the waits of clients, and reports them instead. */
async function withoutWaiting<T>(
  waited: (ms: number) => Promise<void>,
  work: () => Promise<T>,
): Promise<T> {
  const { setTimeout } = globalThis;
  const instead = (callback: () => void, ms?: number): unknown =>
    ms === WAIT_MS ? void waited(ms).then(callback) : setTimeout(callback, ms);
  globalThis.setTimeout = instead as typeof setTimeout;
  try {
    return await work();
  } finally {
    globalThis.setTimeout = setTimeout;
  }
}

function catchError(error: unknown): object {
  const { constructor, status, message, headers, error: body, cause } = Object(error);
  const name = (constructor as { readonly name: string }).name;
  const retryAfterMs = (headers as Headers | undefined)?.get("retry-after-ms");
  const code = Object(cause).code as unknown;
  return { name, status, message, body, retryAfterMs, code };
}

if (process.argv[1]?.endsWith("refused-client.ts") === true) {
  const { default: OpenAI } = await import("openai-7");
  const seen = await playRefusals(({ url, ...options }) =>
    new OpenAI({ ...options, baseURL: `${url}/v1`, apiKey: "local" }).responses.create({
      model: "some-model",
      input: "What is a token bucket?",
    }),
  );
  process.stdout.write(JSON.stringify(seen));
}
