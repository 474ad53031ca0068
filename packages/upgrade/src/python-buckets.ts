/*
 * Buckets of the Python zae-limiter. Its shards are items of their own, each with a balance and the
 * parameters of the whole; here they become one shard again, which this library splits when it
 * needs to.
 *
 *   balance    of one shard: as it is, debt included. Of several: what each shard has at the last
 *              refill of any of them, by its share of the rate and up to its share of the capacity;
 *              then the sum, up to the capacity. Every step rounds down, so nothing is minted.
 *   wcu        the write budget of a shard: it is not a limit here (ADR 008)
 *   sd         marks for aggregators that the change of totals consumed nothing
 *   ttl        stays, except on a bucket in debt: its expiry would forgive the debt
 */
import type { Bucket, BucketLimit } from "zae-limiter/backend";
import {
  getBoolean,
  bucketAttributes,
  bucketKey,
  bucketLimit,
  keyAttributes,
  limitAttribute,
  marshalItem,
  MILLI,
  getNumber,
  getString,
  type AttributeMap,
  type BucketName,
} from "zae-limiter/dynamodb-internals";
import type { Change } from "./change.ts";
import { findUnsupported } from "./python-limits.ts";

const WRITE_BUDGET = "wcu";

/** Whether a bucket is still as the Python zae-limiter wrote it: ours have a version. */
export function isPythonBucket(item: AttributeMap): boolean {
  return item["sv"] === undefined;
}

/**
 * Whether a bucket has any limits: a call that ended after its bucket had expired left only a
 * balance.
 */
export function hasLimits(item: AttributeMap): boolean {
  return listLimitNames(item).length > 0;
}

/** How many shards a bucket has, as its shard 0 says. */
export function readShardCount(item: AttributeMap): number {
  return Math.max(1, getNumber(item["shard_count"]) ?? 1);
}

/** One bucket of ours from all shards of one of theirs, shard 0 first. */
export function bucketChange(
  name: BucketName & { readonly namespaceId: string },
  shards: readonly AttributeMap[],
  nowMs: number,
): Change {
  const first = shards[0]!;
  const names = listLimitNames(first);
  const problems = new Map(names.map((each) => [each, findUnsupported(first, `b_${each}_`)]));
  const kept = names.filter((each) => problems.get(each)?.isKept !== false);
  const bucket = mergeBuckets(shards, kept);
  const parentId =
    getBoolean(first["cascade"]) === true ? getString(first["parent_id"]) : undefined;
  const isInDebt = bucket.balances.some((balance, index) => index % 3 === 0 && balance < 0);
  const item = marshalItem({
    ...keyAttributes(bucketKey({ ...name, shard: 0 }, parentId)),
    ...bucketAttributes(bucket),
    sv: nowMs,
    sd: nowMs,
    gr: 0,
    b_wcu_tc: 0,
    shard_count: 1,
    cr: `upgrade-${nowMs}`,
    ...(!isInDebt && { ttl: getNumber(first["ttl"]) }),
  });
  return {
    kind: "buckets",
    seen: shards,
    result: [item],
    dropped: [...problems].flatMap(([limitName, problem]) =>
      problem === undefined
        ? []
        : [`limit ${limitName} in buckets of resource ${name.resource}: ${problem.reason}`],
    ),
  };
}

/**
 * The first of several shards with some others merged into it, still in the Python zae-limiter's
 * format: for buckets of more shards than a transaction holds.
 */
export function foldShards(first: AttributeMap, others: readonly AttributeMap[]): Change {
  const { balances, limits, refilledAtMs } = mergeBuckets(
    [first, ...others],
    listLimitNames(first),
  );
  const changed = Object.fromEntries(
    limits.flatMap(({ limit }, index) => [
      [limitAttribute(limit.name, "tk"), { N: String(balances[index * 3]!) }],
      [limitAttribute(limit.name, "tc"), { N: String(balances[index * 3 + 2]!) }],
    ]),
  );
  return {
    kind: "shards",
    seen: [first, ...others],
    result: [{ ...first, ...changed, rf: { N: String(refilledAtMs) } }],
  };
}

function listLimitNames(item: AttributeMap): readonly string[] {
  return Object.keys(item)
    .flatMap((attribute) => /^b_(.+)_cp$/.exec(attribute)?.[1] ?? [])
    .filter((limitName) => limitName !== WRITE_BUDGET)
    .sort();
}

function mergeBuckets(shards: readonly AttributeMap[], names: readonly string[]): Bucket {
  const first = shards[0]!;
  const shardCount = readShardCount(first);
  const refilledAtMs = Math.max(...shards.map((shard) => getNumber(shard["rf"]) ?? 0));
  // A limit without a balance was added to the configuration and never charged: it is new.
  const charged = names.filter((name) =>
    shards.some((shard) => shard[limitAttribute(name, "tk")] !== undefined),
  );
  const limits = charged.map((name) => readLimit(first, name));
  return {
    limits,
    refilledAtMs,
    balances: limits.flatMap((limit) => [
      mergeMilli(shards, limit, { refilledAtMs, shardCount }),
      0,
      total(shards, limitAttribute(limit.limit.name, "tc")),
    ]),
  };
}

function mergeMilli(
  shards: readonly AttributeMap[],
  limit: BucketLimit,
  { refilledAtMs, shardCount }: { readonly refilledAtMs: number; readonly shardCount: number },
): number {
  const attribute = limitAttribute(limit.limit.name, "tk");
  if (shards.length === 1) return getNumber(shards[0]![attribute]) ?? 0;
  const share = Math.floor(limit.capacityMilli / shardCount);
  let sum = 0;
  for (const shard of shards) {
    const tokens = getNumber(shard[attribute]);
    if (tokens === undefined) continue;
    const elapsedMs = Math.max(0, refilledAtMs - (getNumber(shard["rf"]) ?? 0));
    const earned = Number(
      (BigInt(elapsedMs) * BigInt(limit.refillAmountMilli)) /
        (BigInt(limit.refillPeriodMs) * BigInt(shardCount)),
    );
    sum += Math.max(tokens, Math.min(share, tokens + earned));
  }
  return Math.min(limit.capacityMilli, sum);
}

function total(shards: readonly AttributeMap[], attribute: string): number {
  return shards.reduce((sum, shard) => sum + (getNumber(shard[attribute]) ?? 0), 0);
}

function readLimit(item: AttributeMap, name: string): BucketLimit {
  const tokens = (field: "cp" | "ra" | "rp"): number =>
    (getNumber(item[limitAttribute(name, field)]) ?? 0) / MILLI;
  const limit = {
    name,
    capacity: tokens("cp"),
    refillAmount: tokens("ra"),
    refillPeriodSeconds: tokens("rp"),
  };
  return bucketLimit(limit, false);
}
