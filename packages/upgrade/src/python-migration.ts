import type { NamespaceStatus } from "zae-limiter";
import {
  Aliases,
  BUCKET_SORT_KEY,
  bucketKey,
  isEntityKey,
  getKey,
  marshalItem,
  namespaceIndexKeys,
  namespaceNameKey,
  parseNamespace,
  getNumber,
  parseAuditPartition,
  parseBucketPartition,
  parseConfigKey,
  parseEntityPartition,
  parseNamespaceId,
  parseUsageKey,
  PROVISIONER_STATE_SORT_KEY,
  getString,
  systemPartition,
  TABLE_NAMESPACE,
  usageKey,
  type AttributeMap,
  type BucketName,
  type ItemKey,
} from "zae-limiter/dynamodb-internals";
import { keepItem, type Change } from "./change.ts";
import type { Migration, MigrationContext, Pass } from "./migration.ts";
import {
  bucketChange,
  foldShards,
  hasLimits,
  isPythonBucket,
  readShardCount,
} from "./python-buckets.ts";
import { configChange, isPythonConfig } from "./python-configs.ts";
import {
  isMidnight,
  otherHours,
  parsePythonUsage,
  pythonUsageSortKey,
  snapshotChange,
  listWindows,
  type PythonSnapshot,
} from "./python-usage.ts";

/** Tables of the Python zae-limiter, with schema 0.9.0 or 0.10.0. */
export const pythonMigration: Migration = {
  to: "1.0.0",
  description:
    "Items of the Python zae-limiter: shards become one bucket, usage is filed by window, " +
    "indexes replace registries.",
  passes: [
    // First, because separating a day from its first hour takes the other hours, as they are stored
    // until the next pass.
    { name: "usage of days", filter: midnightFilter(), computeChange: midnightChange },
    { name: "all other items", computeChange: itemChange },
  ],
};

/**
 * Buckets that a process of the Python zae-limiter has created since: a running one never looks at
 * the version again, and this library refuses to touch them.
 */
export const pythonLeftovers: Pass = {
  name: "buckets of the Python zae-limiter",
  filter: pythonBucketFilter(),
  computeChange: async (item, context) => {
    const name = parseBucketPartition(getKey(item).PK);
    return name && shardChange(name, item, context);
  },
};

async function midnightChange(
  item: AttributeMap,
  context: MigrationContext,
): Promise<Change | undefined> {
  const snapshot = parseSnapshot(getKey(item));
  if (snapshot === undefined || !isMidnight(snapshot.startMs)) return undefined;
  return usageChange(snapshot, item, context);
}

async function itemChange(
  item: AttributeMap,
  context: MigrationContext,
): Promise<Change | undefined> {
  const key = getKey(item);
  const snapshot = parseSnapshot(key);
  // The days that are still there were left and reported by the first pass.
  if (snapshot !== undefined)
    return isMidnight(snapshot.startMs) ? undefined : usageChange(snapshot, item, context);
  const bucket = parseBucketPartition(key.PK);
  if (bucket !== undefined && key.SK === BUCKET_SORT_KEY) return shardChange(bucket, item, context);
  const config = parseConfigKey(key);
  if (config !== undefined)
    return isPythonConfig(item) ? configChange(config, item) : keepItem("limits", item);
  if (isEntityKey(key)) return keepItem("entities", item);
  if (parseAuditPartition(key.PK) !== undefined) return keepItem("audit events", item);
  // Written by the first pass, or by an aggregator of ours.
  if (parseUsageKey(key) !== undefined) return undefined;
  if (key.PK === systemPartition(TABLE_NAMESPACE)) return tableItemChange(key, item, context);
  return otherChange(key, item);
}

function parseSnapshot({ PK, SK }: ItemKey): PythonSnapshot | undefined {
  const entity = parseEntityPartition(PK);
  const usage = parsePythonUsage(SK);
  return entity && usage && { ...entity, ...usage };
}

async function usageChange(
  snapshot: PythonSnapshot,
  item: AttributeMap,
  { read, countedWindows }: MigrationContext,
): Promise<Change> {
  const { PK } = getKey(item);
  const names = listWindows(snapshot);
  const hours = isMidnight(snapshot.startMs) ? otherHours(snapshot.startMs) : [];
  const found = await read([
    ...names.map((name) => usageKey(snapshot.namespaceId, name)),
    ...hours.map((startMs) => ({ PK, SK: pythonUsageSortKey(snapshot.resource, startMs) })),
  ]);
  const begun = names.flatMap(({ window }, index) =>
    found[index] === undefined ? [] : [[window, found[index]] as const],
  );
  return snapshotChange(snapshot, item, {
    begun: new Map(begun),
    hours: found.slice(names.length).filter((hour) => hour !== undefined),
    counted: countedWindows,
  });
}

