import { bucketLimit, type BucketLimit } from "../../../core/bucket.ts";
import { Limit } from "../../../core/limit.ts";

/** Stands before a limit that has left its policy and is not full yet. No name begins with it. */
const HIDDEN = "-";

/**
 * Lists remembered at most: few lists are shared by all buckets, and what falls out is parsed
 * again.
 */
const MAX_REMEMBERED = 1000;

const byText = new Map<string, readonly BucketLimit[]>();
const texts = new WeakMap<readonly BucketLimit[], string>();

/**
 * Limits as the command line writes them, separated by spaces: `rpm:100/min tpm:10000/min:15000`.
 */
export function limitsText(limits: readonly Limit[]): string {
  return limits.map((limit) => Limit.format(limit)).join(" ");
}

/** Reads what `limitsText` wrote. */
export function parseLimits(text: string): readonly Limit[] {
  return text.split(" ").map((part) => Limit.parse(part));
}

/** The limits of a bucket as text. */
export function bucketLimitsText(limits: readonly BucketLimit[]): string {
  const held = texts.get(limits);
  if (held !== undefined) return held;
  const text = limits
    .map(({ limit, hidden }) => (hidden ? HIDDEN : "") + Limit.format(limit))
    .join(" ");
  remember(text, limits);
  return text;
}

/**
 * Reads what `bucketLimitsText` wrote. The same text gives the same list, so that comparing it with
 * a policy's costs nothing.
 */
export function parseBucketLimits(text: string): readonly BucketLimit[] {
  const held = byText.get(text);
  if (held !== undefined) return held;
  const limits = text.split(" ").map((part) => {
    const hidden = part.startsWith(HIDDEN);
    return bucketLimit(Limit.parse(hidden ? part.slice(HIDDEN.length) : part), hidden);
  });
  remember(text, limits);
  return limits;
}

function remember(text: string, limits: readonly BucketLimit[]): void {
  texts.set(limits, text);
  byText.set(text, limits);
  if (byText.size > MAX_REMEMBERED) byText.delete(byText.keys().next().value!);
}
