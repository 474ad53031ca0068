import type { KnownBuckets } from "../cache/known-buckets.ts";
import type { Connection } from "../table/connection.ts";
import type { ItemReader } from "../table/item-reader.ts";
import { MergeMonitor } from "./merge-monitor.ts";
import { Merger, type PolicyReader } from "./merger.ts";
import { PressureWatch } from "./pressure.ts";
import { Splitter } from "./splitter.ts";

/** Everything that decides and changes how many shards buckets have. */
export interface Resharding {
  readonly splitter: Splitter;
  readonly merger: Merger;
  readonly mergeMonitor: MergeMonitor;
  readonly pressure: PressureWatch;
}

/** What resharding is made of. */
export interface ReshardingOptions {
  readonly connection: Connection;
  readonly known: KnownBuckets;
  readonly reader: ItemReader;
  readonly refreshPolicy: PolicyReader;
  readonly ttlMultiplier: number;
  readonly maxShards: number;
  readonly counts: { splits: number; merges: number };
}

/** Makes what splits and merges the buckets of one process. */
export function createResharding(options: ReshardingOptions): Resharding {
  const { clock } = options.connection;
  const splitter = new Splitter(options);
  const merger = new Merger(options);
  const mergeMonitor = new MergeMonitor({ ...options, clock, merger });
  const pressure = new PressureWatch({ ...options, clock, mergeMonitor, splitter });
  return { splitter, merger, mergeMonitor, pressure };
}