/** Shard 0 stands for all shards; others are looked at only to find those without one. */
async function shardChange(
  name: BucketName & { readonly namespaceId: string },
  item: AttributeMap,
  context: MigrationContext,
): Promise<Change | undefined> {
  if (!isPythonBucket(item)) return keepItem("buckets", item);
  const lost = { kind: "shards of expired buckets", seen: [item], result: [] };
  if (!hasLimits(item)) return lost;
  const keyOfShard = (shard: number): ItemKey => bucketKey({ ...name, shard }, undefined).primary;
  if (name.shard > 0) {
    const [first] = await context.read([keyOfShard(0)]);
    // Without shard 0, the Python zae-limiter would create a full bucket, as this library does.
    const isLost =
      first === undefined || !isPythonBucket(first) || name.shard >= readShardCount(first);
    return isLost ? lost : undefined;
  }
  const numbers = Array.from({ length: readShardCount(item) - 1 }, (_, index) => index + 1);
  const others = (await context.read(numbers.map(keyOfShard))).filter(
    (shard) => shard !== undefined && isPythonBucket(shard),
  ) as readonly AttributeMap[];
  if (others.length >= context.maxItems)
    return foldShards(item, others.slice(0, context.maxItems - 1));
  return bucketChange(name, [item, ...others], context.nowMs);
}

/** Records of the table itself. Those of aggregators, of versions and of upgrades are not data. */
async function tableItemChange(
  key: ItemKey,
  item: AttributeMap,
  { read, nowMs }: MigrationContext,
): Promise<Change | undefined> {
  if (key.SK.startsWith("#NAMESPACE#")) return keepItem("namespaces", item);
  const namespaceId = parseNamespaceId(key.SK);
  if (namespaceId === undefined) return undefined;
  const { name, status } = parseNamespace(item);
  const [byName] = await read([namespaceNameKey(name)]);
  const isNamed = getString(byName?.["namespace_id"]) === namespaceId;
  const repaired = repairStatus(status, isNamed);
  if (repaired === status) return keepItem("namespaces", item);
  const { deleted_at: _, ...rest } = item;
  return {
    kind: "namespaces",
    seen: [item],
    result: [
      {
        ...rest,
        status: { S: repaired },
        ...(repaired === "deleted" && { deleted_at: { S: new Date(nowMs).toISOString() } }),
      },
    ],
  };
}

/**
 * A crash of the Python zae-limiter may have left a name without its namespace, or a namespace
 * without its name, which cannot be recovered or purged (W-61): the namespace that has the name is
 * active.
 */
function repairStatus(status: NamespaceStatus, isNamed: boolean): NamespaceStatus {
  if (status === "purging") return status;
  return isNamed ? "active" : "deleted";
}

/** The registries, which indexes replace (ADR 008). */
const REGISTRIES: ReadonlySet<string> = new Set(["#RESOURCES", "#ENTITY_CONFIG_RESOURCES"]);

/** How sort keys begin that only schemas before 0.9.0 have. */
const OLDER_SCHEMA = /^#(BUCKET|LIMIT|RESOURCE)#/;

function otherChange(key: ItemKey, item: AttributeMap): Change {
  if (REGISTRIES.has(key.SK)) return { kind: "registries", seen: [item], result: [] };
  if (key.SK === "#PROVISIONER") return provisionerChange(key, item);
  if (key.SK === PROVISIONER_STATE_SORT_KEY) return keepItem("records of declared limits", item);
  // Proof that a reset or a top-up was done once; it expires after three days.
  if (key.SK.startsWith("#OP#")) return keepItem("records of operations", item);
  const text = `${key.PK} ${key.SK}`;
  if (OLDER_SCHEMA.test(key.SK))
    return {
      ...keepItem("items of an older schema", item),
      dropped: [`${text}: of a schema before 0.9.0; upgrade the table with the original first`],
    };
  return { ...keepItem("unknown items", item), left: [`${text}: not known`] };
}

function provisionerChange(key: ItemKey, item: AttributeMap): Change {
  const namespaceId = key.PK.slice(0, key.PK.indexOf("/"));
  const added = marshalItem({
    ...namespaceIndexKeys(namespaceId, key),
    revision: getNumber(item["revision"]) ?? 1,
  });
  return { kind: "records of declared limits", seen: [item], result: [{ ...item, ...added }] };
}

function pythonBucketFilter(): object {
  const alias = new Aliases();
  const isBucket = `${alias.name("SK")} = ${alias.value(BUCKET_SORT_KEY)}`;
  const isPython = `attribute_not_exists(${alias.name("sv")})`;
  return { FilterExpression: `${isBucket} AND ${isPython}`, ...alias.fields() };
}

function midnightFilter(): object {
  const alias = new Aliases();
  const sortKey = alias.name("SK");
  return {
    FilterExpression:
      `begins_with(${sortKey}, ${alias.value("#USAGE#")}) AND ` +
      `contains(${sortKey}, ${alias.value("T00:00:00Z")})`,
    ...alias.fields(),
  };
}
