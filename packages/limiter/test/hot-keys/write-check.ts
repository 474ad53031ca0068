/*
 * What one applied write may do to a bucket. It was decided at `e` by the clock of its process, and whatever happened since, it must act as if
 * it had been carried out then: with `c` what it charged (by its own account, `tc`),
 *
 *   value after = min(capacity, value before − c), both at e, to less than a millitoken for each shard that it touched
 *
 * The fraction may be lost, because a split rounds it down; and found, because a full bucket drops it without moving its stamp when the stamp
 * is not in the past, so that a write that was decided before credits it again.
 *
 * A write that carries several calls may have given back before it took, so near the ceiling only the bounds are known.
 */
import { fraction, isLess, least, minus, plus, shown, sum, type Fraction } from "./fraction.ts";
import type { HeldCall } from "./gate.ts";
import { capacityOf, consumedOf, grantsOf, limitNames, rateOf, shardValue, type StoredBucket } from "./stored-bucket.ts";

/** A write that the engine applied: the shards that it touched, before and after. */
export interface AppliedWrite {
  readonly before: StoredBucket;
  readonly after: StoredBucket;
  readonly call: HeldCall;
  readonly tickMs: number;
}

/** Whether a write made a shard of another one. */
export function isSplit({ before, after }: AppliedWrite): boolean {
  return before.size > 0 && [...after.keys()].some((shard) => !before.has(shard));
}

/** Whether it granted something, and nothing else that could cause debt was under way. */
export function isPureGrant({ before, after, call }: AppliedWrite): boolean {
  if (call.surroundings.mayCharge) return false;
  const takes = limitNames(after).some((name) => consumedOf(after, name) > consumedOf(before, name));
  return takes || grantsOf(after) > grantsOf(before);
}

/** What is wrong with a write; undefined when it is as it must be. */
export function wrongWith(write: AppliedWrite): string | undefined {
  const { before, after } = write;
  for (const name of new Set([...limitNames(before), ...limitNames(after)])) {
    const wrong = isSplit(write) ? (wrongSplit(write, name) ?? wrongValue(write, name)) : wrongValue(write, name);
    if (wrong !== undefined) return `${name}: ${wrong}`;
  }
  return undefined;
}

function wrongSplit({ before, after }: AppliedWrite, name: string): string | undefined {
  if (consumedOf(before, name) !== consumedOf(after, name) || grantsOf(before) !== grantsOf(after))
    return "a split changed what was consumed";
  if (capacityOf(before, name) !== capacityOf(after, name)) return "the shares of a split do not add up to what was split";
  const [old, now] = [rateOf(before, name), rateOf(after, name)];
  return isLess(old, now) || isLess(now, old) ? "the rates of a split do not add up to what was split" : undefined;
}

function wrongValue(write: AppliedWrite, name: string): string | undefined {
  const { after, call, tickMs } = write;
  const atMs = call.decidedAtMs;
  const earliestMs = atMs - (tickMs - 1);
  const charged = consumedOf(after, name) - consumedOf(write.before, name);
  const ceiling = fraction(capacityOf(after, name));
  const now = valueAfter(write, name, atMs);
  if (now === undefined) return isFullBefore(write, name, atMs) ? undefined : "a limit was dropped that was not full";
  const [oldRate, newRate] = [rateOf(write.before, name), rateOf(after, name)];
  const rounding = times(isLess(oldRate, newRate) ? newRate : oldRate, tickMs - 1);
  const most = least(ceiling, minus(plus(valueBefore(write, name, earliestMs), rounding), fraction(charged)));
  if (!isLess(now, plus(most, fraction(BigInt(after.size)))))
    return `${shown(minus(now, most))} millitokens minted: ${shown(now)} where at most ${shown(most)} may be`;
  const given = BigInt(call.surroundings.mayGive.get(name) ?? 0) * 1000n;
  const lifted = least(ceiling, plus(valueBefore(write, name, atMs), fraction(given)));
  const fewest = minus(least(ceiling, minus(lifted, fraction(charged + given))), fraction(BigInt(after.size)));
  if (!isLess(fewest, now)) return `${shown(minus(fewest, now))} millitokens lost: ${shown(now)} where more than ${shown(fewest)} must be`;
  if (isPureGrant(write) && isLess(now, fraction(0n)) && [...after.values()].every(({ limits }) => limits.get(name)?.hidden === false))
    return `a grant left ${shown(now)} millitokens`;
  return undefined;
}

/** What the touched shards held. A limit that was not there counts as full, and a lowered capacity cuts off what is above it. */
function valueBefore({ before, after }: AppliedWrite, name: string, atMs: number): Fraction {
  const isRewritten = capacityOf(before, name) !== capacityOf(after, name);
  const held = [...before].map(([number, shard]) => {
    const ceiling = fraction(after.get(number)?.limits.get(name)?.ceiling ?? 0n);
    if (!shard.limits.has(name)) return ceiling;
    const value = shardValue(shard, name, atMs);
    return isRewritten ? least(ceiling, value) : value;
  });
  return before.size === 0 ? fraction(capacityOf(after, name)) : sum(held);
}

function valueAfter({ after }: AppliedWrite, name: string, atMs: number): Fraction | undefined {
  const shards = [...after.values()].filter(({ limits }) => limits.has(name));
  return shards.length === 0 ? undefined : sum(shards.map((shard) => shardValue(shard, name, atMs)));
}

function isFullBefore({ before }: AppliedWrite, name: string, atMs: number): boolean {
  return [...before.values()].every((shard) => {
    const limit = shard.limits.get(name);
    return limit === undefined || !isLess(shardValue(shard, name, atMs), fraction(limit.ceiling));
  });
}

function times({ top, over }: Fraction, factor: number): Fraction {
  return { top: top * BigInt(factor), over };
}
