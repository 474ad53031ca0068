import { ceilingMilli, type BucketLimit } from "../../../core/bucket/bucket.ts";

/**
 * When the item may expire, and for each limit the lowest balance after the write that will have
 * refilled by then. `afterMilli` are the balances that the image predicts; a whole capacity is left
 * for what others take meanwhile.
 */
export function expiry(
  limits: readonly BucketLimit[],
  {
    nowMs,
    multiplier,
    afterMilli,
  }: {
    readonly nowMs: number;
    readonly multiplier: number;
    readonly afterMilli: readonly number[];
  },
): { readonly ttlSeconds: number; readonly floorsMilli: readonly number[] } {
  const horizonsMs = limits.map((limit, index) => {
    const capacity = ceilingMilli(limit);
    return (
      fillMs(limit, 2 * capacity - Math.min(0, afterMilli[index]!)) +
      fillMs(limit, capacity) * Math.max(0, multiplier - 2)
    );
  });
  const ttlSeconds = Math.ceil((nowMs + Math.max(...horizonsMs)) / 1000);
  const leftMs = ttlSeconds * 1000 - nowMs;
  // The last digits of a debt beyond the safe range are lost: a capacity is left for them too.
  const floorsMilli = limits.map(
    (limit) => ceilingMilli(limit) + 1 - Math.floor((leftMs / limit.period) * limit.amount),
  );
  return { ttlSeconds, floorsMilli };
}

function fillMs({ amount, period }: BucketLimit, milli: number): number {
  return Math.ceil((milli / amount) * period);
}
