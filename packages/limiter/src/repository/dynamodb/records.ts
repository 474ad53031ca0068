import { VERSION } from "../../core/version.ts";
import type { VersionRecord } from "../repository.ts";
import type { VersionStore } from "../store.ts";
import { Aliases, absent } from "./table/aliases.ts";
import { marshalItem, unmarshalItem, type AttributeMap } from "./transport/attribute-values.ts";
import type { Connection } from "./table/connection.ts";
import type { ItemReader } from "./table/item-reader.ts";
import { namespaceIndexKeys, TABLE_NAMESPACE, versionKey } from "./items/keys.ts";
import { SCHEMA_VERSION } from "./items/compatibility.ts";

/** The version record of a table. */
export class DynamoVersions implements VersionStore {
  readonly #connection: Connection;
  readonly #reader: ItemReader;
  /** Whether this process knows that there is a record: it only goes away with its table. */
  #isRecorded = false;

  constructor(connection: Connection, reader: ItemReader) {
    this.#connection = connection;
    this.#reader = reader;
  }

  async get(): Promise<VersionRecord | undefined> {
    const item = await this.#reader.get(versionKey());
    this.#isRecorded = item !== undefined;
    return item && parseVersion(item);
  }

  async put(record: VersionRecord): Promise<void> {
    await this.#connection.repeat("PutItem", { Item: versionItem(record) });
    this.#isRecorded = true;
  }

  /**
   * Stores the first record of a table that may have none. A record that is already there, such as
   * that of a deployment, is kept.
   */
  async putFirst(nowMs: number): Promise<void> {
    if (this.#isRecorded) return;
    const alias = new Aliases();
    await this.#connection.repeatConditional("PutItem", {
      Item: versionItem(firstVersion(nowMs)),
      ConditionExpression: absent(alias),
      ...alias.fields(),
    });
    this.#isRecorded = true;
  }
}

function firstVersion(nowMs: number): VersionRecord {
  return {
    schemaVersion: SCHEMA_VERSION,
    lambdaVersion: undefined,
    clientMinVersion: "0.0.0",
    updatedAt: new Date(nowMs),
    updatedBy: `client:${VERSION}`,
  };
}

/** The item of a version record. */
export function versionItem(record: VersionRecord): AttributeMap {
  const key = versionKey();
  return marshalItem({
    ...key,
    ...namespaceIndexKeys(TABLE_NAMESPACE, key),
    schema_version: record.schemaVersion,
    lambda_version: record.lambdaVersion ?? null,
    client_min_version: record.clientMinVersion,
    updated_at: record.updatedAt.toISOString(),
    updated_by: record.updatedBy ?? null,
  });
}

/** The version record of an item. */
export function parseVersion(item: AttributeMap): VersionRecord {
  const stored = unmarshalItem(item);
  const text = (name: string): string | undefined =>
    typeof stored[name] === "string" ? stored[name] : undefined;
  return {
    schemaVersion: text("schema_version") ?? "0.0.0",
    lambdaVersion: text("lambda_version"),
    clientMinVersion: text("client_min_version") ?? "0.0.0",
    updatedAt: new Date(text("updated_at") ?? 0),
    updatedBy: text("updated_by"),
  };
}
