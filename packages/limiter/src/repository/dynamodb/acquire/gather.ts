/*
 * A call that fits into no single shard, but into all of them together, takes a part from each of
 * several shards in one transaction. Parts are counted in millitokens, so that two shards with half
 * a token each can serve a call for one token. The writes are those of an ordinary take, with its
 * conditions; what a shard in debt owes is held back on the others.
 */
import { shardSumMilli } from "../../../core/bucket/shard-sums.ts";
import { LimitFold, type Costs } from "../write/batch-decision.ts";
import { updateOf } from "../write/bucket-update.ts";
import { bucketUnder } from "./charges.ts";
import { TRANSACTION_WRITE_UNITS, type TransactItem } from "../table/connection.ts";
import type { KnownShard } from "../cache/known-buckets.ts";
import type { WantedCharge } from "./wanted-charge.ts";

/** What one shard gives to a call. */
export interface GatheredPart {
  readonly shard: KnownShard;
  readonly costs: Costs;
  readonly write: TransactItem;
}

/**
 * Divides a call that fits all shards together into parts; shards that come first are preferred.
 */
export function gather(
  charge: WantedCharge,
  shards: readonly KnownShard[],
  { nowMs, requests }: { readonly nowMs: number; readonly requests: number },
): readonly GatheredPart[] {
  const buckets = shards.map(({ image }) => bucketUnder(charge, image, nowMs));
  const folds = shards.map(() => new Map<string, LimitFold>());
  for (const [name, cost] of Object.entries(charge.costs)) {
    if (cost === 0) continue;
    const held = buckets.map((bucket) => shardSumMilli([bucket], name, nowMs));
    const isIndebted = held.some((milli) => milli < 0);
    let missing = cost;
    held.forEach((milli, index) => {
      const part = Math.min(missing, Math.max(0, milli));
      if (part === 0) return;
      const fold = new LimitFold();
      fold.take(part);
      if (isIndebted) fold.needMilli = milli;
      folds[index]!.set(name, fold);
      missing -= part;
    });
  }
  const holders = shards.filter((_, index) => folds[index]!.size > 0);
  // A call that costs nothing is still counted as a request.
  const giving = holders.length === 0 ? shards.slice(0, 1) : holders;
  return giving.map((shard, position) => {
    const index = shards.indexOf(shard);
    const change = {
      folds: folds[index]!,
      limits: buckets[index]!.limits,
      overridden: charge.policy.source === "override",
      requests: position === 0 ? requests : 0,
      writeUnits: TRANSACTION_WRITE_UNITS,
      mark: undefined,
      afterUnanswered: false,
      ttlMultiplier: 0,
    };
    const costs = Object.fromEntries(
      [...folds[index]!].map(([name, { netMilli }]) => [name, netMilli]),
    );
    // A transaction returns no items, and its updates have no field that asks for them.
    const { ReturnValues: _, ...update } = updateOf(shard.image, change, nowMs);
    return { shard, costs, write: { Update: { Key: shard.key.marshalled, ...update } } };
  });
}
