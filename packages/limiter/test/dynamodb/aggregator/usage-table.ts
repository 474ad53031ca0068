import type { Connection } from "../../../src/repository/dynamodb/table/connection.ts";
import type {
  AttributeMap,
  AttributeValue,
} from "../../../src/repository/dynamodb/transport/attribute-values.ts";
import { startLength, usageName, withoutNothing, type Sum } from "./ledger.ts";

/** The key of an item. */
interface Key {
  readonly PK: string;
  readonly SK: string;
}

/** A bucket, with the keys of its shards in their order. */
export interface StoredBucket {
  readonly entityId: string;
  readonly resource: string;
  readonly keys: readonly Key[];
}

/** What a test reads from a table and deletes there, by its own understanding of the items. */
export class UsageTable {
  /** The partition keys that time to live deletes. */
  readonly expired = new Set<string>();
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  get tableName(): string {
    return this.#connection.tableName;
  }

  /** Every bucket that is stored. */
  async buckets(): Promise<readonly StoredBucket[]> {
    const found = new Map<string, { readonly shard: number; readonly key: Key }[]>();
    for (const item of await this.#items()) {
      const key = toKey(item);
      const match = /\/BUCKET#([^#]+#[^#]+)#(\d+)$/.exec(key.PK);
      if (match === null) continue;
      const [, name, shard] = match as unknown as readonly [string, string, string];
      found.set(name, [...(found.get(name) ?? []), { shard: Number(shard), key }]);
    }
    return [...found].toSorted(byName).map(([name, shards]) => {
      const [entityId, resource] = name.split("#") as [string, string];
      const sorted = shards.toSorted((left, right) => left.shard - right.shard);
      return { entityId, resource, keys: sorted.map(({ key }) => key) };
    });
  }

  /**
   * Deletes all audit events: those of the first entities expire, a user deletes the others.
   * Returns the ids of those that expired.
   */
  async deleteEvents(): Promise<readonly string[]> {
    const keys = (await this.#items()).map(toKey).filter(({ SK }) => SK.startsWith("#AUDIT#"));
    const partitions = [...new Set(keys.map(({ PK }) => PK))].toSorted();
    for (const PK of partitions.slice(0, partitions.length >> 1)) this.expired.add(PK);
    for (const key of keys) await this.delete(key);
    const expired = keys.filter(({ PK }) => this.expired.has(PK));
    return expired.map(({ SK }) => SK.slice("#AUDIT#".length));
  }

  async delete({ PK, SK }: Key): Promise<void> {
    await this.#connection.call("DeleteItem", { Key: { PK: { S: PK }, SK: { S: SK } } });
  }

  /** What all snapshots say, without what is 0. */
  async usage(): Promise<Readonly<Record<string, Sum>>> {
    const sums = new Map<string, Sum>();
    for (const item of await this.#items()) {
      const name = getName(toKey(item));
      if (name === undefined) continue;
      const number = (attribute: string): number => Number(numberText(item[attribute]) ?? 0);
      sums.set(name, {
        consumed: getPrefixed(item, "u_"),
        requests: number("requests"),
        cascaded: getPrefixed(item, "c_"),
        cascadedRequests: number("cascaded_requests"),
      });
    }
    return withoutNothing(sums);
  }

  async #items(): Promise<readonly AttributeMap[]> {
    const items: AttributeMap[] = [];
    let start: AttributeMap | undefined;
    do {
      const page = (await this.#connection.call("Scan", {
        ...(start !== undefined && { ExclusiveStartKey: start }),
      })) as { readonly Items: readonly AttributeMap[]; readonly LastEvaluatedKey?: AttributeMap };
      items.push(...page.Items);
      start = page.LastEvaluatedKey;
    } while (start !== undefined);
    return items;
  }
}

/** Which usage the key of a snapshot is of; undefined for other items. */
function getName({ PK, SK }: Key): string | undefined {
  const entity = /\/ENTITY#([^#]+)$/.exec(PK);
  const usage = /^#USAGE#([^#]+)#([^#]+)#([^#]+)$/.exec(SK);
  if (entity === null || usage === null) return undefined;
  const [, window, start, resource] = usage as unknown as readonly string[];
  return usageName({
    entityId: entity[1]!,
    resource: resource!,
    window: window!,
    start: start!.slice(0, startLength(window!)),
  });
}

function getPrefixed(item: AttributeMap, prefix: string): Readonly<Record<string, number>> {
  const entries = Object.entries(item).filter(([attribute]) => attribute.startsWith(prefix));
  return Object.fromEntries(
    entries.map(([attribute, value]) => [
      attribute.slice(prefix.length),
      Number(numberText(value)),
    ]),
  );
}

function toKey({ PK, SK }: AttributeMap): Key {
  return { PK: (PK as { S: string }).S, SK: (SK as { S: string }).S };
}

function numberText(value: AttributeValue | undefined): string | undefined {
  return value !== undefined && "N" in value ? value.N : undefined;
}

function byName([left]: readonly [string, unknown], [right]: readonly [string, unknown]): number {
  return left < right ? -1 : 1;
}
