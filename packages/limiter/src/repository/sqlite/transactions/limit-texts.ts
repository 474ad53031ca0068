import { BoundedMap } from "../../../core/bounded-map.ts";
import { bucketLimit, type BucketLimit } from "../../../core/bucket/bucket.ts";
import { Limit } from "../../../core/limit.ts";
import { parseStoredLimit, type SupportedLimit } from "../../../core/supported-limits.ts";

/** Precedes a hidden limit, which has left its policy. No name begins with it. */
const HIDDEN = "-";

/** Most lists in the memo. All buckets share few lists, and a dropped one is parsed again. */
const MAX_MEMOIZED = 1000;

const LIMITS_MEMO = new BoundedMap<string, readonly BucketLimit[]>(MAX_MEMOIZED);
const TEXT_MEMO = new WeakMap<readonly BucketLimit[], string>();

/**
 * Begins the text of a level that inherits. It cannot be mistaken for a limit, because no limit has
 * a rate of 0 (ADR 003).
 */
const INHERIT = "inherit:0 ";

/** Formats a level's limits as the command line does: `rpm:100/min tpm:10000/min:15000`. */
export function formatLevel(limits: readonly Limit[], inherit = false): string {
  return (inherit ? INHERIT : "") + limits.map((limit) => Limit.format(limit)).join(" ");
}

/** Parses the result of `formatLevel`. */
export function parseLevel(text: string): {
  readonly limits: readonly SupportedLimit[];
  readonly inherit?: boolean;
} {
  const inherit = text.startsWith(INHERIT);
  const list = inherit ? text.slice(INHERIT.length) : text;
  const limits = list.split(" ").map((part) => parseStoredLimit(part));
  return { limits, ...(inherit && { inherit }) };
}

/** Formats the limits of a bucket. */
export function formatBucketLimits(limits: readonly BucketLimit[]): string {
  const held = TEXT_MEMO.get(limits);
  if (held !== undefined) return held;
  const text = limits
    .map(({ limit, hidden }) => (hidden ? HIDDEN : "") + Limit.format(limit))
    .join(" ");
  remember(text, limits);
  return text;
}

/**
 * Parses the result of `formatBucketLimits`. The same text gives the same list, so that comparing
 * it with the list of a policy is cheap.
 */
export function parseBucketLimits(text: string): readonly BucketLimit[] {
  const held = LIMITS_MEMO.get(text);
  if (held !== undefined) return held;
  const limits = text.split(" ").map((part) => {
    const hidden = part.startsWith(HIDDEN);
    return bucketLimit(parseStoredLimit(hidden ? part.slice(HIDDEN.length) : part), hidden);
  });
  remember(text, limits);
  return limits;
}

function remember(text: string, limits: readonly BucketLimit[]): void {
  TEXT_MEMO.set(limits, text);
  LIMITS_MEMO.set(text, limits);
}
