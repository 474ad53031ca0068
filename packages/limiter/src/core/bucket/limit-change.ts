import {
  apply,
  ceilingMilli,
  getConsumedMilli,
  scaleRemainder,
  getStoredMilli,
  getStoredRemainder,
  type Bucket,
  type BucketLimit,
} from "./bucket.ts";

/**
 * Carries a bucket over to another list of limits. However often the lists change, no tokens are
 * minted:
 *
 * - What a limit has earned so far, it earned at its old rate.
 * - A lowered capacity cuts the balance.
 * - A limit that leaves the list stays in the bucket, hidden, so that only a limit that is new to
 *   the bucket starts full. It stays even when it is full. Otherwise three calls with overrides
 *   could fill it: lower its capacity to the balance, remove it, add it with its old capacity.
 *
 * With `keepCut`, a limit whose balance would be cut keeps its old parameters. A refusal needs
 * this: it must take nothing away, but must let the other limits earn at their new rates, or the
 * refused call might never fit.
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
    else if (keepCut && getStoredMilli(old, index) > ceilingMilli(limit))
      add(
        { ...old.limits[index]!, hidden: false },
        getStoredMilli(old, index),
        getStoredRemainder(old, index),
        getConsumedMilli(old, index),
      );
    else add(limit, ...convertLimit(old, index, limit));
  }
  old.limits.forEach((limit, index) => {
    if (wanted.some((other) => other.limit.name === limit.limit.name)) return;
    if (limits.length >= MOST_LIMITS && getStoredMilli(old, index) >= ceilingMilli(limit)) return;
    add(
      limit.hidden ? limit : { ...limit, hidden: true },
      getStoredMilli(old, index),
      getStoredRemainder(old, index),
      getConsumedMilli(old, index),
    );
  });
  const same =
    limits.length === wanted.length && limits.every((limit, index) => limit === wanted[index]);
  return { limits: same ? wanted : limits, refilledAtMs: old.refilledAtMs, balances };
}

/**
 * A bucket with more limits than this drops hidden ones that are full, so that callers who keep
 * inventing names cannot fill the store.
 */
const MOST_LIMITS = 64;

/**
 * The three numbers of one limit under new parameters. The remainder is in units of 1/period, so it
 * is scaled to the new period.
 */
function convertLimit(
  bucket: Bucket,
  index: number,
  limit: BucketLimit,
): readonly [number, number, number] {
  const ceiling = ceilingMilli(limit);
  const tokens = Math.min(ceiling, getStoredMilli(bucket, index));
  const before = bucket.limits[index]!;
  const remainder =
    tokens >= ceiling
      ? 0
      : scaleRemainder(getStoredRemainder(bucket, index), before.period, limit.period);
  return [tokens, remainder, getConsumedMilli(bucket, index)];
}
