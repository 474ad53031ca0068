import {
  absent,
  Aliases,
  batchGet,
  contention,
  eachWithin,
  getKey,
  type AttributeMap,
  type Connection,
} from "zae-limiter/dynamodb-internals";
import { isChange, MAX_ITEMS, buildWrites, type Change } from "./change.ts";
import type { MigrationContext, Pass } from "./migration.ts";
import type { UpgradeTally } from "./upgrade-tally.ts";

/** Items of one page of a scan; the upgrade can be continued after each. */
const PAGE_SIZE = 100;

/** Changes that are under way at a time. */
const CONCURRENT_CHANGES = 8;

/** The most decisions on one item that others change at the same time. */
const MAX_DECISIONS = 5;

/** The source of items, and the destination of changes. */
export interface PassOptions {
  readonly source: Connection;
  /** What to write: the changes in place, everything into another table, or nothing. */
  readonly write: "in place" | "nothing" | { readonly into: Connection };
  readonly context: Omit<MigrationContext, "read" | "maxItems">;
  readonly tally: UpgradeTally;
  readonly signal: AbortSignal | undefined;
  /** Called after each page with the key that it ended with; undefined after the last. */
  readonly onPage: (cursor: AttributeMap | undefined) => Promise<void>;
}

/** Goes through the table once, from `cursor` on. */
export async function runPass(
  pass: Pass,
  cursor: AttributeMap | undefined,
  options: PassOptions,
): Promise<void> {
  const { source, signal } = options;
  let start = cursor;
  do {
    signal?.throwIfAborted();
    const page = await source.repeat<ScanOutput>(
      "Scan",
      {
        ConsistentRead: true,
        Limit: PAGE_SIZE,
        ...pass.filter,
        ...(start !== undefined && { ExclusiveStartKey: start }),
      },
      { signal },
    );
    const worker = new PageWorker(pass, options);
    await worker.run(page.Items ?? []);
    start = page.LastEvaluatedKey;
    await options.onPage(start);
  } while (start !== undefined);
}

interface ScanOutput {
  readonly Items?: readonly AttributeMap[];
  readonly LastEvaluatedKey?: AttributeMap;
}

/**
 * Copies an item, unless there is one: this run may have lost its lease without knowing, and
 * another one has finished since. What clients wrote then is newer.
 */
async function copyInto(target: Connection, Item: AttributeMap): Promise<void> {
  const alias = new Aliases();
  const condition = absent(alias);
  await target.repeatConditional("PutItem", {
    Item,
    ConditionExpression: condition,
    ...alias.fields(),
  });
}

class PageWorker {
  readonly #pass: Pass;
  readonly #options: PassOptions;
  readonly #context: MigrationContext;

  constructor(pass: Pass, options: PassOptions) {
    const { source, signal, write, context } = options;
    this.#pass = pass;
    this.#options = options;
    this.#context = {
      ...context,
      read: (keys) => batchGet(source, keys, { signal }),
      // Only a change in place must fit a transaction.
      maxItems: write === "in place" ? MAX_ITEMS : Infinity,
    };
  }

  async run(items: readonly AttributeMap[]): Promise<void> {
    const { write, tally, signal } = this.#options;
    const copied: AttributeMap[] = [];
    await eachWithin(CONCURRENT_CHANGES, items, async (item) => {
      const change =
        write === "in place" ? await this.#apply(item) : await this.#computeChange(item);
      if (change === undefined) return;
      tally.count(change);
      copied.push(...change.result);
    });
    if (typeof write !== "string")
      await eachWithin(CONCURRENT_CHANGES, copied, async (item) => {
        signal?.throwIfAborted();
        await copyInto(write.into, item);
      });
  }

  async #computeChange(item: AttributeMap): Promise<Change | undefined> {
    return this.#pass.computeChange(item, this.#context);
  }

  /** Decides and writes; decides again when the item was changed meanwhile, or has more to do. */
  async #apply(read: AttributeMap): Promise<Change | undefined> {
    const { source } = this.#options;
    let item = read;
    for (let decision = 1; decision <= MAX_DECISIONS;) {
      const change = await this.#computeChange(item);
      if (change === undefined || !isChange(change)) return change;
      const isDone = await this.#write(change);
      const isStep = isDone && change.kind === "shards";
      if (isDone && !isStep) return change;
      if (!isStep) decision += 1;
      const [again] = await batchGet(source, [getKey(item)]);
      if (again === undefined) return undefined;
      item = again;
    }
    throw contention(`an upgrade of ${getKey(read).PK}`, source.tableName);
  }

  async #write(change: Change): Promise<boolean> {
    const { source, signal } = this.#options;
    signal?.throwIfAborted();
    const writes = buildWrites(change);
    const [first, ...others] = writes;
    // A write of a transaction costs twice as much.
    if (others.length === 0 && first !== undefined && "Put" in first)
      return (await source.repeatConditional("PutItem", first.Put)).applied;
    return (await source.transact(writes, { signal })).applied;
  }
}
