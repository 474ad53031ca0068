import * as fc from "fast-check";
import { getAmount, MILLI } from "../../src/core/amounts.ts";
import { apply, bucketLimits, type Bucket } from "../../src/core/bucket/bucket.ts";
import type { Policy } from "../../src/core/bucket/policy.ts";
import type { RateLimit } from "../../src/core/limit-kinds.ts";
import { bucketAttributes } from "../../src/repository/dynamodb/items/bucket-item.ts";
import {
  marshalItem,
  getNumber,
  type AttributeMap,
} from "../../src/repository/dynamodb/transport/attribute-values.ts";
import type { WriteIntent } from "../../src/repository/dynamodb/write/write-intent.ts";
import type { PlanRequest } from "../../src/repository/dynamodb/write/write-plan.ts";
import { newMarker } from "./scripted-writes.ts";
import { shardKey } from "./shard-images.ts";

/** When the buckets of situations were last refilled. */
export const START_MS = 1_800_000_000_000;

/** The limits that situations are about. */
export const NAMES = ["rpm", "tpm"];

type Kind = "take" | "charge" | "overrun" | "giveBack";

/** What one member wants: by limit, in millitokens. */
export interface Wanted {
  readonly kind: Kind;
  readonly costs: Readonly<Record<string, number>>;
  /** What a take must leave for others. */
  readonly leaves?: Readonly<Record<string, number>> | undefined;
  /** What an end only counts. */
  readonly unlimited?: Readonly<Record<string, number>>;
  readonly isCascaded: boolean;
}

/** A name that no bucket of these has a limit for. */
const UNLIMITED = "ipd";

/** What others did between the image and the write: moved balances, or refilled. */
export type Meanwhile =
  | { readonly by: Readonly<Record<string, number>> }
  | { readonly refillAfterMs: number };

/** An image, a batch, and what the write finds. */
export interface Situation {
  readonly limits: readonly RateLimit[];
  /** Stored balances, also in debt and above the capacity: gives are not bounded. */
  readonly balances: readonly { readonly tokens: number; readonly fraction: number }[];
  readonly elapsedMs: number;
  readonly wanted: readonly Wanted[];
  readonly meanwhile: readonly Meanwhile[];
}

/** Any of them. */
export function situation(): fc.Arbitrary<Situation> {
  return fc
    .integer({ min: 1, max: NAMES.length })
    .map((count) => NAMES.slice(0, count))
    .chain((names) =>
      fc.record({
        limits: fc.tuple(...names.map((name) => limit(name))),
        balances: fc.array(
          fc.record({
            tokens: fc.integer({ min: -5000, max: 25_000 }),
            fraction: fc.double({ min: 0, max: 0.999, noNaN: true }),
          }),
          {
            minLength: names.length,
            maxLength: names.length,
          },
        ),
        elapsedMs: fc.oneof(
          fc.constant(0),
          fc.integer({ min: 1, max: 5 }),
          fc.integer({ min: 1, max: 9000 }),
        ),
        wanted: members(names),
        meanwhile: fc.oneof(
          { weight: 1, arbitrary: fc.constant([]) },
          { weight: 2, arbitrary: fc.array(meanwhile(names), { minLength: 1, maxLength: 3 }) },
        ),
      }),
    );
}

/** Small numbers, with fractions, so that most members meet the ceiling or the ground. */
function limit(name: string): fc.Arbitrary<RateLimit> {
  return fc.record({
    name: fc.constant(name),
    capacity: fc.integer({ min: 1, max: 20 }),
    refillAmount: fc.integer({ min: 1, max: 100 }),
    refillPeriodSeconds: fc.integer({ min: 1, max: 7 }),
  });
}

/** Some of these limits. */
export function buildLimits(names: readonly string[]): fc.Arbitrary<readonly RateLimit[]> {
  return fc
    .shuffledSubarray([...names], { minLength: 1 })
    .chain((some) => fc.tuple(...some.map((name) => limit(name))));
}

/** Up to six members. */
export function members(names: readonly string[]): fc.Arbitrary<readonly Wanted[]> {
  return fc.array(
    fc.oneof(
      member("take", [...names, UNLIMITED], { min: 0, max: 12_000 }),
      member("take", names, { min: 0, max: 4000 }),
      member("charge", [...names, UNLIMITED], { min: 0, max: 12_000 }),
      ending("giveBack", names, { min: -12_000, max: 0 }),
      ending("overrun", names, { min: -12_000, max: 12_000 }),
    ),
    { minLength: 1, maxLength: 6 },
  );
}

/** A member that ends a lease: it may also count what its take has only counted. */
function ending(
  kind: Kind,
  names: readonly string[],
  range: { readonly min: number; readonly max: number },
): fc.Arbitrary<Wanted> {
  return fc.record({
    kind: fc.constant(kind),
    costs: byName(names, range),
    isCascaded: fc.boolean(),
    unlimited: fc.option(byName([...names, UNLIMITED], range), { nil: {} }),
  });
}

/** What an item has counted, in all and by cascade. */
export function countsIn(item: AttributeMap): Readonly<Record<string, number>> {
  return Object.fromEntries(COUNTERS.map((name) => [name, getNumber(item[name]) ?? 0]));
}

