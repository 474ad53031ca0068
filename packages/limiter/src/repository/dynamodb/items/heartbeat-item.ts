import { numberOf, type AttributeMap } from "../transport/attribute-values.ts";

/*
 * The heartbeat of a table's aggregator, one item for the whole table. Besides its keys it has
 *
 *   counted_until_ms    everything that was consumed before this time is in the snapshots
 *   seen_ms             when that was written, by the clock of the writer
 *   written_by          who wrote it
 */

/** What readers need of a heartbeat. */
export interface HeartbeatRecord {
  readonly countedUntilMs: number;
}

/** Reads the heartbeat of a table; undefined if nothing was ever counted. */
export function heartbeatOf(item: AttributeMap | undefined): HeartbeatRecord | undefined {
  const countedUntilMs = numberOf(item?.["counted_until_ms"]);
  return countedUntilMs === undefined ? undefined : { countedUntilMs };
}
