import type { AttributeMap } from "../transport/attribute-values.ts";
import { getString } from "../transport/attribute-values.ts";
import { TableUnavailable } from "./table-errors.ts";
import type { Connection } from "./connection.ts";
import { queryInput, type KeyQuery } from "./key-query.ts";
import { pause } from "./retry.ts";

/** DynamoDB's own limits on one batch. */
const MAX_KEYS = 100;
const MAX_WRITES = 25;

/** The most rounds in a row in which DynamoDB processed nothing of what a batch left over. */
const MAX_IDLE_ROUNDS = 8;

interface Signalled {
  readonly signal?: AbortSignal | undefined;
}

/** A primary key. */
export interface ItemKey {
  /** The partition key. */
  readonly PK: string;
  /** The sort key. */
  readonly SK: string;
}

/** One write of a batch. */
export type BatchWrite = { readonly put: AttributeMap } | { readonly delete: ItemKey };

/**
 * Reads items by key, in the order of the keys; `undefined` where there is none. What a busy table
 * left unprocessed is read again: a key without a reply is not a key without an item.
 */
export async function batchGet(
  connection: Connection,
  keys: readonly ItemKey[],
  { signal, consistent = true }: Signalled & { readonly consistent?: boolean } = {},
): Promise<readonly (AttributeMap | undefined)[]> {
  const found = new Map<string, AttributeMap>();
  const distinct = [...new Map(keys.map((key) => [toKeyText(key), key])).values()];
  for (const chunk of toChunks(distinct, MAX_KEYS)) {
    await untilProcessed(connection, chunk.map(marshalKey), { signal }, async (left) => {
      const output = await connection.repeat<BatchGetOutput>(
        "BatchGetItem",
        batchGetInput(connection.tableName, left, consistent),
        {
          signal,
        },
      );
      for (const item of output.Responses?.[connection.tableName] ?? [])
        found.set(toKeyText(getKey(item)), item);
      return output.UnprocessedKeys?.[connection.tableName]?.Keys ?? [];
    });
  }
  return keys.map((key) => found.get(toKeyText(key)));
}

/**
 * Writes all items, in no order and not atomically. The writes are safe to repeat, so they are
 * repeated until DynamoDB has processed all of them.
 */
export async function batchWrite(
  connection: Connection,
  writes: readonly BatchWrite[],
  { signal }: Signalled = {},
): Promise<void> {
  for (const chunk of toChunks(writes, MAX_WRITES)) {
    await untilProcessed(connection, chunk.map(writeRequest), { signal }, async (left) => {
      const input = { RequestItems: { [connection.tableName]: left } };
      const output = await connection.repeat<BatchWriteOutput>("BatchWriteItem", input, { signal });
      return output.UnprocessedItems?.[connection.tableName] ?? [];
    });
  }
}

/** Every item of a query, page by page. */
export async function* queryAll(
  connection: Connection,
  query: KeyQuery,
  { signal }: Signalled = {},
): AsyncGenerator<AttributeMap> {
  let after = query.after;
  do {
    const page = await queryPage(connection, { ...query, after }, { signal });
    yield* page.items;
    after = page.next;
  } while (after !== undefined);
}

/**
 * One page of a query, and where the next one begins. A page may be empty and still not be the
 * last.
 */
export async function queryPage(
  connection: Connection,
  query: KeyQuery,
  { signal }: Signalled = {},
): Promise<{ readonly items: readonly AttributeMap[]; readonly next: AttributeMap | undefined }> {
  const output = await connection.repeat<QueryOutput>("Query", queryInput(query), { signal });
  return { items: ownItems(query, output.Items ?? []), next: output.LastEvaluatedKey };
}

/** The primary key of an item. */
export function getKey(item: AttributeMap): ItemKey {
  return { PK: getString(item["PK"]) ?? "", SK: getString(item["SK"]) ?? "" };
}

/**
 * The items of the namespace that was asked about. Policies of AWS bind a tenant to the keys of its
 * own items, but not to what these say about indexes: it could file one under another tenant's
 * partition (ADR 019).
 */
function ownItems(
  { index, partition }: KeyQuery,
  items: readonly AttributeMap[],
): readonly AttributeMap[] {
  if (index === undefined) return items;
  const own = `${partition.split("/", 1)[0]}/`;
  return items.filter((item) => getKey(item).PK.startsWith(own));
}

/** A primary key as requests carry it. */
export function marshalKey({ PK, SK }: ItemKey): AttributeMap {
  return { PK: { S: PK }, SK: { S: SK } };
}

/** The input of one batch read. */
function batchGetInput(
  tableName: string,
  keys: readonly AttributeMap[],
  consistent: boolean,
): object {
  return { RequestItems: { [tableName]: { Keys: keys, ConsistentRead: consistent } } };
}

/** Cuts a list into chunks of at most `size`. */
export function toChunks<T>(list: readonly T[], size: number): readonly (readonly T[])[] {
  const chunks: (readonly T[])[] = [];
  for (let start = 0; start < list.length; start += size)
    chunks.push(list.slice(start, start + size));
  return chunks;
}

interface BatchGetOutput {
  readonly Responses?: Readonly<Record<string, readonly AttributeMap[]>>;
  readonly UnprocessedKeys?: Readonly<Record<string, { readonly Keys?: readonly AttributeMap[] }>>;
}

interface BatchWriteOutput {
  readonly UnprocessedItems?: Readonly<Record<string, readonly object[]>>;
}

interface QueryOutput {
  readonly Items?: readonly AttributeMap[];
  readonly LastEvaluatedKey?: AttributeMap;
}

async function untilProcessed<T>(
  connection: Connection,
  work: readonly T[],
  { signal }: Signalled,
  round: (left: readonly T[]) => Promise<readonly object[]>,
): Promise<void> {
  let left = work;
  for (let idleRounds = 0; left.length > 0;) {
    const unprocessed = (await round(left)) as readonly T[];
    if (unprocessed.length === 0) return;
    idleRounds = unprocessed.length < left.length ? 0 : idleRounds + 1;
    left = unprocessed;
    if (idleRounds >= MAX_IDLE_ROUNDS) throw buildExhaustedError(connection.tableName, left.length);
    connection.countRetry();
    await pause(idleRounds + 1, connection.retryOptions({ signal }));
  }
}

function buildExhaustedError(tableName: string, count: number): TableUnavailable {
  const message =
    `Table ${tableName} left ${count} items of a batch unprocessed ${MAX_IDLE_ROUNDS} times ` +
    "in a row. Try again later.";
  return new TableUnavailable(message, { stackName: tableName, throttled: true });
}

function writeRequest(write: BatchWrite): object {
  return "put" in write
    ? { PutRequest: { Item: write.put } }
    : { DeleteRequest: { Key: marshalKey(write.delete) } };
}

/** Neither part of a key contains a line break. */
function toKeyText({ PK, SK }: ItemKey): string {
  return `${PK}\n${SK}`;
}
