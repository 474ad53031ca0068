import { VERSION } from "../../core/version.ts";
import type { ProvisionerState, VersionRecord } from "../repository.ts";
import type { ProvisionerStore, VersionStore } from "../store.ts";
import { stateOfText, stateText } from "../provisioner-state.ts";
import { Aliases, absent } from "./table/update-expression.ts";
import {
  marshalItem,
  stringOf,
  unmarshalItem,
  type AttributeMap,
} from "./transport/attribute-values.ts";
import type { Connection } from "./table/connection.ts";
import type { ItemReader } from "./table/item-reader.ts";
import { namespaceIndexKeys, provisionerKey, TABLE_NAMESPACE, versionKey } from "./items/keys.ts";
import { SCHEMA_VERSION } from "./items/schema-version.ts";

/** The version record of a table. */
export class DynamoVersions implements VersionStore {
  readonly #connection: Connection;
  readonly #reader: ItemReader;
  /** Whether this process knows that there is a record: it never goes away. */
  #isRecorded = false;

  constructor(connection: Connection, reader: ItemReader) {
    this.#connection = connection;
    this.#reader = reader;
  }

  async get(): Promise<VersionRecord | undefined> {
    const item = await this.#reader.get(versionKey());
    if (item === undefined) return undefined;
    this.#isRecorded = true;
    return versionOf(item);
  }

  async put(record: VersionRecord): Promise<void> {
    await this.#connection.repeat("PutItem", { Item: versionItem(record) });
    this.#isRecorded = true;
  }

  /**
   * Stores the first record of a table that may have none. Whoever was faster, such as a
   * deployment, knows better.
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

/** Records which declared limits were applied to one namespace. */
export class DynamoProvisioner implements ProvisionerStore {
  readonly #connection: Connection;
  readonly #namespaceId: string;
  readonly #reader: ItemReader;

  constructor(connection: Connection, namespaceId: string, reader: ItemReader) {
    this.#connection = connection;
    this.#namespaceId = namespaceId;
    this.#reader = reader;
  }

  async get(): Promise<ProvisionerState | undefined> {
    const item = await this.#reader.get(provisionerKey(this.#namespaceId));
    return item === undefined ? undefined : provisionerOf(item);
  }

  async put(state: ProvisionerState, expected: number): Promise<boolean> {
    // A transaction of one write, for its token: a retried conditional write would find its own
    // first attempt and take it for another process's.
    return (
      await this.#connection.transact([{ Put: putProvisioner(this.#namespaceId, state, expected) }])
    ).applied;
  }
}

/**
 * Stores a state, if the stored revision is the expected one; revision 0 means that none is stored.
 */
export function putProvisioner(
  namespaceId: string,
  state: ProvisionerState,
  expected: number,
): object {
  const alias = new Aliases();
  const same = `${alias.name("revision")} = ${alias.value(expected)}`;
  const condition = expected === 0 ? `${absent(alias)} OR ${same}` : same;
  return {
    Item: provisionerItem(namespaceId, state),
    ConditionExpression: condition,
    ...alias.fields(),
  };
}

function provisionerItem(namespaceId: string, state: ProvisionerState): AttributeMap {
  const key = provisionerKey(namespaceId);
  return marshalItem({
    ...key,
    ...namespaceIndexKeys(namespaceId, key),
    state: stateText(state),
    last_applied: state.lastApplied?.toISOString(),
    applied_hash: state.appliedHash,
    revision: state.revision,
  });
}

function provisionerOf(item: AttributeMap): ProvisionerState {
  const text = stringOf(item["state"]);
  if (text !== undefined) return stateOfText(text);
  const stored = unmarshalItem(item);
  const lastApplied = stored["last_applied"];
  const appliedHash = stored["applied_hash"];
  return {
    managedSystem: stored["managed_system"] === true,
    managedResources: (stored["managed_resources"] ?? []) as readonly string[],
    managedEntities: (stored["managed_entities"] ?? {}) as Readonly<
      Record<string, readonly string[]>
    >,
    lastApplied: typeof lastApplied === "string" ? new Date(lastApplied) : undefined,
    appliedHash: typeof appliedHash === "string" ? appliedHash : undefined,
    revision: Number(stored["revision"] ?? 0),
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
export function versionOf(item: AttributeMap): VersionRecord {
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
