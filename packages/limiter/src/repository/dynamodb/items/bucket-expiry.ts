import {
  ceilingMilli,
  getStoredEndMs,
  getStoredMilli,
  type Bucket,
  type BucketLimit,
} from "../../../core/bucket/bucket.ts";
import { carriesNothing, computeNextWindowEnd } from "../../../core/bucket/windows.ts";

/** When an item may expire, and what that rests on. */
export interface Expiry {
  readonly ttlSeconds: number;
  /**
   * For each limit the lowest balance after the write that will have refilled by then; undefined
   * where it has windows.
   */
  readonly floorsMilli: readonly (number | undefined)[];
}

/** What a bucket holds after a write, as far as the image predicts it. */
export interface Predicted {
  readonly afterMilli: readonly number[];
  /** The end of each limit's window; 0 where none is open. */
  readonly endsMs: readonly number[];
}

/** What a bucket holds, when nothing is added to it. */
export function predict(bucket: Bucket): Predicted {
  return {
    afterMilli: bucket.limits.map((_, index) => getStoredMilli(bucket, index)),
    endsMs: bucket.limits.map((_, index) => getStoredEndMs(bucket, index)),
  };
}

/**
 * When a bucket may expire; undefined when it may not, because a window carries something over its
 * end. A whole capacity is left for what others take meanwhile. A bucket with windows is kept over
 * the end of the next one, because others may open that.
 */
export function computeExpiry(
  limits: readonly BucketLimit[],
  {
    nowMs,
    multiplier,
    afterMilli,
    endsMs,
  }: Predicted & { readonly nowMs: number; readonly multiplier: number },
): Expiry | undefined {
  let horizonMs = 0;
  for (let index = 0; index < limits.length; index += 1) {
    const limit = limits[index]!;
    const { window } = limit;
    if (window !== undefined) {
      if (!carriesNothing(window)) return undefined;
      const nextMs = computeNextWindowEnd(window, nowMs, endsMs[index]!);
      horizonMs = Math.max(horizonMs, nextMs - nowMs);
      continue;
    }
    const capacity = ceilingMilli(limit);
    const fillsMs =
      fillMs(limit, 2 * capacity - Math.min(0, afterMilli[index]!)) +
      fillMs(limit, capacity) * Math.max(0, multiplier - 2);
    horizonMs = Math.max(horizonMs, fillsMs);
  }
  const ttlSeconds = Math.ceil((nowMs + horizonMs) / 1000);
  const leftMs = ttlSeconds * 1000 - nowMs;
  // The last digits of a debt beyond the safe range are lost: a capacity is left for them too.
  const floorsMilli = limits.map((limit) =>
    limit.window === undefined
      ? ceilingMilli(limit) + 1 - Math.floor((leftMs / limit.period) * limit.amount)
      : undefined,
  );
  return { ttlSeconds, floorsMilli };
}

function fillMs({ amount, period }: BucketLimit, milli: number): number {
  return Math.ceil((milli / amount) * period);
}
