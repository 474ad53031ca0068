import { Limit, RateLimiter } from "zae-limiter";
import type { HttpLimitOptions } from "zae-limiter/http";
import { MemoryRepository } from "zae-limiter/memory";
import { ManualClock } from "zae-limiter/testing";

/** Sets up a limit of ten requests a minute, options for it, and a list of how requests ended. */
export async function tenRequests<Q>(changes: Partial<HttpLimitOptions<Q>> = {}) {
  const clock = new ManualClock();
  const repository = new MemoryRepository({ clock });
  await repository.setSystemDefaults([Limit.perMinute("rpm", 10)]);
  const limiter = new RateLimiter({ repository });
  const ends: { status: number; completed: boolean; error: unknown }[] = [];
  const options: HttpLimitOptions<Q> = {
    limiter,
    entity: () => "key-1",
    resource: "web",
    consume: { rpm: 1 },
    settle: ({ status, completed, error }) => void ends.push({ status, completed, error }),
    ...changes,
  };
  const left = async (): Promise<number | undefined> =>
    (await limiter.available("key-1", "web"))["rpm"];
  return { clock, repository, limiter, options, ends, left };
}

/** A `respond` that leaves the answer to the error handler. */
export function passOn(refusal: Error): never {
  throw refusal;
}
