import { InfrastructureNotFoundError, ValidationError } from "zae-limiter";
import {
  assertCompatible,
  toChunks,
  parseConfig,
  contention,
  getKey,
  marshalKey,
  parseAuditPartition,
  parseConfigKey,
  readVersion,
  getString,
  systemPartition,
  TABLE_NAMESPACE,
  UPGRADING_VERSION,
  type AttributeMap,
  type Connection,
  type ItemKey,
} from "zae-limiter/dynamodb-internals";
import { MAX_ITEMS } from "./change.ts";
import { isCopied, readRecord, type UpgradeRecord } from "./upgrade-record.ts";

/** A table that items are copied into must be of this schema, and have no items yet. */
export async function assertUsableTarget(target: Connection): Promise<void> {
  const record = await readRecord(target);
  if (isCopied(record))
    throw new ValidationError(
      "into",
      target.tableName,
      `already has the items of ${getString(record?.["source"])}; they are not copied over newer ones`,
    );
  const version = await readVersion(target);
  if (version === undefined)
    throw new InfrastructureNotFoundError(
      `Table ${target.tableName} has not been opened by zae-limiter yet. Deploy it first.`,
    );
  if (record !== undefined && version.schemaVersion === UPGRADING_VERSION) return;
  assertCompatible(version);
  for await (const item of scanItems(target))
    if (!isOfDeployment(item))
      throw new ValidationError("into", target.tableName, "must be a new table without items");
}

/** The namespaces of a new table, and their settings, give way to those of the old one. */
export async function forgetNamespaces(target: Connection, lease: UpgradeRecord): Promise<void> {
  const keys: ItemKey[] = [];
  for await (const item of scanItems(target)) {
    const key = getKey(item);
    if (!isOfTable(key) || /^#(NAMESPACE|NSID)#/.test(key.SK)) keys.push(key);
  }
  for (const chunk of toChunks(keys, MAX_ITEMS)) {
    const deletes = chunk.map((key) => ({ Delete: { Key: marshalKey(key) } }));
    const { applied } = await target.transact([lease.check(), ...deletes]);
    if (!applied) throw contention("an upgrade", target.tableName);
  }
}

/** Whether an item is what a deployment leaves: records, namespaces, how long they keep things. */
function isOfDeployment(item: AttributeMap): boolean {
  const key = getKey(item);
  if (isOfTable(key) || parseAuditPartition(key.PK) !== undefined) return true;
  return (
    parseConfigKey(key)?.level === "system" &&
    parseConfig({ level: "system" }, item).limits === undefined
  );
}

function isOfTable({ PK }: ItemKey): boolean {
  return PK === systemPartition(TABLE_NAMESPACE);
}

async function* scanItems(connection: Connection): AsyncGenerator<AttributeMap> {
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
