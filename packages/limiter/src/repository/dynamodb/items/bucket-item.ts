import { MILLI } from "../../../core/amounts.ts";
import { IncompatibleSchemaError } from "../../../core/errors.ts";
import { VERSION } from "../../../core/version.ts";
import {
  bucketLimit,
  getConsumedMilli,
  getStoredEndMs,
  getStoredMilli,
  getStoredRemainder,
  type Bucket,
  type BucketLimit,
} from "../../../core/bucket/bucket.ts";
import { isRate } from "../../../core/limit-kinds.ts";
import { parseStoredLimit } from "../../../core/supported-limits.ts";
import { shardLimit } from "../../../core/bucket/shares.ts";
import { getNumber, getString, type AttributeMap } from "../transport/attribute-values.ts";
import { parseBucketPartition } from "./key-parsers.ts";

/** Operation ids that an item remembers. */
export const SLOT_COUNT = 8;

/** The operation ids of a shard that was merged into another one, as they were then. */
export interface MergedIds {
  readonly shard: number;
  /** Its version, which belongs to one of its lives. */
  readonly version: number;
  readonly slots: readonly (string | undefined)[];
}

/** The last known state of a stored bucket. */
export interface BucketImage {
  /** The balances of this shard, under its shares of the limits. */
  readonly bucket: Bucket;
  /**
   * Which residue class of the bucket the item is: `shard` mod `divisor`. Shard 0 of 1 is a bucket
   * that was never split.
   */
  readonly shard: number;
  /** `shard_count`. */
  readonly divisor: number;
  /**
   * `sd`: when this shard was last split, split off or merged; undefined when never. It is the
   * version at that moment, so it is unique even if clocks disagree.
   */
  readonly splitAtMs: number | undefined;
  /** `sv`: the version of everything that is not a balance. Every write requires it. */
  readonly version: number;
  /** `b_wcu_tc`: grows with every write, so it shows which of two images is newer. */
  readonly writes: number;
  /** `gr`: granted acquires less those that were rolled back. */
  readonly requests: number;
  /** The last operation id of each slot. */
  readonly slots: readonly (string | undefined)[];
  /**
   * `mi`: the ids of shards that were merged into this one. Writes to them that got no answer are
   * resolved here.
   */
  readonly mergedIds: readonly MergedIds[];
  /** `po` is 1: the limits came from a call's override, which no other call can read. */
  readonly overridden: boolean;
  /** `po` is a text: the names of the limits that came from a limiter's defaults. */
  readonly fromCode?: readonly string[] | undefined;
  /**
   * `cr`: the operation that created the item. Distinguishes a bucket that was deleted and created
   * again from the one before.
   */
  readonly creation: string;
  /**
   * `ud`: how often something was given back that a call took before another of its buckets refused
   * it. Undefined while no call that takes from several buckets has taken from this one.
   */
  readonly undone: number | undefined;
  /** `parent_id`: the parent that calls of the entity also take from. */
  readonly parentId: string | undefined;
  /** `ttl`: when the item may be deleted; undefined when it may not. */
  readonly expiresAtSeconds: number | undefined;
}

/**
 * The attribute of one field of one limit: `b_{limit}_{field}`. A limit's name may contain '_', so
 * the field is what follows the last one.
 */
export function limitAttribute(limitName: string, field: LimitField): string {
  return getAttributes(limitName)[field];
}

/**
 * tk tokens, cp capacity, ra refill amount, rp refill period, tc total consumed, cc how much of it
 * by cascade, rm remainder, hd hidden, kd kind and definition, we end of the window. Limits with
 * windows have kd and perhaps we, but no ra, rp and rm.
 */
const FIELDS = ["tk", "cp", "ra", "rp", "tc", "cc", "rm", "hd", "kd", "we"] as const;
/** A field of a limit on a bucket. */
export type LimitField = (typeof FIELDS)[number];
type LimitAttributes = Readonly<Record<LimitField, string>>;

/**
 * The attributes of a limit, by its name: a write needs about ten of them, and strings that were
 * just concatenated are slow to look up.
 */
const ATTRIBUTES_MEMO = new Map<string, LimitAttributes>();

/** The most names in the memo table, which is cleared then; configurations have a few dozen. */
const MAX_MEMO_NAMES = 1000;

function getAttributes(limitName: string): LimitAttributes {
  const held = ATTRIBUTES_MEMO.get(limitName);
  if (held !== undefined) return held;
  if (ATTRIBUTES_MEMO.size >= MAX_MEMO_NAMES) ATTRIBUTES_MEMO.clear();
  const attributes = Object.fromEntries(
    FIELDS.map((field) => [field, `b_${limitName}_${field}`]),
  ) as LimitAttributes;
  ATTRIBUTES_MEMO.set(limitName, attributes);
  return attributes;
}

/** The attribute that holds an operation id. */
export function slotAttribute(slot: number): string {
  return SLOTS[slot]!;
}

