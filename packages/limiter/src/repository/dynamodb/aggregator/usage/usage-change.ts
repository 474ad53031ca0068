/*
 * What a change of a bucket consumed, from its images before and after (ADR 015).
 *
 *   sd differs, or a new item has it     a split, a merge, or half of one: nothing was consumed
 *   new, or another creation (cr)        all of its totals
 *   otherwise                            how much its totals have grown; less is a give-back
 *   a total is gone                      it was dropped with its limit: nothing was consumed
 *
 * `b_{limit}_tc` becomes `u_{limit}`, and `gr` becomes `requests`. The parts of them that came by
 * cascade, `b_{limit}_cc` and `gc`, become `c_{limit}` and `cascaded_requests`. What the bucket
 * counts for itself, `b_wcu_tc`, becomes nothing.
 */
import {
  getNumber,
  getString,
  type AttributeMap,
  type AttributeValue,
} from "../../transport/attribute-values.ts";
import {
  CASCADED_PREFIX,
  CASCADED_REQUESTS_ATTRIBUTE,
  CONSUMED_PREFIX,
  REQUESTS_ATTRIBUTE,
} from "../../items/usage-item.ts";

/** How much one attribute of a snapshot changes. Totals may have left the safe range. */
interface UsageAmount {
  readonly attribute: string;
  readonly amount: number | bigint;
}

/** What one change of a bucket consumed; empty when it was nothing. */
export type UsageChange = readonly UsageAmount[];

const NOTHING: UsageChange = [];
const NO_ITEM: AttributeMap = {};

/** What a change of a bucket consumed; undefined when one of its totals is not a whole number. */
export function usageChange(
  before: AttributeMap | undefined,
  after: AttributeMap,
): UsageChange | undefined {
  if (getNumber(before?.["sd"]) !== getNumber(after["sd"])) return NOTHING;
  const isSame = before !== undefined && getString(before["cr"]) === getString(after["cr"]);
  const base = isSame ? before : NO_ITEM;
  let change: UsageAmount[] | undefined;
  for (const total in after) {
    const attribute = snapshotAttribute(total);
    if (attribute === undefined) continue;
    const amount = difference(after[total], base[total]);
    if (amount === undefined) return undefined;
    if (amount !== 0) (change ??= []).push({ attribute, amount });
  }
  return change ?? NOTHING;
}

/** The sum of two amounts, exactly. */
export function addExactly(left: number | bigint, right: number | bigint): number | bigint {
  if (typeof left === "number" && typeof right === "number") {
    const sum = left + right;
    if (Number.isSafeInteger(sum)) return sum;
  }
  return BigInt(left) + BigInt(right);
}

const LETTER_B = "b".charCodeAt(0);
const LETTER_C = "c".charCodeAt(0);

/**
 * The attribute of a snapshot that an attribute of a bucket is counted in; undefined when in none.
 * It runs for every attribute of every record, so two letters decide most of them.
 */
function snapshotAttribute(total: string): string | undefined {
  if (total.charCodeAt(0) !== LETTER_B)
    return total === "gr"
      ? REQUESTS_ATTRIBUTE
      : total === "gc"
        ? CASCADED_REQUESTS_ATTRIBUTE
        : undefined;
  if (total.charCodeAt(total.length - 1) !== LETTER_C) return undefined;
  return ATTRIBUTES_MEMO.get(total) ?? newAttribute(total);
}

/** Attributes of snapshots by those of buckets: strings just concatenated are slow to look up. */
const ATTRIBUTES_MEMO = new Map<string, string>();

/** The most names in the memo table, which is cleared then; configurations have a few dozen. */
const MAX_MEMO_NAMES = 1000;

function newAttribute(total: string): string | undefined {
  if (!total.startsWith("b_") || total === "b_wcu_tc") return undefined;
  const name = total.slice("b_".length, -"_tc".length);
  const prefix = total.endsWith("_tc")
    ? CONSUMED_PREFIX
    : total.endsWith("_cc")
      ? CASCADED_PREFIX
      : undefined;
  if (prefix === undefined || name === "") return undefined;
  if (ATTRIBUTES_MEMO.size >= MAX_MEMO_NAMES) ATTRIBUTES_MEMO.clear();
  ATTRIBUTES_MEMO.set(total, prefix + name);
  return prefix + name;
}

/** How much a total has grown, exactly; undefined when one of the two is not a whole number. */
function difference(
  after: AttributeValue | undefined,
  before: AttributeValue | undefined,
): number | bigint | undefined {
  const [afterText, beforeText] = [toText(after), toText(before)];
  if (afterText === beforeText) return 0;
  const [left, right] = [Number(afterText), Number(beforeText)];
  if (Number.isSafeInteger(left) && Number.isSafeInteger(right)) return addExactly(left, -right);
  return isWhole(afterText) && isWhole(beforeText)
    ? BigInt(afterText) - BigInt(beforeText)
    : undefined;
}

/** The text of a number; absent means 0. */
function toText(value: AttributeValue | undefined): string {
  if (value === undefined) return "0";
  return "N" in value ? value.N : "not a number";
}

function isWhole(text: string): boolean {
  return /^-?\d+$/.test(text);
}
