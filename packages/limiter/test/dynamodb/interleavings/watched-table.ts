import type { AttributeMap } from "../../../src/repository/dynamodb/transport/attribute-values.ts";
import type { DynamoTransport } from "../../../src/repository/dynamodb/transport/transport.ts";
import { BucketHistory } from "./bucket-history.ts";
import type { Operation } from "./client.ts";
import { unexplained, unexplainedShards } from "./explanation.ts";
import { fraction, isLess } from "../../oracle/fraction.ts";
import { WRITES, type EngineReply, type HeldCall } from "./gate.ts";
import type { SimulatedTime } from "../../support/simulated-time.ts";
import { carriedOut, type StatementReply } from "../../support/statement-faults.ts";
import {
  keyOfStatement,
  listStatements,
  writtenKeys,
  type RequestKey,
} from "../../support/written-items.ts";
import type { Coverage } from "./coverage.ts";
import { requestText } from "./story.ts";
import {
  bucketValue,
  getConsumed,
  listGrants,
  isPartition,
  isQuota,
  limitNames,
  readShard,
  shardValue,
  type StoredBucket,
  type StoredShard,
} from "../../oracle/stored-bucket.ts";
import { isConversion } from "./merge-check.ts";
import {
  isGathered,
  isMerge,
  isPureGrant,
  isSplit,
  wrongWith,
  type AppliedWrite,
} from "./write-check.ts";

interface TouchedItem {
  readonly key: AttributeMap;
  readonly entityId: string;
  readonly shard: number;
}

/**
 * The real table, seen by an observer who looks at every item that a write has touched. Calls pass
 * one at a time.
 */
export class WatchedTable {
  readonly #transport: DynamoTransport;
  readonly #tableName: string;
  readonly #time: SimulatedTime;
  readonly #coverage: Coverage;
  readonly #tickMs: number;
  readonly #charged: (entityId: string) => readonly string[];
  readonly #histories = new Map<string, BucketHistory>();
  readonly #touched = new Map<string, TouchedItem>();
  /** By how much clocks of processes ever differed. */
  differenceMs = 0;

  constructor(options: {
    readonly transport: DynamoTransport;
    readonly tableName: string;
    readonly time: SimulatedTime;
    readonly coverage: Coverage;
    readonly tickMs: number;
    /** The entities that a call of one is charged to. */
    readonly charged: (entityId: string) => readonly string[];
  }) {
    this.#transport = options.transport;
    this.#tableName = options.tableName;
    this.#time = options.time;
    this.#coverage = options.coverage;
    this.#tickMs = options.tickMs;
    this.#charged = options.charged;
  }

  history(entityId: string): BucketHistory {
    const held = this.#histories.get(entityId) ?? new BucketHistory();
    this.#histories.set(entityId, held);
    return held;
  }

