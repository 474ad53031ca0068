import { DAY_MS, windowEndMs } from "../../../../core/usage.ts";
import { usageIndexKeys, usageKey, windowText } from "../../items/keys.ts";
import { positionAttribute } from "../../items/usage-item.ts";
import { toChunks, marshalKey } from "../../table/batch.ts";
import { ExpressionBuilder } from "../../table/update-expression.ts";
import { addExactly } from "./usage-change.ts";
import type { ShardPart, UsageSum } from "./usage-sums.ts";

/**
 * The most bucket shards that one write adds. Buckets have at most 64. With all of them, 32 limits
 * and their parts by cascade, the condition has 3 of the 4 KB and 255 of the 300 operators that
 * DynamoDB allows.
 */
const MAX_SHARDS_IN_A_WRITE = 64;

/** Divides a sum so that each part fits into one write. */
export function writableSums({ namespaceId, name, parts }: UsageSum): readonly UsageSum[] {
  return toChunks(parts, MAX_SHARDS_IN_A_WRITE).map((chunk) => ({
    namespaceId,
    name,
    parts: chunk,
  }));
}

/**
 * The write that adds a sum to its snapshot, which it creates where there is none. It requires that
 * nothing of the sum has been counted: for each bucket shard, that the position of the last change
 * that was is older than the first one of the sum. It stores the position of the last one, so it
 * succeeds once, however often it is repeated.
 */
export function snapshotUpdate(sum: UsageSum, retentionDays: number): object {
  const { namespaceId, name, parts } = sum;
  const builder = new ExpressionBuilder();
  builder.set("entity_id", name.entityId);
  builder.set("resource", name.resource);
  builder.set("window", name.window);
  builder.set("window_start", windowText(name.startMs));
  for (const [attribute, value] of Object.entries(usageIndexKeys(namespaceId, name)))
    builder.set(attribute, value);
  const endMs = windowEndMs(name.window, name.startMs);
  builder.set("ttl", Math.floor((endMs + retentionDays * DAY_MS) / 1000));
  for (const part of parts) guard(builder, part);
  // The builder leaves out the number 0, but not the bigint: a counter whose changes cancel each
  // other out must be there, as if they had been counted one by one.
  for (const [attribute, total] of computeTotals(parts)) builder.add(attribute, BigInt(total));
  return {
    Key: marshalKey(usageKey(namespaceId, name)),
    ...builder.build(),
    ReturnValuesOnConditionCheckFailure: "ALL_OLD",
  };
}

function guard(builder: ExpressionBuilder, { shard, contributions }: ShardPart): void {
  const attribute = positionAttribute(shard);
  const held = builder.name(attribute);
  const first = builder.value(contributions[0]!.record.position);
  builder.require(`(attribute_not_exists(${held}) OR ${held}<${first})`);
  builder.set(attribute, contributions.at(-1)!.record.position);
}

function computeTotals(parts: readonly ShardPart[]): ReadonlyMap<string, number | bigint> {
  const totals = new Map<string, number | bigint>();
  for (const { contributions } of parts)
    for (const { change } of contributions)
      for (const { attribute, amount } of change)
        totals.set(attribute, addExactly(totals.get(attribute) ?? 0, amount));
  return totals;
}
