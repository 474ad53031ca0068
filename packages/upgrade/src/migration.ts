import type { UsageWindow } from "zae-limiter";
import type { AttributeMap, ItemKey } from "zae-limiter/dynamodb-internals";
import type { Change } from "./change.ts";

/** A step from one version of the items to the next. Migrations run in order, each once. */
export interface Migration {
  /** The version that the items have afterwards. */
  readonly to: string;
  /** What it does, in a sentence. */
  readonly description: string;
  /**
   * Each pass goes through the whole table, and is over before the next begins. It recognises and
   * skips what it has already done, so a pass may be repeated.
   */
  readonly passes: readonly Pass[];
}

/** One way through the table. */
export interface Pass {
  /** What is upgraded, such as "usage of whole days". */
  readonly name: string;
  /** The fields of a scan that reads fewer items. */
  readonly filter?: object;
  /** The change for an item; undefined when another item stands for it. */
  readonly computeChange: (
    item: AttributeMap,
    context: MigrationContext,
  ) => Promise<Change | undefined>;
}

/** What a migration knows besides the item. */
export interface MigrationContext {
  /** Reads further items, consistently, in the order of their keys. */
  readonly read: (keys: readonly ItemKey[]) => Promise<readonly (AttributeMap | undefined)[]>;
  readonly nowMs: number;
  /** The windows that the Python zae-limiter's aggregator was configured to count. */
  readonly countedWindows: readonly UsageWindow[];
  /** The most items of one change. */
  readonly maxItems: number;
}
