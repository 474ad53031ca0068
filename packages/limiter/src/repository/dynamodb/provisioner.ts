import { randomUUID } from "node:crypto";
import { RateLimiterUnavailable, ValidationError } from "../../core/errors.ts";
import { configResource, entityId, resourceName } from "../../core/identifiers.ts";
import { stateOfText, stateText } from "../provisioner-state.ts";
import type { ProvisionerState } from "../repository.ts";
import type { ProvisionerStore } from "../store.ts";
import { hasRevision } from "./items/guarded-transaction.ts";
import { parseProvisionerPart } from "./items/key-parsers.ts";
import { namespaceIndexKeys, provisionerKey, provisionerPartKey } from "./items/keys.ts";
import { batchGet, chunksOf, keyOf, marshalKey, queryAll, type ItemKey } from "./table/batch.ts";
import type { Connection } from "./table/connection.ts";
import type { ItemReader } from "./table/item-reader.ts";
import type { KeyQuery } from "./table/key-query.ts";
import { pause } from "./table/retry.ts";
import { TableUnavailable } from "./table/table-errors.ts";
import { Aliases } from "./table/aliases.ts";
import {
  marshalItem,
  numberOf,
  stringOf,
  unmarshalItem,
  type AttributeMap,
} from "./transport/attribute-values.ts";

/*
 * The state of declared limits is one text. A small one is in the head item, a larger one in parts,
 * which the head names by the revision and the writer that they belong to.
 *
 *   put   1. write the parts, under keys that no other writer uses
 *         2. write the head, if its revision is still the expected one
 *         3. remove the parts of other writers up to this revision: nobody needs them any more
 *   get   read the head, then the parts that it names; if one is missing, a put came in between
 *
 * Parts never change, so nobody reads a mixture of two states. A writer that dies before step 2
 * leaves the state before it as it was, and one that dies before step 3 that of its own; the next
 * put removes what either left. Parts of a later revision belong to a writer that is at step 1 or
 * has overtaken this one, and are never touched.
 */

/** Where the text of a state is: in the head, or in parts. */
type StoredText = { readonly text: string } | StoredParts;

interface StoredParts {
  /** A random id of the one that wrote them. */
  readonly writer: string;
  /** How many there are. */
  readonly parts: number;
}

/** How many bytes of text an item holds at most; tests use fewer. */
interface MaxBytes {
  /**
   * The head. Every guarded write checks its revision, and pays for the size of the whole item, so
   * it is kept small.
   */
  readonly head: number;
  /** A part: DynamoDB allows 400 KB, with keys and names. */
  readonly part: number;
}

const MAX_BYTES: MaxBytes = { head: 4096, part: 256 * 1024 };

/** Parts that are read at once: 1 MiB at most arrives well within the time-out of a request. */
const PARTS_AT_ONCE = 4;

/**
 * The most times that one part is sent again to a table that throttles. All parts are in one
 * partition, which writes about four of them in a second, so a large state needs patience: the
 * pauses for one part add up to about four seconds.
 */
const MAX_THROTTLES = 12;

/** The most attempts at reading a state. Each one after the first needs another put in between. */
const MAX_READS = 5;

/** What declared limits manage in one namespace. */
export class DynamoProvisioner implements ProvisionerStore {
  readonly #connection: Connection;
  readonly #namespaceId: string;
  readonly #reader: ItemReader;
  readonly #maxBytes: MaxBytes;

  constructor(
    connection: Connection,
    namespaceId: string,
    reader: ItemReader,
    maxBytes: MaxBytes = MAX_BYTES,
  ) {
    this.#connection = connection;
    this.#namespaceId = namespaceId;
    this.#reader = reader;
    this.#maxBytes = maxBytes;
  }

  async get(): Promise<ProvisionerState | undefined> {
    for (let read = 1; read <= MAX_READS; read += 1) {
      const head = await this.#reader.get(provisionerKey(this.#namespaceId));
      if (head === undefined) return undefined;
      const state = await this.#stateOf(head);
      if (state !== undefined) return state;
    }
    const { tableName } = this.#connection;
    throw new RateLimiterUnavailable(
      `The state of declared limits changed while it was read, ${MAX_READS} times in a row, ` +
        "or a part of it is missing. Try again later.",
      { stackName: tableName },
    );
  }

