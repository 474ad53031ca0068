/*
 * Merges buckets that have become calm (ADR 013). Clients split and merge buckets themselves, but
 * it takes six minutes to see that a bucket is calm, so where all processes live for less than
 * that, this is what merges them.
 *
 * Records only show where to look: all shards of the bucket are read once a minute, and merged by
 * the rules and transactions that clients use. What fails is tried again at the next look, so no
 * record fails because of it. Everything is awaited, because a Lambda is frozen when it has
 * answered.
 */
import { levelAt, resolvePolicy } from "../../../../core/bucket/policy.ts";
import { ZaeLimiterError } from "../../../../core/errors.ts";
import { listConfigKeys } from "../../../policy-cache.ts";
import type { Clock } from "../../../system-clock.ts";
import { KnownBuckets } from "../../cache/known-buckets.ts";
import { readConfigs } from "../../limits.ts";
import { MergeMonitor } from "../../shards/merge-monitor.ts";
import { Merger, type PolicyReader } from "../../shards/merger.ts";
import type { Connection } from "../../table/connection.ts";
import { eachWithin } from "../../table/each-within.ts";
import { ItemReader } from "../../table/item-reader.ts";
import { UNLIMITED, type TimeCheck } from "../part.ts";
import type { StreamRecord } from "../stream-record.ts";
import { countReshaped, parseShardChanges } from "./shard-change.ts";

/** The most buckets that are looked at together. */
const MAX_AT_ONCE = 16;

/** What a batch shows of shards. */
export interface ShardReport {
  /** Splits and merges in the batch, by any process. */
  readonly splits: number;
  readonly merges: number;
  /** The largest number of shards that a bucket of this batch has; 0 when it has none. */
  readonly shards: number;
}

/** Merges the shards of calm buckets. */
export class CalmMerger {
  readonly #clock: Clock;
  readonly #calm: MergeMonitor;

  constructor(options: {
    readonly connection: Connection;
    /** Fill times that an idle bucket is kept for once it is whole. */
    readonly ttlMultiplier: number;
  }) {
    const { clock } = options.connection;
    const reader = new ItemReader(options.connection);
    // Of all namespaces: the keys of buckets contain their namespace.
    const known = new KnownBuckets(reader, clock);
    const counts = { merges: 0 };
    const merger = new Merger({
      ...options,
      reader,
      known,
      refreshPolicy: readStoredPolicies(reader),
      counts,
    });
    this.#clock = clock;
    this.#calm = new MergeMonitor({ known, merger, clock });
  }

  /** Looks at the buckets of a batch that have several shards. */
  async look(
    records: readonly StreamRecord[],
    checkTime: TimeCheck = UNLIMITED,
  ): Promise<ShardReport> {
    const changes = [...parseShardChanges(records).values()];
    const nowMs = this.#clock.now();
    const newest = changes.map((each) => each.at(-1)!);
    await eachWithin(MAX_AT_ONCE, newest, async ({ first, after: image }) => {
      if (image === undefined || image.divisor === 1) return;
      try {
        checkTime();
        await this.#calm.lookAfter(first, image, nowMs);
      } catch (error) {
        if (!(error instanceof ZaeLimiterError)) throw error;
      }
    });
    return {
      ...countReshaped(changes.flat()),
      // By the last image of each shard: one in the middle may be of a count that is gone.
      shards: Math.max(0, ...newest.map(({ after }) => after?.divisor ?? 0)),
    };
  }
}

/** Reads the limits that apply to a bucket, in whichever namespace it is. */
function readStoredPolicies(reader: ItemReader): PolicyReader {
  return async ({ namespaceId, entityId, resource }) => {
    const keys = listConfigKeys(entityId, resource);
    const configs = await readConfigs(reader, namespaceId, keys);
    return resolvePolicy(keys.map((key, index) => levelAt(key, configs[index]!)));
  };
}
