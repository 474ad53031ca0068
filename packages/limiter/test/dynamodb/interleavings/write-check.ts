/*
 * What one applied write may do to each shard that it touches. It was decided at `e` by the clock
 * of its process, and whatever happened since, it must act as if it had been carried out then: with
 * `c` what it charged (by its own account, `tc`),
 *
 *   value after = min(capacity, value before − c), both at e, to less than a millitoken
 *
 * The fraction may be found, because a full bucket drops it without moving its stamp when the stamp
 * is not in the past, so that a write that was decided before credits it again. A write that
 * carries several calls may have given back before it took, so near the ceiling only the bounds are
 * known.
 *
 * A split changes nothing: by no clock are there more tokens after it than before, and by the clock
 * of the process that splits not a millitoken less. What a merge may do is in merge-check.ts.
 */
import {
  fraction,
  isLess,
  least,
  minus,
  plus,
  show,
  sum,
  times,
  type Fraction,
} from "../../oracle/fraction.ts";
import type { HeldCall } from "./gate.ts";
import { wrongHalves, wrongSum, type Merge } from "./merge-check.ts";
import {
  bucketValue,
  getCapacity,
  getCascaded,
  getConsumed,
  isQuota,
  listGrants,
  limitNames,
  getRate,
  shardValue,
  storedValue,
  type StoredBucket,
} from "../../oracle/stored-bucket.ts";

/** A write that the engine applied: the shards that it touched, and those that are there now. */
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

/** Whether a write made one shard of two. */
export function isMerge({ before, after }: AppliedWrite): boolean {
  return [...before.keys()].some((shard) => !after.has(shard));
}

/**
 * Whether it granted what no shard held alone, though perhaps one of them gave it all: what it
 * lacked may be what another limit owes there.
 */
export function isGathered(write: AppliedWrite): boolean {
  return write.call.operation === "TransactWriteItems" && !isSplit(write) && !isMerge(write);
}

/** Whether it granted something, and nothing else that could cause debt was under way. */
export function isPureGrant({ before, after, call }: AppliedWrite): boolean {
  if (call.surroundings.mayCharge) return false;
  const takes = limitNames(after).some(
    (name) => getConsumed(after, name) > getConsumed(before, name),
  );
  return takes || listGrants(after) > listGrants(before);
}

/** What is wrong with a write; undefined when it is as it must be. */
export function wrongWith(write: AppliedWrite): string | undefined {
  if (isMerge(write)) {
    const wrong = wrongHalves(mergeIn(write));
    if (wrong !== undefined) return wrong;
  }
  const isWhole = isSplit(write) || isMerge(write);
  const check = isSplit(write) ? wrongSplit : isMerge(write) ? wrongMerged : wrongValue;
  for (const part of isWhole ? [write] : buildShards(write))
    for (const name of new Set([...limitNames(part.before), ...limitNames(part.after)])) {
      const wrong = check(part, name);
      if (wrong !== undefined)
        return `${name} of shard ${[...part.after.keys()].join(" and ")}: ${wrong}`;
    }
  return undefined;
}

/** A write to several shards is one to each of them. */
function buildShards({ before, after, call, tickMs }: AppliedWrite): readonly AppliedWrite[] {
  return [...after].map(([number, shard]) => {
    const old = before.get(number);
    return {
      before: new Map(old === undefined ? [] : [[number, old]]),
      after: new Map([[number, shard]]),
      call,
      tickMs,
    };
  });
}

function wrongMerged(write: AppliedWrite, name: string): string | undefined {
  return wrongSum(mergeIn(write), name);
}

function mergeIn({ before, after, call }: AppliedWrite): Merge {
  return { before, after, decidedAtMs: call.decidedAtMs };
}

function wrongSplit({ before, after, call }: AppliedWrite, name: string): string | undefined {
  const isSame = [getConsumed, getCascaded].every(
    (total) => total(before, name) === total(after, name),
  );
  if (!isSame || listGrants(before) !== listGrants(after))
    return "a split changed what was consumed";
  if (getCapacity(before, name) !== getCapacity(after, name))
    return "the shares of a split do not add up to what was split";
  const [old, now] = [getRate(before, name), getRate(after, name)];
  if (isLess(old, now) || isLess(now, old))
    return "the rates of a split do not add up to what was split";
  if ([...after.values()].some(({ stampMs }) => stampMs !== [...before.values()][0]!.stampMs))
    return "a split moved the stamp";
  // Same rates, same stamp and a ceiling that is the sum of ceilings: who has no more now has no
  // more at any time.
  const stored = (bucket: StoredBucket): Fraction =>
    sum([...bucket.values()].map((shard) => storedValue(shard, name)));
  if (isLess(stored(before), stored(after)))
    return `a split made ${show(stored(after))} of ${show(stored(before))} millitokens`;
  const atMs = call.decidedAtMs;
  const [held, holds] = [bucketValue(before, name, atMs), bucketValue(after, name, atMs)];
  return isLess(minus(held, holds), lostBySplit({ before, after }, name, atMs))
    ? undefined
    : `a split left ${show(holds)} of ${show(held)} millitokens`;
}

