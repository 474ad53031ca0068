import { InfrastructureNotFoundError, ValidationError } from "../../../core/errors.ts";
import type { VersionRecord } from "../../repository.ts";
import { UPGRADING_VERSION } from "../items/compatibility.ts";
import { configOf } from "../items/config-item.ts";
import { parseAuditPartition, parseConfigKey } from "../items/key-parsers.ts";
import { namespaceIdPrefix, systemPartition, TABLE_NAMESPACE, versionKey } from "../items/keys.ts";
import { assertCompatible, LOST_VERSION } from "../items/schema-version.ts";
import { versionOf } from "../records.ts";
import { chunksOf, keyOf, marshalKey, queryPage, type ItemKey } from "../table/batch.ts";
import type { Connection } from "../table/connection.ts";
import { contention } from "../table/table-errors.ts";
import { stringOf, type AttributeMap } from "../transport/attribute-values.ts";
import { MAX_ITEMS } from "./change.ts";
import { isCopied, readRecord, type UpgradeRecord } from "./upgrade-record.ts";

/** The version record of a table; undefined for a new one, which has no namespaces either. */
export async function readVersion(connection: Connection): Promise<VersionRecord | undefined> {
  const { Item } = await connection.repeat<{ Item?: AttributeMap }>("GetItem", {
    Key: marshalKey(versionKey()),
    ConsistentRead: true,
  });
  if (Item !== undefined) return versionOf(Item);
  const { items } = await queryPage(connection, {
    partition: systemPartition(TABLE_NAMESPACE),
    range: { beginsWith: namespaceIdPrefix },
    limit: 1,
  });
  return items.length === 0 ? undefined : LOST_VERSION;
}

/** A table that items are copied into must be of this schema, and have no items yet. */
export async function assertUsableTarget(target: Connection): Promise<void> {
  const record = await readRecord(target);
  if (isCopied(record))
    throw new ValidationError(
      "into",
      target.tableName,
      `already has the items of ${stringOf(record?.["source"])}; they are not copied over newer ones`,
    );
  const version = await readVersion(target);
  if (version === undefined)
    throw new InfrastructureNotFoundError(
      `Table ${target.tableName} was not opened by zae-limiter yet. Deploy it first.`,
    );
  if (record !== undefined && version.schemaVersion === UPGRADING_VERSION) return;
  assertCompatible(version);
  for await (const item of itemsOf(target))
    if (!isOfDeployment(item))
      throw new ValidationError("into", target.tableName, "must be a new table without items");
}

/** The namespaces of a new table, and their settings, give way to those of the old one. */
export async function forgetNamespaces(target: Connection, lease: UpgradeRecord): Promise<void> {
  const keys: ItemKey[] = [];
  for await (const item of itemsOf(target)) {
    const key = keyOf(item);
    if (!isOfTable(key) || /^#(NAMESPACE|NSID)#/.test(key.SK)) keys.push(key);
  }
  for (const chunk of chunksOf(keys, MAX_ITEMS)) {
    const deletes = chunk.map((key) => ({ Delete: { Key: marshalKey(key) } }));
    const { applied } = await target.transact([lease.check(), ...deletes]);
    if (!applied) throw contention("an upgrade", target.tableName);
  }
}

/** Whether an item is what a deployment leaves: records, namespaces, how long they keep things. */
function isOfDeployment(item: AttributeMap): boolean {
  const key = keyOf(item);
  if (isOfTable(key) || parseAuditPartition(key.PK) !== undefined) return true;
  return (
    parseConfigKey(key)?.level === "system" &&
    configOf({ level: "system" }, item).limits === undefined
  );
}

function isOfTable({ PK }: ItemKey): boolean {
  return PK === systemPartition(TABLE_NAMESPACE);
}

async function* itemsOf(connection: Connection): AsyncGenerator<AttributeMap> {
  let start: AttributeMap | undefined;
  do {
    const page = await connection.repeat<{
      Items?: readonly AttributeMap[];
      LastEvaluatedKey?: AttributeMap;
    }>("Scan", { ConsistentRead: true, ...(start !== undefined && { ExclusiveStartKey: start }) });
    yield* page.Items ?? [];
    start = page.LastEvaluatedKey;
  } while (start !== undefined);
}
