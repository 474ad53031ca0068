/*
 * What a merge may do. It adds two halves as of one common time, the latest of both stamps and the
 * clock of the process that merges, and leaves by that time
 *
 *   value of the merged shard = value of one half + value of the other
 *
 * never more, and less by less than one unit of its remainder. Each half counts under its own
 * ceiling, and a limit that it lacks counts as full. What was consumed and granted is added up, and
 * nothing else of the half that stays is changed. (Later the merged shard may earn where a half
 * would have been full: that is what one whole bucket does.)
 */
import {
  fraction,
  isLess,
  least,
  minus,
  plus,
  show,
  ZERO,
  type Fraction,
} from "../../oracle/fraction.ts";
import {
  listCascadedGrants,
  getCascaded,
  getConsumed,
  listGrants,
  shardValue,
  type StoredBucket,
  type StoredShard,
} from "../../oracle/stored-bucket.ts";
import { termsOfShard, type Terms } from "../../oracle/terms.ts";

/** Write units of a merge: two items, twice each. */
const MERGE_UNITS = 4n;

/** Halves before a merge, and what it made of them. */
export interface Merge {
  readonly before: StoredBucket;
  readonly after: StoredBucket;
  /** By the clock of the process that merges. */
  readonly decidedAtMs: number;
}

/** What a merge did to something else than balances that it must not do. */
export function wrongHalves(merge: Merge): string | undefined {
  const { before, after } = merge;
  const [[number, merged] = []] = [...after];
  const kept = before.get(number!);
  const gone = merged === undefined ? undefined : before.get(number! + merged.divisor);
  if (after.size !== 1 || before.size !== 2 || kept === undefined || gone === undefined)
    return "a merge of shards that are not the halves of one";
  const halves = [kept, gone];
  if (halves.some(({ divisor }) => divisor !== 2 * merged!.divisor))
    return "a merge of shards that are not equally deep";
  if (merged!.stampMs !== commonMs(merge)) return `a merge as of ${merged!.stampMs}`;
  if (halves.some(({ version }) => version >= merged!.version))
    return "a merge whose version is not above both";
  if (merged!.writes !== kept.writes + gone.writes + MERGE_UNITS)
    return "a merge whose write units do not add up";
  if (merged!.undone !== kept.undone + gone.undone) return "a merge that hides what was undone";
  if (merged!.identity !== kept.identity)
    return `a merge made ${merged!.identity} of ${kept.identity}`;
  const isSame = [listGrants, listCascadedGrants].every((count) => count(before) === count(after));
  return isSame ? undefined : "a merge changed what was granted";
}

/** What a merge did to one limit that it must not do. */
export function wrongSum(merge: Merge, name: string): string | undefined {
  const { before, after } = merge;
  if ([getConsumed, getCascaded].some((total) => total(before, name) !== total(after, name)))
    return "a merge changed what was consumed";
  const [merged] = [...after.values()] as [StoredShard];
  const limit = merged.limits.get(name);
  if (limit === undefined) return "a merge dropped a limit";
  const atMs = commonMs(merge);
  let [held, lost] = [ZERO, fraction(1n, limit.terms.grain)];
  for (const [number, half] of before) {
    const own = termsOfShard(limit.whole, number, half.divisor);
    held = plus(held, halfValue(half, own, atMs));
    // A remainder that is converted first is rounded down once more.
    if (!hasPolicyLimits(half, own)) lost = plus(lost, fraction(1n, own.grain));
  }
  const holds = shardValue(merged, name, atMs);
  if (isLess(held, holds)) return `a merge made ${show(holds)} of ${show(held)} millitokens`;
  return isLess(minus(held, holds), lost)
    ? undefined
    : `a merge left ${show(holds)} of ${show(held)} millitokens`;
}

/** Whether halves show different limits, so that they are converted first. */
export function isConversion({ before, after }: Pick<Merge, "before" | "after">): boolean {
  const [merged] = [...after.values()] as [StoredShard];
  return [...before].some(([number, half]) =>
    [...merged.limits.values()].some(
      ({ whole }) => !hasPolicyLimits(half, termsOfShard(whole, number, half.divisor)),
    ),
  );
}

function commonMs({ before, decidedAtMs }: Merge): number {
  return Math.max(decidedAtMs, ...[...before.values()].map(({ stampMs }) => stampMs));
}

function halfValue(half: StoredShard, own: Terms, atMs: number): Fraction {
  const ceiling = fraction(own.capacityMilli);
  const { endMs, terms } = half.limits.get(own.name) ?? {};
  if (endMs !== undefined)
    return atMs < endMs
      ? minus(plus(shardValue(half, own.name, atMs), ceiling), fraction(terms!.capacityMilli))
      : ceiling;
  return half.limits.has(own.name) ? least(ceiling, shardValue(half, own.name, atMs)) : ceiling;
}

function hasPolicyLimits({ limits }: StoredShard, own: Terms): boolean {
  const terms = limits.get(own.name)?.terms;
  return (
    terms?.capacityMilli === own.capacityMilli &&
    terms.amount === own.amount &&
    terms.period === own.period
  );
}
