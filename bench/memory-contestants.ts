import { RateLimiterMemory, RateLimiterUnion } from "rate-limiter-flexible";
import { Limit, RateLimiter } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";

/**
 * Does one operation for each of the keys that `next` answers. The loop is each contestant's own,
 * so that none pays for a wrapper.
 */
export type Run = (operations: number, next: () => string) => Promise<void>;

/** So large that nobody is ever refused; still exact for both sides. */
const NEVER_REACHED = 1_000_000_000;

/** So long that no window and no timer of the peer ends within a run. */
const WINDOW_SECONDS = 3600;

/**
 * Our limits refill so slowly that a bucket is never full again within a run: a full one may be
 * forgotten, and would cost nothing.
 */
const SLOWLY = { capacity: NEVER_REACHED, refillAmount: 1, refillPeriodSeconds: WINDOW_SECONDS };

/**
 * Every contestant by the name that the tables use: ours with and without usage, the peer with one
 * limit and with two.
 */
export const CONTESTANTS: Readonly<Record<string, () => Run | Promise<Run>>> = {
  "zae-limiter, two limits, usage on": () => twoLimits({ recordUsage: true }),
  "zae-limiter, two limits, usage off": () => twoLimits({ recordUsage: false }),
  "rate-limiter-flexible, one limit": peerSingle,
  "rate-limiter-flexible, union of two": peerUnion,
};

/** The keys that every contestant is asked for. */
export function keyAt(index: number): string {
  return `customer-${index}`;
}

async function twoLimits(options: { readonly recordUsage: boolean }): Promise<Run> {
  const repository = new MemoryRepository(options);
  await repository.setSystemDefaults([
    Limit.custom({ name: "rpm", ...SLOWLY }),
    Limit.custom({ name: "tpm", ...SLOWLY }),
  ]);
  const limiter = new RateLimiter({ repository });
  return async (operations, next) => {
    for (let count = 0; count < operations; count += 1) {
      const lease = await limiter.acquire({
        entityId: next(),
        resource: "gpt-4",
        consume: { rpm: 1, tpm: 1 },
      });
      await lease.commit();
    }
  };
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
