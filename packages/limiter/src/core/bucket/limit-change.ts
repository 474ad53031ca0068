import {
  apply,
  ceilingMilli,
  consumedMilli,
  scaledRemainder,
  storedMilli,
  storedRemainder,
  type Bucket,
  type BucketLimit,
} from "./bucket.ts";

/**
 * The bucket under another list of limits. Nothing is minted however often lists change: what a
 * limit earned so far it earned at its old rate; a lowered capacity cuts off; a limit that leaves
 * stays, hidden, so that only a limit that was never here starts full. It stays when it is full
 * too: otherwise lowering a capacity to the balance, removing the limit and adding it again with
 * its old capacity would fill it, which three calls with overrides can do. With `keepCut`, a limit
 * that would be cut off keeps its old parameters: for a refusal, which must take nothing away, but
 * must let the others earn at their new rates, or a call that is refused would never fit.
 */
export function withLimits(
  bucket: Bucket,
  wanted: readonly BucketLimit[],
  nowMs: number,
  { keepCut = false } = {},
): Bucket {
  const old = apply(
    bucket,
    bucket.limits.map(() => 0),
    nowMs,
  );
  const limits: BucketLimit[] = [];
  const balances: number[] = [];
  const add = (limit: BucketLimit, tokens: number, remainder: number, consumed: number): void => {
    limits.push(limit);
    balances.push(tokens, remainder, consumed);
  };
  for (const limit of wanted) {
    const index = old.limits.findIndex((other) => other.limit.name === limit.limit.name);
    if (index < 0) add(limit, ceilingMilli(limit), 0, 0);
    else if (keepCut && storedMilli(old, index) > ceilingMilli(limit))
      add(
        { ...old.limits[index]!, hidden: false },
        storedMilli(old, index),
        storedRemainder(old, index),
        consumedMilli(old, index),
      );
    else add(limit, ...converted(old, index, limit));
  }
  old.limits.forEach((limit, index) => {
    if (wanted.some((other) => other.limit.name === limit.limit.name)) return;
    if (limits.length >= MOST_LIMITS && storedMilli(old, index) >= ceilingMilli(limit)) return;
    add(
      limit.hidden ? limit : { ...limit, hidden: true },
      storedMilli(old, index),
      storedRemainder(old, index),
      consumedMilli(old, index),
    );
  });
  const same =
    limits.length === wanted.length && limits.every((limit, index) => limit === wanted[index]);
  return { limits: same ? wanted : limits, refilledAtMs: old.refilledAtMs, balances };
}

/**
 * A bucket that has seen more names than this drops hidden limits that are full: whoever makes
 * names up must not fill the store.
 */
const MOST_LIMITS = 64;

/**
 * One limit's three numbers under new parameters. The remainder counts in units of 1/period, so it
 * is scaled with the period.
 */
function converted(
  bucket: Bucket,
  index: number,
  limit: BucketLimit,
): readonly [number, number, number] {
  const ceiling = ceilingMilli(limit);
  const tokens = Math.min(ceiling, storedMilli(bucket, index));
  const before = bucket.limits[index]!;
  const remainder =
    tokens >= ceiling
      ? 0
      : scaledRemainder(storedRemainder(bucket, index), before.period, limit.period);
  return [tokens, remainder, consumedMilli(bucket, index)];
}