/** What an item must have counted after these members, whatever limits it has. */
export function countEntries(written: readonly Wanted[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = Object.fromEntries(COUNTERS.map((name) => [name, 0]));
  for (const { kind, costs, unlimited = {}, isCascaded } of written) {
    const requests = kind === "take" ? 1 : 0;
    counts["gr"]! += requests;
    if (isCascaded) counts["gc"]! += requests;
    for (const [name, milli] of [...Object.entries(costs), ...Object.entries(unlimited)]) {
      counts[`b_${name}_tc`]! += milli;
      if (isCascaded) counts[`b_${name}_cc`]! += milli;
    }
  }
  return counts;
}

const COUNTERS: readonly string[] = [
  ...[...NAMES, UNLIMITED].flatMap((name) => [`b_${name}_tc`, `b_${name}_cc`]),
  "gr",
  "gc",
];

/** What a member only counts on a bucket with these limits. */
function countedBy(
  { kind, costs, unlimited = {} }: Wanted,
  { limits }: Bucket,
): Readonly<Record<string, number>> {
  if (kind !== "take" && kind !== "charge") return unlimited;
  const isVisible = (name: string): boolean =>
    limits.some((held) => held.limit.name === name && !held.hidden);
  return Object.fromEntries(Object.entries(costs).filter(([name]) => !isVisible(name)));
}

/** The bucket after a member has counted: totals of its limits grow, and no balance changes. */
export function afterCounting(bucket: Bucket, wanted: Wanted): Bucket {
  const counted = countedBy(wanted, bucket);
  const balances = bucket.balances.slice();
  for (const [index, held] of bucket.limits.entries())
    balances[3 * index + 2] = balances[3 * index + 2]! + (counted[held.limit.name] ?? 0);
  return { ...bucket, balances };
}

function member(
  kind: Kind,
  names: readonly string[],
  range: { readonly min: number; readonly max: number },
): fc.Arbitrary<Wanted> {
  return fc.record({
    kind: fc.constant(kind),
    costs: byName(names, range),
    isCascaded: fc.boolean(),
    leaves: kind === "take" ? fc.option(leaves(names), { nil: undefined }) : fc.constant(undefined),
  });
}

/** Whole tokens of some names, in millitokens. */
function leaves(names: readonly string[]): fc.Arbitrary<Readonly<Record<string, number>>> {
  return fc.dictionary(
    fc.constantFrom(...names),
    fc.integer({ min: 0, max: 8 }).map((tokens) => tokens * MILLI),
  );
}

function meanwhile(names: readonly string[]): fc.Arbitrary<Meanwhile> {
  return fc.oneof(
    fc.record({ by: byName(names, { min: -12_000, max: 12_000 }) }),
    fc.record({ by: byName(names, { min: -3, max: 3 }) }),
    fc.record({ refillAfterMs: fc.integer({ min: 0, max: 9000 }) }),
  );
}

/** Some of the names, each with an amount. */
function byName(
  names: readonly string[],
  range: { readonly min: number; readonly max: number },
): fc.Arbitrary<Readonly<Record<string, number>>> {
  return fc.dictionary(fc.constantFrom(...names), fc.integer(range));
}

/** The bucket that a situation begins with. */
export function buildBucket({ limits, balances }: Situation): Bucket {
  const prepared = bucketLimits(limits);
  return {
    limits: prepared,
    refilledAtMs: START_MS,
    balances: prepared.flatMap(({ period }, index) => {
      const { tokens, fraction } = balances[index]!;
      return [tokens, Math.floor(fraction * period), 0];
    }),
  };
}

/** Its item. */
export function buildItem(bucket: Bucket): AttributeMap {
  return marshalItem({ ...bucketAttributes(bucket), sv: 5, cr: "other.0000", b_wcu_tc: 3, gr: 0 });
}

/** The bucket after what others did meanwhile. */
export function after(bucket: Bucket, event: Meanwhile, nowMs: number): Bucket {
  if ("by" in event) {
    const balances = bucket.balances.slice();
    bucket.limits.forEach((held, index) => {
      balances[index * 3] = balances[index * 3]! + getAmount(event.by, held.limit.name);
    });
    return { ...bucket, balances };
  }
  const atMs = Math.min(nowMs, bucket.refilledAtMs + event.refillAfterMs);
  return apply(
    bucket,
    bucket.limits.map(() => 0),
    atMs,
  );
}

/** What a member asks of a bucket's writer. */
export function buildIntent(wanted: Wanted, policy: Policy): WriteIntent {
  const { leaves: left, ...step } = wanted;
  const amounts = Object.fromEntries(
    Object.entries(left ?? {}).map(([name, milli]) => [name, milli / MILLI]),
  );
  const leave = left && { amounts, priority: undefined };
  return { ...step, requests: wanted.kind === "take" ? 1 : 0, policy, leave };
}

/** What a plan is made from, with defaults for what most situations are not about. */
export function buildRequest(
  parts: Pick<PlanRequest, "policy" | "image" | "intents" | "nowMs"> & Partial<PlanRequest>,
): PlanRequest {
  return {
    asOfMs: parts.nowMs,
    key: shardKey(),
    tickMs: 1,
    outcomes: newMarker(),
    writeUnits: 1,
    ttlMultiplier: 7,
    ...parts,
  };
}
