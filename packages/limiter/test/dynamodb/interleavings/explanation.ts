/*
 * Whether the calls that a process had under way can have done what its write did: some of them,
 * each once and whole, one after another in some order, each take finding what it asks for. A batch
 * that is judged by its net amount, or a call that is carried out twice, has no such story.
 */
import type { Operation } from "./client.ts";
import { fraction, isLess, least, minus, plus, type Fraction } from "../../oracle/fraction.ts";
import { GRANTS, reversed, type Effect } from "./ledger.ts";
import {
  getCapacity,
  getConsumed,
  listGrants,
  limitNames,
  shardValue,
  type StoredShard,
} from "../../oracle/stored-bucket.ts";
import type { AppliedWrite } from "./write-check.ts";

/**
 * What one call did to the bucket; `asks` when it was only granted because everything was there.
 */
interface Deed {
  readonly effect: Effect;
  readonly asks: boolean;
}

/** Orders that are tried before a story counts as possible: eight calls have 40 320. */
const MOST_ORDERS = 20_000;

/**
 * What cannot be, for a bucket of several shards; undefined when there is a story. Takes are whole
 * there too, over all shards that a write touches; what is given back may come in parts, each to
 * the shard that it belongs to, and so may a charge that one shard cannot pay.
 */
export function unexplainedShards(
  { before, after }: AppliedWrite,
  operations: readonly Operation[],
): string | undefined {
  const target = new Map(
    limitNames(after).map((name) => [
      name,
      Number(getConsumed(after, name) - getConsumed(before, name)) / 1000,
    ]),
  );
  target.set(GRANTS, Number(listGrants(after) - listGrants(before)));
  const [takes, ends] = [
    operations.filter(({ kind }) => kind === "take"),
    operations.filter(({ kind }) => kind !== "take"),
  ];
  const isTold = (rest: Effect): boolean =>
    [...rest].every(([name, amount]) => {
      const mayCharge = ends.reduce(
        (sum, { effect }) => sum + Math.max(0, effect.get(name) ?? 0),
        0,
      );
      const mayGive = operations.reduce(
        (sum, { kind, effect }) => sum + give(kind, effect.get(name) ?? 0),
        0,
      );
      return amount <= mayCharge && amount >= -mayGive;
    });
  const isExplained = (rest: Effect, [first, ...others]: readonly Operation[]): boolean =>
    first === undefined
      ? isTold(rest)
      : isExplained(rest, others) || isExplained(less(rest, first.effect), others);
  return isExplained(target, takes)
    ? undefined
    : `no calls under way account for ${JSON.stringify([...target])}`;
}

/** What cannot be; undefined when there is a story. Only for buckets that were never split. */
export function unexplained(
  write: AppliedWrite,
  operations: readonly Operation[],
): string | undefined {
  const { before, after } = write;
  const names = limitNames(after);
  const target = new Map(
    names.map((name) => [
      name,
      Number(getConsumed(after, name) - getConsumed(before, name)) / 1000,
    ]),
  );
  target.set(GRANTS, Number(listGrants(after) - listGrants(before)));
  const stories = listStories(target, operations);
  const did = JSON.stringify([...target]);
  if (stories.length === 0) return `no calls under way account for ${did}`;
  const isRewritten = names.some((name) => getCapacity(before, name) !== getCapacity(after, name));
  if (before.size === 0 || isRewritten || write.tickMs > 1) return undefined;
  return stories.some((deeds) => hasOrder(write, deeds))
    ? undefined
    : `in no order of the calls under way would they leave this: ${did}`;
}

/** All choices of deeds that add up. */
function listStories(
  target: Effect,
  operations: readonly Operation[],
  told: readonly Deed[] = [],
): readonly (readonly Deed[])[] {
  const [first, ...others] = operations;
  if (first === undefined)
    return [...target.values()].every((amount) => amount === 0) ? [told] : [];
  const without = listStories(target, others, told);
  return [
    ...without,
    ...listDeeds(first).flatMap((deed) =>
      listStories(less(target, deed.effect), others, [...told, deed]),
    ),
  ];
}

/**
 * A take may also be given back, when another bucket refused it; of a settlement, only what it
 * charges may be repeated.
 */
function listDeeds({ kind, effect }: Operation): readonly Deed[] {
  if ([...effect.values()].every((amount) => amount === 0)) return [];
  if (kind === "take")
    return [
      { effect, asks: true },
      { effect: reversed(effect), asks: false },
    ];
  const charges = new Map([...effect].filter(([, amount]) => amount > 0));
  const isMixed = charges.size > 0 && charges.size < effect.size;
  return [
    { effect, asks: false },
    ...(kind === "settle" && isMixed ? [{ effect: charges, asks: false }] : []),
  ];
}

/** What a take may give back is what it took, when another bucket refused it. */
function give(kind: Operation["kind"], amount: number): number {
  return kind === "take" ? amount : Math.max(0, -amount);
}

function less(target: Effect, effect: Effect): Effect {
  return new Map([...target].map(([name, amount]) => [name, amount - (effect.get(name) ?? 0)]));
}

interface Way {
  readonly ceilings: ReadonlyMap<string, Fraction>;
  readonly goal: ReadonlyMap<string, Fraction>;
  orders: number;
}

function hasOrder({ before, after, call }: AppliedWrite, deeds: readonly Deed[]): boolean {
  const [old, now] = [[...before.values()][0]!, [...after.values()][0]!];
  const names = [...now.limits]
    .filter(([, { hidden, endMs }]) => !hidden && endMs === undefined)
    .map(([name]) => name);
  const values = (shard: StoredShard): ReadonlyMap<string, Fraction> =>
    new Map(names.map((name) => [name, shardValue(shard, name, call.decidedAtMs)]));
  const ceilings = new Map(
    names.map((name) => [name, fraction(now.limits.get(name)!.terms.capacityMilli)]),
  );
  return leads({ ceilings, goal: values(now), orders: 0 }, values(old), deeds);
}

function leads(way: Way, from: ReadonlyMap<string, Fraction>, deeds: readonly Deed[]): boolean {
  if (deeds.length === 0) {
    way.orders += 1;
    return (
      way.orders > MOST_ORDERS ||
      [...from].every(([name, value]) => isNear(value, way.goal.get(name)!))
    );
  }
  return deeds.some(({ effect, asks }, index) => {
    const cost = (name: string): Fraction => fraction(BigInt(effect.get(name) ?? 0) * 1000n);
    if (asks && [...from].some(([name, value]) => isLess(value, cost(name)))) return false;
    const next = new Map(
      [...from].map(([name, value]) => [
        name,
        least(way.ceilings.get(name)!, minus(value, cost(name))),
      ]),
    );
    return leads(way, next, deeds.toSpliced(index, 1));
  });
}

/** To less than a millitoken. */
function isNear(left: Fraction, right: Fraction): boolean {
  const one = fraction(1n);
  return isLess(left, plus(right, one)) && isLess(right, plus(left, one));
}
