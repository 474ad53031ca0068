/*
 * Two items of the table itself. The heartbeat says how far usage has been counted:
 *
 *   counted_until_ms    every change of a bucket before this time is in the snapshots; only ever
 *                       moved forward
 *   seen_ms             when that was written, by the writer's clock
 *   written_by          the aggregator that wrote it
 *
 * The pulse is what an aggregator writes to see it come back through the stream:
 *
 *   pulse_ms            when it was written, by the writer's clock
 *   pulses              how many there were, so that every one of them changes the item: a write
 *                       that changes nothing never gets into the stream
 */
import type { ItemKey } from "../table/batch.ts";
import { ExpressionBuilder } from "../table/update-expression.ts";
import { marshalKey } from "../table/batch.ts";
import { getNumber, getString, type AttributeMap } from "../transport/attribute-values.ts";
import { heartbeatKey, namespaceIndexKeys, pulseKey, TABLE_NAMESPACE } from "./keys.ts";

const COUNTED_UNTIL = "counted_until_ms";

/** How far usage has been counted, and who found that when. */
export interface HeartbeatRecord {
  readonly countedUntilMs: number;
  readonly seenMs: number;
  readonly writtenBy: string;
}

/** Reads the heartbeat; undefined when nothing was ever counted. */
export function parseHeartbeat(item: AttributeMap | undefined): HeartbeatRecord | undefined {
  const countedUntilMs = getNumber(item?.[COUNTED_UNTIL]);
  if (countedUntilMs === undefined) return undefined;
  return {
    countedUntilMs,
    seenMs: getNumber(item?.["seen_ms"]) ?? countedUntilMs,
    writtenBy: getString(item?.["written_by"]) ?? "",
  };
}

/** The write that moves the heartbeat forward; its condition fails where it is as far already. */
export function heartbeatUpdate({ countedUntilMs, seenMs, writtenBy }: HeartbeatRecord): object {
  const key = heartbeatKey();
  const builder = builderFor(key);
  const [name, value] = [builder.name(COUNTED_UNTIL), builder.value(countedUntilMs)];
  builder.require(`(attribute_not_exists(${name}) OR ${name}<${value})`);
  builder.set(COUNTED_UNTIL, countedUntilMs);
  builder.set("seen_ms", seenMs);
  builder.set("written_by", writtenBy);
  return { Key: marshalKey(key), ...builder.build() };
}

/** The write of a pulse. */
export function pulseUpdate(nowMs: number): object {
  const key = pulseKey();
  const builder = builderFor(key);
  builder.set("pulse_ms", nowMs);
  builder.add("pulses", 1);
  const { ConditionExpression: _, ...update } = builder.build();
  return { Key: marshalKey(key), ...update };
}

function builderFor(key: ItemKey): ExpressionBuilder {
  const builder = new ExpressionBuilder();
  for (const [attribute, value] of Object.entries(namespaceIndexKeys(TABLE_NAMESPACE, key)))
    builder.set(attribute, value);
  return builder;
}
