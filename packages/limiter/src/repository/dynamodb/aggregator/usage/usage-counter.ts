/*
 * Counts what buckets consumed, each change once (ADR 015). One sum, one conditional write:
 *
 *   write ──applied─────────────────────────────► done
 *     │  ▲
 *     │  └── again: unavailable, or no answer ───► failed, after all attempts
 *     ▼
 *   condition failed: something of it is counted
 *     └── cut to what is newer ──nothing left───► done; it was counted, perhaps by this very write
 *           └── something left ─────────────────► write it, a bounded number of times
 *
 * Nothing is written for a namespace that is gone: after a purge, its records would bring its usage
 * back. All namespaces of a batch are read first, consistently and every time, because what was
 * alive a minute ago may be purged. If they cannot be read, all records are delivered again.
 *
 * A write without an answer may have been applied. It is simply repeated: if it was, the repetition
 * finds its own position stored, and nothing is left.
 */
import type { UsageWindow } from "../../../../core/usage.ts";
import type { Retention } from "../../cache/retention.ts";
import { namespaceIdKey, usageKey } from "../../items/keys.ts";
import { parseNamespace } from "../../items/namespace-items.ts";
import { positionAttribute } from "../../items/usage-item.ts";
import type { Connection } from "../../table/connection.ts";
import { ItemReader } from "../../table/item-reader.ts";
import { contention } from "../../table/table-errors.ts";
import { getString, type AttributeMap } from "../../transport/attribute-values.ts";
import { eachWithin } from "../../table/each-within.ts";
import {
  toFailures,
  UNLIMITED,
  type PartReport,
  type RecordFailure,
  type TimeCheck,
} from "../part.ts";
import type { StreamRecord } from "../stream-record.ts";
import { snapshotUpdate, writableSums } from "./snapshot-update.ts";
import { newerPart, usageSums, type UsageSum } from "./usage-sums.ts";

/** What was counted of a batch. */
export interface UsageReport extends PartReport {
  /** Records that changed what a bucket has consumed. */
  readonly counted: number;
  /** Records of buckets that cannot be read, and never will be. */
  readonly skipped: number;
  /** Successful writes of snapshots. */
  readonly snapshotWrites: number;
}

/** How many snapshots are written at a time. */
const CONCURRENT_WRITES = 16;

/**
 * How often a sum is cut before it counts as failed. Each cut means that another aggregator was
 * faster, so two of them need one or two.
 */
const MAX_CUTS = 8;

/** Sums consumption into snapshots, each change once. */
export class UsageCounter {
  readonly #connection: Connection;
  readonly #windows: readonly UsageWindow[];
  readonly #retention: Retention;
  readonly #reader: ItemReader;

  constructor(options: {
    readonly connection: Connection;
    readonly windows: readonly UsageWindow[];
    /** By namespace id. */
    readonly retention: Retention;
  }) {
    this.#connection = options.connection;
    this.#windows = options.windows;
    this.#retention = options.retention;
    this.#reader = new ItemReader(options.connection);
  }

  /**
   * Counts the records of a batch, which come in the order of the stream. A record is a failure if
   * any of its windows could not be written; other sums are written all the same.
   */
  async count(
    records: readonly StreamRecord[],
    checkTime: TimeCheck = UNLIMITED,
  ): Promise<UsageReport> {
    const { sums, counted, skipped } = usageSums(records, this.#windows);
    const failures: RecordFailure[] = [];
    let snapshotWrites = 0;
    let lasting: readonly UsageSum[] = [];
    try {
      checkTime();
      lasting = await this.#withoutPurged(sums);
    } catch (error) {
      failures.push(...toFailures(sums.flatMap(listRecords), error));
    }
    await eachWithin(CONCURRENT_WRITES, lasting.flatMap(writableSums), async (sum) => {
      try {
        checkTime();
        if (await this.#write(sum)) snapshotWrites += 1;
      } catch (error) {
        failures.push(...toFailures(listRecords(sum), error));
      }
    });
    return { failures, counted, skipped, snapshotWrites };
  }

  /** The sums of namespaces that exist. One that was deleted does: it may be recovered. */
  async #withoutPurged(sums: readonly UsageSum[]): Promise<readonly UsageSum[]> {
    const ids = [...new Set(sums.map(({ namespaceId }) => namespaceId))];
    const items = await Promise.all(ids.map((id) => this.#reader.get(namespaceIdKey(id))));
    const left = new Set(ids.filter((_, index) => isLeft(items[index])));
    return sums.filter(({ namespaceId }) => left.has(namespaceId));
  }

  /** Adds a sum to its snapshot; false when all of it was counted before. */
  async #write(sum: UsageSum): Promise<boolean> {
    const retention = await this.#retention.get(sum.namespaceId);
    let rest: UsageSum | undefined = sum;
    for (let cuts = 0; cuts <= MAX_CUTS; cuts += 1) {
      // The guard makes a repetition harmless, also of a write that may have been applied.
      const outcome = await this.#connection.repeatConditional<object>(
        "UpdateItem",
        snapshotUpdate(rest, retention.usage),
      );
      if (outcome.applied) return true;
      const item: AttributeMap | undefined =
        outcome.item ?? (await this.#reader.get(usageKey(sum.namespaceId, sum.name)));
      rest = newerPart(rest, (shard) => getString(item?.[positionAttribute(shard)]));
      if (rest === undefined) return false;
    }
    throw contention("a usage snapshot", this.#connection.tableName);
  }
}

/** Whether anything is left of a namespace: its record is, and it is not being purged. */
function isLeft(item: AttributeMap | undefined): boolean {
  return item !== undefined && parseNamespace(item).status !== "purging";
}

function listRecords({ parts }: UsageSum): readonly StreamRecord[] {
  return parts.flatMap(({ contributions }) => contributions.map(({ record }) => record));
}