  async put(state: ProvisionerState, expected: number): Promise<boolean> {
    const text = stateText(state);
    if (Buffer.byteLength(text) <= this.#maxBytes.head)
      return this.#putHead(state, expected, { text });
    const pieces = piecesOf(text, this.#maxBytes.part);
    // Truly random: with the injected `random`, two processes with one seed would share their keys.
    const stored = { writer: randomUUID(), parts: pieces.length };
    const keys = partKeys(this.#namespaceId, { ...stored, revision: state.revision });
    for (const [index, key] of keys.entries())
      await this.#patiently("PutItem", {
        Item: marshalItem({
          ...key,
          ...namespaceIndexKeys(this.#namespaceId, key),
          text: pieces[index],
        }),
      });
    if (await this.#putHead(state, expected, stored)) return true;
    await unlessUnavailable(() => this.#remove(keys));
    return false;
  }

  async #putHead(state: ProvisionerState, expected: number, stored: StoredText): Promise<boolean> {
    // A transaction of one write, for its token: a retried conditional write would find its own
    // first attempt and take it for another process's.
    const head = putProvisioner(this.#namespaceId, { state, expected, stored });
    const { applied } = await this.#connection.transact([{ Put: head }]);
    if (applied) await unlessUnavailable(() => this.#removeOthers(state.revision, stored));
    return applied;
  }

  async #stateOf(head: AttributeMap): Promise<ProvisionerState | undefined> {
    const text = stringOf(head["state"]);
    if (text !== undefined) return stateOfText(text);
    const writer = stringOf(head["state_writer"]);
    if (writer === undefined) return earlierState(head);
    const revision = numberOf(head["revision"]) ?? 0;
    const parts = numberOf(head["state_parts"]) ?? 0;
    const all = partKeys(this.#namespaceId, { revision, writer, parts });
    const pieces: string[] = [];
    for (const keys of chunksOf(all, PARTS_AT_ONCE)) {
      for (const item of await batchGet(this.#connection, keys)) {
        const piece = stringOf(item?.["text"]);
        if (piece === undefined) return undefined;
        pieces.push(piece);
      }
    }
    return stateOfText(pieces.join(""));
  }

  /** Removes what this revision replaced, and what writers left that died or were too late. */
  async #removeOthers(revision: number, stored: StoredText): Promise<void> {
    const own = "writer" in stored ? stored.writer : undefined;
    const keys: ItemKey[] = [];
    for await (const item of queryAll(this.#connection, ownItemsQuery(this.#namespaceId))) {
      const part = parseProvisionerPart(keyOf(item).SK);
      if (part !== undefined && part.revision <= revision && part.writer !== own)
        keys.push(keyOf(item));
    }
    await this.#remove(keys);
  }

  async #remove(keys: readonly ItemKey[]): Promise<void> {
    for (const key of keys) await this.#patiently("DeleteItem", { Key: marshalKey(key) });
  }

  /** Sends a write that may be repeated, also while the table throttles. */
  async #patiently(operation: "PutItem" | "DeleteItem", input: object): Promise<void> {
    for (let throttles = 1; ; throttles += 1) {
      try {
        await this.#connection.repeat(operation, input);
        return;
      } catch (error) {
        const isThrottled = error instanceof TableUnavailable && error.throttled;
        if (!isThrottled || throttles > MAX_THROTTLES) throw error;
        this.#connection.countRetry();
        await pause(throttles, this.#connection.retryOptions());
      }
    }
  }
}

/**
 * Does what is left to the next put if the table cannot do it: what was asked for is done already.
 */
async function unlessUnavailable(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof RateLimiterUnavailable)) throw error;
  }
}

/**
 * Stores the head of a state, if the stored revision is the expected one.
 */
export function putProvisioner(
  namespaceId: string,
  {
    state,
    expected,
    stored,
  }: {
    readonly state: ProvisionerState;
    readonly expected: number;
    readonly stored: StoredText;
  },
): object {
  const alias = new Aliases();
  const key = provisionerKey(namespaceId);
  return {
    Item: marshalItem({
      ...key,
      ...namespaceIndexKeys(namespaceId, key),
      revision: state.revision,
      last_applied: state.lastApplied?.toISOString(),
      applied_hash: state.appliedHash,
      ...("text" in stored
        ? { state: stored.text }
        : { state_writer: stored.writer, state_parts: stored.parts }),
    }),
    ConditionExpression: hasRevision(alias, expected),
    ...alias.fields(),
  };
}

/**
 * Cuts a text into pieces of at most `maxBytes` (at least 4) in UTF-8, never within a character.
 */
export function piecesOf(text: string, maxBytes: number): readonly string[] {
  const encoder = new TextEncoder();
  const room = new Uint8Array(maxBytes);
  const pieces: string[] = [];
  for (let start = 0; start < text.length;) {
    // A unit of text has at least one byte. If this cuts a pair of surrogates, its first half does
    // not fit either: it would take three bytes.
    const { read } = encoder.encodeInto(text.slice(start, start + maxBytes), room);
    pieces.push(text.slice(start, start + read));
    start += read;
  }
  return pieces;
}

function partKeys(
  namespaceId: string,
  { revision, writer, parts }: StoredParts & { readonly revision: number },
): readonly ItemKey[] {
  return Array.from({ length: parts }, (_, index) =>
    provisionerPartKey(namespaceId, { revision, writer, index }),
  );
}

/**
 * The keys of a namespace's own items, parts among them. The index has nothing but keys, whereas
 * the table would read, and charge, every part whole. What the index does not show yet is found by
 * the next put.
 */
function ownItemsQuery(namespaceId: string): KeyQuery {
  const { GSI4PK, GSI4SK } = namespaceIndexKeys(namespaceId, provisionerKey(namespaceId));
  return { index: "GSI4", partition: GSI4PK, range: { from: GSI4SK, to: GSI4SK } };
}

/** The state of an item that an upgrade from Python left. */
function earlierState(item: AttributeMap): ProvisionerState {
  const stored = unmarshalItem(item);
  const lastApplied = stored["last_applied"];
  const appliedHash = stored["applied_hash"];
  const managedEntities = (stored["managed_entities"] ?? {}) as ProvisionerState["managedEntities"];
  const entities = Object.entries(managedEntities).filter(([id]) => isAccepted(entityId, id));
  return {
    managedSystem: stored["managed_system"] === true,
    managedResources: ((stored["managed_resources"] ?? []) as readonly string[]).filter((name) =>
      isAccepted(resourceName, name),
    ),
    managedEntities: Object.fromEntries(
      entities.map(([id, names]) => [id, names.filter((name) => isAccepted(configResource, name))]),
    ),
    lastApplied: typeof lastApplied === "string" ? new Date(lastApplied) : undefined,
    appliedHash: typeof appliedHash === "string" ? appliedHash : undefined,
    revision: Number(stored["revision"] ?? 0),
  };
}

/**
 * The original checked no names. Nothing can be read or stored under one that we refuse, so nothing
 * is managed there: otherwise every plan would fail.
 */
function isAccepted(check: (name: unknown) => string, name: string): boolean {
  try {
    check(name);
    return true;
  } catch (error) {
    if (error instanceof ValidationError) return false;
    throw error;
  }
}