  /** Those that have a bucket. */
  get entityIds(): readonly string[] {
    return [...this.#histories].filter(([, { now }]) => now.size > 0).map(([id]) => id);
  }

  /** Those whose buckets have several shards. */
  get splitEntityIds(): readonly string[] {
    return this.entityIds.filter((entityId) => this.history(entityId).now.size > 1);
  }

  /** Whether a write names another shard than the first. */
  isOfFurtherShard({ operation, input }: HeldCall): boolean {
    return touchedBy(operation, input).some(({ shard }) => shard > 0);
  }

  /** Whether a write names a shard that was merged into another one. A merge does not count. */
  isGone(call: HeldCall): boolean {
    if (isMergeRequest(call)) return false;
    return touchedBy(call.operation, call.input).some(({ entityId, shard }) => {
      const { now } = this.history(entityId);
      return now.size > 0 && !now.has(shard);
    });
  }

  /** Lets the engine carry a call out, and throws when what it did breaks a promise. */
  async apply(call: HeldCall): Promise<EngineReply> {
    if (call.operation === "BatchExecuteStatement") return this.#applyStatements(call);
    let output: object;
    try {
      output = await this.#call(call.operation, call.input);
    } catch (error) {
      if (isFailedCondition(error)) this.#coverage.count("failed condition");
      return { ok: false, error };
    }
    if (WRITES.has(call.operation)) await this.#look(call, touchedBy(call.operation, call.input));
    return { ok: true, output };
  }

  /** Each statement is a write of its own, and fails for itself. */
  async #applyStatements(call: HeldCall): Promise<EngineReply> {
    const asked = listStatements(call.input);
    const { statements, replies } = carriedOut(asked, (key) => call.faultOf?.(key));
    const output =
      statements.length === 0
        ? { Responses: [] }
        : ((await this.#call(call.operation, { ...call.input, Statements: statements })) as {
            readonly Responses: readonly StatementReply[];
          });
    for (const [index, statement] of statements.entries()) {
      const error = output.Responses[index]!.Error;
      if (error === undefined)
        await this.#look(
          { ...call, ...call.decisions[asked.indexOf(statement)]! },
          listBuckets([keyOfStatement(statement)]),
        );
      else if (error.Code === "ConditionalCheckFailed") this.#coverage.count("failed condition");
      // DynamoDB does not add to an attribute that is missing; the write goes alone then.
      else if (error.Code !== "ValidationError")
        throw new Error(`The engine failed a statement: ${JSON.stringify(error)}`);
    }
    return { ok: true, output: { ...output, Responses: replies(output.Responses) } };
  }

  /** Removes everything, so that the next seed finds the table as this one did. */
  async clear(): Promise<void> {
    for (const { key } of this.#touched.values())
      await this.#call("DeleteItem", { TableName: this.#tableName, Key: key });
  }

  async #look(call: HeldCall, touched: readonly TouchedItem[]): Promise<void> {
    const byEntity = new Map<string, Map<number, StoredShard | undefined>>();
    for (const item of touched) {
      this.#touched.set(JSON.stringify(item.key), item);
      const { Item } = (await this.#call("GetItem", {
        TableName: this.#tableName,
        Key: item.key,
        ConsistentRead: true,
      })) as {
        readonly Item?: AttributeMap;
      };
      const shards = byEntity.get(item.entityId) ?? new Map<number, StoredShard | undefined>();
      shards.set(item.shard, Item === undefined ? undefined : readShard(Item, item.shard));
      byEntity.set(item.entityId, shards);
    }
    for (const [entityId, shards] of byEntity) this.#note(entityId, shards, call);
  }

  #note(
    entityId: string,
    shards: ReadonlyMap<number, StoredShard | undefined>,
    call: HeldCall,
  ): void {
    const history = this.history(entityId);
    const whole = history.now;
    const before: StoredBucket = new Map([...whole].filter(([shard]) => shards.has(shard)));
    const after: StoredBucket = new Map(
      [...shards].flatMap(([number, shard]) => (shard === undefined ? [] : [[number, shard]])),
    );
    const write: AppliedWrite = { before, after, call, tickMs: this.#tickMs };
    const isGrant = isPureGrant(write);
    const inFlightMs = this.#time.nowMs - call.decidedAtTrueMs;
    const { decidedAtMs, surroundings } = call;
    const by = { process: surroundings.process, decidedAtMs, inFlightMs };
    history.states.push({
      fromMs: this.#time.nowMs,
      bucket: new Map([...[...whole].filter(([shard]) => !before.has(shard)), ...after]),
      touched: new Set(after.keys()),
      ...by,
    });
    this.#count(write);
    const wrong =
      wrongShards(write, history, this.differenceMs) ??
      history.wrongVersions() ??
      wrongWith(write) ??
      history.windows.note(write, history.now) ??
      this.#unexplained(entityId, write) ??
      (isGrant ? history.excess(this.differenceMs + this.#tickMs - 1) : undefined) ??
      (isGrant && isGathered(write) ? this.#wronglyGathered(entityId, write) : undefined);
    if (wrong !== undefined)
      throw new Error(
        `A write to ${entityId}, decided at ${call.decidedAtMs}: ${wrong}\n${requestText(call)}`,
      );
  }

  #count(write: AppliedWrite): void {
    const { before, after } = write;
    if (isSplit(write)) this.#coverage.count("split");
    if (isMerge(write)) this.#countMerge(write);
    this.#countWindows(write);
    if (
      isSplit(write) &&
      limitNames(before).some((name) => bucketValue(before, name, write.call.decidedAtMs).top < 0n)
    )
      this.#coverage.count("split of a debt");
    if (isGathered(write) && listGrants(after) > listGrants(before))
      this.#coverage.count("call that gathered from several shards");
    if (listGrants(after) > listGrants(before) + 1n)
      this.#coverage.count("write that granted several calls");
  }

  #countWindows(write: AppliedWrite): void {
    const { before, after } = write;
    for (const name of limitNames(after).filter((each) => isQuota(after, each))) {
      const [old, now] = [before, after].map(
        (bucket) => new Set([...bucket.values()].map(({ limits }) => limits.get(name)?.endMs)),
      );
      const isOpened = [...now!].some((endMs) => !old!.has(endMs));
      if (isOpened) this.#coverage.count("window opened");
      if (isOpened && isGathered(write)) this.#coverage.count("window opened by a gather");
      if (isSplit(write)) this.#coverage.count("split of a quota");
      if (isMerge(write)) this.#coverage.count("merge of a quota");
      if (isMerge(write) && old!.size > 1) this.#coverage.count("merge of different windows");
    }
  }

  #countMerge({ before, after, call }: AppliedWrite): void {
    this.#coverage.count("merge");
    const values = limitNames(before).flatMap((name) =>
      [...before.values()]
        .filter(({ limits }) => limits.has(name))
        .map((shard) => shardValue(shard, name, call.decidedAtMs)),
    );
    if (values.some((value) => value.top < 0n)) this.#coverage.count("merge of a debt");
    if (isConversion({ before, after })) this.#coverage.count("merge of different limits");
  }

  /** What one shard owes is not to be had from the others. */
  #wronglyGathered(entityId: string, { before, after, call }: AppliedWrite): string | undefined {
    const history = this.history(entityId);
    const starts = call.surroundings.operations.flatMap(({ entityId: whose, statesBefore }) => {
      const index = this.#charged(whose).indexOf(entityId);
      return index < 0 ? [] : [statesBefore[index]! - 1];
    });
    const window = {
      firstState: Math.min(history.states.length - 2, ...starts),
      atMs: call.decidedAtMs,
    };
    const short = limitNames(after).find(
      (name) =>
        !history.couldHold(name, getConsumed(after, name) - getConsumed(before, name), window),
    );
    return short === undefined ? undefined : `${short} was gathered while the bucket never held it`;
  }

  /** The lone client of the end has no calls that concern other clients. */
  #unexplained(entityId: string, write: AppliedWrite): string | undefined {
    const { operations, owed, process } = write.call.surroundings;
    if (process === 0 || isSplit(write) || isMerge(write)) return undefined;
    const concerned = (those: readonly Operation[]): readonly Operation[] =>
      those.filter((operation) => this.#charged(operation.entityId).includes(entityId));
    const [own, back] = [concerned(operations), concerned(owed)];
    // Parts that were meant for shards may reach a bucket that is whole again, and a lease gives
    // back to each window separately.
    const isInParts =
      this.history(entityId).wasSplit ||
      limitNames(write.after).some((name) => isQuota(write.after, name));
    const explain = isInParts ? unexplainedShards : unexplained;
    const wrong = explain(write, own);
    return wrong === undefined || back.length === 0
      ? wrong
      : unexplainedShards(write, [...own, ...back]);
  }

  #call(operation: string, input: object): Promise<object> {
    return this.#transport.call(operation, input, { signal: new AbortController().signal });
  }
}