/**
 * Less than this may be lost: the remainder is counted in other units afterwards, and what is not a
 * whole one of them goes. Of a full limit a millitoken, because shares are whole millitokens, so
 * that its halves are not full at exactly the same moment.
 */
function lostBySplit(
  { before, after }: Pick<AppliedWrite, "before" | "after">,
  name: string,
  atMs: number,
): Fraction {
  const isFull = !isLess(bucketValue(before, name, atMs), fraction(getCapacity(before, name)));
  const [kept] = [...before.keys()];
  return fraction(1n, isFull ? 1n : after.get(kept!)!.limits.get(name)!.terms.grain);
}

function wrongValue(write: AppliedWrite, name: string): string | undefined {
  const { after, call, tickMs } = write;
  const atMs = call.decidedAtMs;
  // No tick reaches back over the end of a window.
  const isWindowed = isQuota(after, name);
  const earliestMs = isWindowed ? atMs : atMs - (tickMs - 1);
  const charged = getConsumed(after, name) - getConsumed(write.before, name);
  // Within a window, a shard takes back more than its share.
  const ceiling = fraction(isWindowed ? BigInt(Number.MAX_SAFE_INTEGER) : getCapacity(after, name));
  const now = valueAfter(write, name, atMs);
  if (now === undefined)
    return isFullBefore(write, name, atMs) ? undefined : "a limit was dropped that was not full";
  const [oldRate, newRate] = [getRate(write.before, name), getRate(after, name)];
  const rounding = times(isLess(oldRate, newRate) ? newRate : oldRate, tickMs - 1);
  const most = least(
    ceiling,
    minus(plus(valueBefore(write, name, earliestMs), rounding), fraction(charged)),
  );
  if (!isLess(now, plus(most, fraction(1n))))
    return `${show(minus(now, most))} millitokens minted: ${show(now)} where at most ${show(most)} may be`;
  const given = BigInt(call.surroundings.mayGive.get(name) ?? 0) * 1000n;
  // What goes back to a window that is over only counts.
  const lifted = isWindowed
    ? valueBefore(write, name, atMs)
    : least(ceiling, plus(valueBefore(write, name, atMs), fraction(given)));
  const fewest = minus(least(ceiling, minus(lifted, fraction(charged + given))), fraction(1n));
  if (!isLess(fewest, now))
    return `${show(minus(fewest, now))} millitokens lost: ${show(now)} where more than ${show(fewest)} must be`;
  const isAsked = charged > 0n || !isGathered(write);
  const isVisible = [...after.values()].every(({ limits }) => limits.get(name)?.hidden === false);
  if (isPureGrant(write) && isAsked && isVisible && isLess(now, fraction(0n)))
    return `a grant left ${show(now)} millitokens`;
  return undefined;
}

/**
 * What the touched shards held. A limit that was not there counts as full, and a lowered capacity
 * cuts off what is above it.
 */
function valueBefore({ before, after }: AppliedWrite, name: string, atMs: number): Fraction {
  const isRewritten = getCapacity(before, name) !== getCapacity(after, name);
  const held = [...before].map(([number, shard]) => {
    const ceiling = fraction(after.get(number)?.limits.get(name)?.terms.capacityMilli ?? 0n);
    if (!shard.limits.has(name)) return ceiling;
    const value = shardValue(shard, name, atMs);
    const { endMs, terms } = shard.limits.get(name)!;
    // What was used of a window stays used.
    if (isRewritten && endMs !== undefined)
      return atMs < endMs ? minus(plus(value, ceiling), fraction(terms.capacityMilli)) : ceiling;
    return isRewritten ? least(ceiling, value) : value;
  });
  return before.size === 0 ? fraction(getCapacity(after, name)) : sum(held);
}

function valueAfter({ after }: AppliedWrite, name: string, atMs: number): Fraction | undefined {
  const shards = [...after.values()].filter(({ limits }) => limits.has(name));
  return shards.length === 0
    ? undefined
    : sum(shards.map((shard) => shardValue(shard, name, atMs)));
}

function isFullBefore({ before }: AppliedWrite, name: string, atMs: number): boolean {
  return [...before.values()].every((shard) => {
    const limit = shard.limits.get(name);
    return (
      limit === undefined ||
      !isLess(shardValue(shard, name, atMs), fraction(limit.terms.capacityMilli))
    );
  });
}