const SLOTS = Array.from({ length: SLOT_COUNT }, (_, slot) => `o${slot}`);

function readSlots(item: AttributeMap): readonly (string | undefined)[] {
  return SLOTS.map((slot) => getString(item[slot]));
}

/**
 * Reads an item. Throws when it has a limit of a kind that this version does not support, or is a
 * bucket of the Python zae-limiter: nothing may be written to it then. An image of the same
 * version, if one is `known`, saves reading what belongs to the version, and shares its list of
 * limits with the new image.
 */
export function parseBucketItem(item: AttributeMap, known?: BucketImage): BucketImage {
  if (
    known !== undefined &&
    known.creation === getString(item["cr"]) &&
    known.version === getNumber(item["sv"])
  )
    return imageWith(known, item, {
      slots: readSlots(item),
      mergedIds: readMergedIds(item),
    });
  if (item["sv"] === undefined) throw buildPythonBucketError(item);
  const names = listLimitNames(item);
  const divisor = getNumber(item["shard_count"]) ?? 1;
  const shard = readShard(item, divisor);
  const limits = names.map((name) => shardLimit(readLimit(item, name), shard, divisor));
  return {
    bucket: readBucket(item, limits),
    shard,
    divisor,
    splitAtMs: getNumber(item["sd"]),
    version: number(item, "sv"),
    writes: number(item, "b_wcu_tc"),
    requests: number(item, "gr"),
    slots: readSlots(item),
    mergedIds: readMergedIds(item),
    overridden: getNumber(item["po"]) !== undefined,
    fromCode: getString(item["po"])?.split(","),
    creation: getString(item["cr"]) ?? "",
    undone: getNumber(item["ud"]),
    parentId: getString(item["parent_id"]),
    expiresAtSeconds: getNumber(item["ttl"]),
  };
}

/**
 * Only buckets of the Python zae-limiter have no version. They count pressure as a limit, keep no
 * remainders and no ids, and divide shards differently. An upgrade of the table rewrites them, so
 * this one was written since, by a process that should have been stopped.
 */
function buildPythonBucketError(item: AttributeMap): IncompatibleSchemaError {
  const PK = getString(item["PK"]) ?? "";
  const { entityId, resource } = parseBucketPartition(PK) ?? {};
  return new IncompatibleSchemaError(
    `The bucket of entity ${entityId} on resource ${resource} was written by the Python ` +
      "zae-limiter, which must not use this table any more. Stop it, then upgrade the bucket: " +
      "zae-limiter upgrade",
    { clientVersion: VERSION, schemaVersion: "unknown" },
  );
}

/** Where the limits of a bucket came from, unless all of them are stored ones. */
export type LimitOrigin = Pick<BucketImage, "overridden" | "fromCode">;

/** `po`, which most buckets do not have. No name of a limit contains a comma. */
export function originAttribute({ overridden, fromCode }: LimitOrigin): 1 | string | undefined {
  return overridden ? 1 : fromCode?.join();
}

/**
 * The image after a write that changed every balance. The item has only what was written, which is
 * neither what belongs to the version nor the ids of other writers.
 */
export function buildChangedImage(
  known: BucketImage,
  item: AttributeMap,
  mark: { readonly slot: number; readonly id: string } | undefined,
): BucketImage {
  const { mergedIds } = known;
  const slots = mark === undefined ? known.slots : known.slots.with(mark.slot, mark.id);
  return imageWith(known, item, { slots, mergedIds });
}

/** Every field by its name: copying the object and replacing six of them takes twice as long. */
function imageWith(
  known: BucketImage,
  item: AttributeMap,
  { slots, mergedIds }: Pick<BucketImage, "slots" | "mergedIds">,
): BucketImage {
  return {
    bucket: readBucket(item, known.bucket.limits, known.bucket.balances),
    shard: known.shard,
    divisor: known.divisor,
    splitAtMs: known.splitAtMs,
    version: known.version,
    writes: number(item, "b_wcu_tc"),
    requests: getNumber(item["gr"]) ?? known.requests,
    slots,
    mergedIds,
    overridden: known.overridden,
    fromCode: known.fromCode,
    creation: known.creation,
    undone: getNumber(item["ud"]) ?? known.undone,
    parentId: known.parentId,
    expiresAtSeconds: getNumber(item["ttl"]),
  };
}

const NO_IDS: readonly MergedIds[] = [];

/** How many merged shards an item remembers the ids of: all that 64 shards can leave. */
const MAX_MERGED = 63;

/** How long ids of merged shards are kept: no call waits for an outcome for that long. */
const MERGED_IDS_KEPT_MS = 60_000;

/**
 * What `mi` holds after shard `gone` was merged into `kept`: for each merged shard a text such as
 * `3:1800000000000:id,,id`, with its number, its version and its slots; the last one is last.
 */
export function listMergedIds(kept: BucketImage, gone: BucketImage): readonly string[] {
  const own = { shard: gone.shard, version: gone.version, slots: gone.slots };
  return [...kept.mergedIds, ...gone.mergedIds, own]
    .slice(-MAX_MERGED)
    .map(({ shard, version, slots }) => `${shard}:${version}:${idsText(slots)}`);
}