/** Shards come from splits and go by merges only, and every class belongs to one. */
function wrongShards(
  { before, after }: AppliedWrite,
  { states, now }: BucketHistory,
  differenceMs: number,
): string | undefined {
  // A transaction that arrives a second time is answered like the first, and does nothing.
  if (before.size === 0 && after.size > 0 && states.at(-2)!.bucket.size > 0)
    return "a shard came from nowhere";
  const lateMs = differenceMs + Math.max(...states.map(({ inFlightMs }) => inFlightMs));
  if (!isPartition(now)) return `the shards ${[...now.keys()].join(", ")} do not make up a bucket`;
  return [...now.values()].some((shard) => isForgotten(shard, { shards: now.size, lateMs }))
    ? "what would be forgotten is not full by then"
    : undefined;
}

/**
 * An item that expires comes back full, as a whole bucket: it must be both. Not to the second: a
 * clock that is behind, or a write that is late, says too early when that is, but the table takes
 * minutes at least to remove what has expired.
 */
function isForgotten(
  shard: StoredShard,
  { shards, lateMs }: { readonly shards: number; readonly lateMs: number },
): boolean {
  if (shard.expiresAtMs === undefined) return false;
  const atMs = shard.expiresAtMs + lateMs;
  return (
    shards > 1 ||
    [...shard.limits].some(([name, { terms }]) =>
      isLess(shardValue(shard, name, atMs), fraction(terms.capacityMilli)),
    )
  );
}

/** Whether a call asks for a merge. */
export function isMergeRequest({ input }: HeldCall): boolean {
  return listParts(input)?.some(({ Delete }) => Delete !== undefined) ?? false;
}

function listParts(input: object): readonly Record<string, object>[] | undefined {
  return (input as { readonly TransactItems?: readonly Record<string, object>[] }).TransactItems;
}

/** The buckets that a write names. */
function touchedBy(operation: string, input: object): readonly TouchedItem[] {
  return listBuckets(writtenKeys(operation, input));
}

function listBuckets(keys: readonly RequestKey[]): readonly TouchedItem[] {
  return keys.flatMap(({ PK, SK }) => {
    const match = /\/BUCKET#([^#]+)#[^#]+#(\d+)$/.exec(PK.S);
    return match === null
      ? []
      : [{ key: { PK, SK }, entityId: match[1]!, shard: Number(match[2]) }];
  });
}

function isFailedCondition(error: unknown): boolean {
  return (
    error instanceof Error &&
    (error.name === "ConditionalCheckFailedException" ||
      error.name === "TransactionCanceledException")
  );
}
