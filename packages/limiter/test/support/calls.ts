import { RateLimitExceeded, type AcquireRequest, type RateLimiter } from "zae-limiter";

/** A call on the one bucket that most tests are about. */
export function call(consume: Record<string, number>, entityId = "e"): AcquireRequest {
  return { entityId, resource: "r", consume };
}

/** Takes, and keeps it. */
export async function take(
  limiter: RateLimiter,
  consume: Record<string, number>,
  entityId?: string,
): Promise<void> {
  await (await limiter.acquire(call(consume, entityId))).commit();
}

/** Takes again and again until it is refused; returns how much it got in all. */
export async function takeWhatFits(
  limiter: RateLimiter,
  consume: Record<string, number>,
): Promise<number> {
  for (let granted = 0; ; granted += Object.values(consume)[0]!) {
    const isTaken = await take(limiter, consume).then(
      () => true,
      (error: unknown) => {
        if (!(error instanceof RateLimitExceeded)) throw error;
        return false;
      },
    );
    if (!isTaken) return granted;
  }
}