/** Whether an item still has ids of merged shards that are no longer needed. */
export function hasOldMergedIds({ mergedIds, splitAtMs }: BucketImage, nowMs: number): boolean {
  return mergedIds.length > 0 && nowMs - (splitAtMs ?? 0) >= MERGED_IDS_KEPT_MS;
}

/** The image without such ids, which the next write removes. */
export function withoutOldMergedIds(image: BucketImage, nowMs: number): BucketImage {
  return hasOldMergedIds(image, nowMs) ? { ...image, mergedIds: NO_IDS } : image;
}

function readMergedIds(item: AttributeMap): readonly MergedIds[] {
  const value = item["mi"];
  if (value === undefined || !("L" in value)) return NO_IDS;
  return value.L.map((each) => {
    const [shard, version, ids = ""] = (getString(each) ?? "").split(":");
    const slots = ids.split(",").map((id) => id || undefined);
    return { shard: Number(shard), version: Number(version), slots };
  });
}

/** Ids with commas between them; nothing stands for the free slots at the end. */
function idsText(slots: readonly (string | undefined)[]): string {
  return slots
    .map((id) => id ?? "")
    .join()
    .replace(/,+$/, "");
}

/** `like` has as many numbers: a copy of it is exactly as long, a list that grows reserves more. */
function readBucket(
  item: AttributeMap,
  limits: readonly BucketLimit[],
  like: readonly number[] = limits.flatMap(() => [0, 0, 0]),
): Bucket {
  const balances = like.slice();
  let at = 0;
  for (const { limit, window } of limits) {
    const { tk, rm, we, tc } = getAttributes(limit.name);
    balances[at++] = number(item, tk);
    balances[at++] = number(item, window === undefined ? rm : we);
    balances[at++] = number(item, tc);
  }
  return { limits, refilledAtMs: number(item, "rf"), balances };
}

/** The attributes of a bucket's limits and balances, for an item that is put whole. */
export function bucketAttributes(bucket: Bucket): Record<string, number | string> {
  const item: Record<string, number | string> = { rf: bucket.refilledAtMs };
  bucket.limits.forEach((limit, index) => {
    const { name } = limit.limit;
    Object.assign(item, parameterAttributes(limit));
    item[limitAttribute(name, "tk")] = getStoredMilli(bucket, index);
    item[limitAttribute(name, "tc")] = getConsumedMilli(bucket, index);
    const remainder = getStoredRemainder(bucket, index);
    if (remainder > 0) item[limitAttribute(name, "rm")] = remainder;
    const endMs = getStoredEndMs(bucket, index);
    if (endMs > 0) item[limitAttribute(name, "we")] = endMs;
  });
  return item;
}

/**
 * The attributes of one limit's parameters: every shard has those of the whole, so that it can
 * compute its share for any divisor.
 */
export function parameterAttributes({
  limit,
  window,
  hidden,
}: BucketLimit): Record<string, number | string> {
  const { name } = limit;
  return {
    [limitAttribute(name, "cp")]: limit.capacity * MILLI,
    ...(window !== undefined && { [limitAttribute(name, "kd")]: window.definition }),
    ...(isRate(limit) && {
      [limitAttribute(name, "ra")]: limit.refillAmount * MILLI,
      [limitAttribute(name, "rp")]: limit.refillPeriodSeconds * MILLI,
    }),
    ...(hidden && { [limitAttribute(name, "hd")]: 1 }),
  };
}

/** The only shard of divisor 1 is 0; its key need not be parsed. */
function readShard(item: AttributeMap, divisor: number): number {
  return divisor === 1 ? 0 : (parseBucketPartition(getString(item["PK"]) ?? "")?.shard ?? 0);
}

function listLimitNames(item: AttributeMap): readonly string[] {
  return Object.keys(item)
    .filter((name) => name.startsWith("b_") && name.endsWith("_cp"))
    .map((name) => name.slice("b_".length, -"_cp".length))
    .sort();
}

function readLimit(item: AttributeMap, name: string): BucketLimit {
  const capacity = number(item, limitAttribute(name, "cp")) / MILLI;
  const definition = getString(item[limitAttribute(name, "kd")]);
  const limit =
    definition === undefined
      ? {
          name,
          capacity,
          refillAmount: number(item, limitAttribute(name, "ra")) / MILLI,
          refillPeriodSeconds: number(item, limitAttribute(name, "rp")) / MILLI,
        }
      : parseStoredLimit(`${name}:${capacity}${definition}`);
  return bucketLimit(limit, item[limitAttribute(name, "hd")] !== undefined);
}

/**
 * Absent means 0. A total that has left the safe range loses its last digits here; it is only
 * displayed, and the store itself does the counting.
 */
function number(item: AttributeMap, name: string): number {
  return getNumber(item[name]) ?? 0;
}
