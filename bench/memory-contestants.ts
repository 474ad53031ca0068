import { RateLimiterMemory, RateLimiterUnion } from "rate-limiter-flexible";
import * as library from "zae-limiter";
import type { Amounts, Limit } from "zae-limiter";
import * as memory from "zae-limiter/memory";

/**
 * Does one operation for each of the keys that `next` answers. The loop is each contestant's own,
 * so that none pays for a wrapper.
 */
export type Run = (operations: number, next: () => string) => Promise<void>;

/** So large that no call is ever refused; still exact for both sides. */
export const NEVER_REACHED = 1_000_000_000;

/** So long that no window and no timer of the peer ends within a run. */
const WINDOW_SECONDS = 3600;

/**
 * Our limits refill so slowly that a bucket is never full again within a run: a full one may be
 * forgotten, and would cost nothing.
 */
const SLOWLY = { capacity: NEVER_REACHED, refillAmount: 1, refillPeriodSeconds: WINDOW_SECONDS };

/** Every contestant by the name that the tables use. */
export const CONTESTANTS = {
  "a pair of awaited promises": promises,
  "zae-limiter, one limit, usage on": () => ours(oneOfRpm, { recordUsage: true }),
  "zae-limiter, one limit, usage off": () => ours(oneOfRpm, { recordUsage: false }),
  "zae-limiter, two limits, usage on": () => ours(oneOfEach, { recordUsage: true }),
  "zae-limiter, two limits, usage off": () => ours(oneOfEach, { recordUsage: false }),
  "rate-limiter-flexible, one limit": peerSingle,
  "rate-limiter-flexible, union of two": peerUnion,
} as const satisfies Readonly<Record<string, () => Run | Promise<Run>>>;

/** The name of a contestant of the comparison with the peer. */
export type ContestantName = keyof typeof CONTESTANTS;

/** The keys that every contestant is asked for. */
export function keyAt(index: number): string {
  return `customer-${index}`;
}

/**
 * The floor: a caller that awaits a promise for its lease and one for the end of it gets no further
 * down, whatever is done in between. Nothing is here.
 */
function promises(): Run {
  return async (operations, next) => {
    for (let count = 0; count < operations; count += 1) {
      const lease = await take({ entityId: next(), resource: "gpt-4", consume: oneOfRpm() });
      await lease.commit();
    }
  };
}

async function take(request: object): Promise<Taken> {
  return new Taken(request);
}

class Taken {
  readonly request: object;

  constructor(request: object) {
    this.request = request;
  }

  async commit(): Promise<void> {}
}

/** A function, because a call has amounts of its own. */
export function oneOfRpm(): Amounts {
  return { rpm: 1 };
}

/** The same for two limits. */
export function oneOfEach(): Amounts {
  return { rpm: 1, tpm: 1 };
}

/** What an operation of ours is made with. */
interface OursOptions {
  readonly recordUsage: boolean;
  /** @default a rate */
  readonly toLimit?: (name: string, build: typeof library) => Limit;
  /** @default as it is now */
  readonly build?: { readonly library: typeof library; readonly memory: typeof memory };
}

/** Ours, with its limits as system defaults. */
export async function ours(
  amounts: () => Amounts,
  { recordUsage, toLimit = toRate, build = { library, memory } }: OursOptions,
): Promise<Run> {
  const repository = new build.memory.MemoryRepository({ recordUsage });
  await repository.setSystemDefaults(
    Object.keys(amounts()).map((name) => toLimit(name, build.library)),
  );
  const limiter = new build.library.RateLimiter({ repository });
  return async (operations, next) => {
    for (let count = 0; count < operations; count += 1) {
      const lease = await limiter.acquire({
        entityId: next(),
        resource: "gpt-4",
        consume: amounts(),
      });
      await lease.commit();
    }
  };
}

function toRate(name: string, { Limit }: typeof library): Limit {
  return Limit.custom({ name, ...SLOWLY });
}

function peerSingle(): Run {
  const limiter = new RateLimiterMemory({ points: NEVER_REACHED, duration: WINDOW_SECONDS });
  return async (operations, next) => {
    for (let count = 0; count < operations; count += 1) await limiter.consume(next(), 1);
  };
}

function peerUnion(): Run {
  const limiter = new RateLimiterUnion(
    new RateLimiterMemory({ keyPrefix: "rpm", points: NEVER_REACHED, duration: WINDOW_SECONDS }),
    new RateLimiterMemory({ keyPrefix: "tpm", points: NEVER_REACHED, duration: WINDOW_SECONDS }),
  );
  return async (operations, next) => {
    for (let count = 0; count < operations; count += 1) await limiter.consume(next(), 1);
  };
}
