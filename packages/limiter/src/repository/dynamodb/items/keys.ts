import type { UsageWindow } from "../../../core/usage.ts";
import type { ConfigKey } from "../../../core/bucket/policy.ts";
import type { ItemKey } from "../table/batch.ts";

/*
 * The keys of every item; key-parsers.ts reads them. `{ns}` is the opaque id of a namespace; `_` is
 * the table's own.
 *
 *   item                PK                                       SK
 *   entity              {ns}/ENTITY#{entity}                     #META
 *   entity's limits     {ns}/ENTITY#{entity}                     #CONFIG#{resource}
 *   usage               {ns}/ENTITY#{entity}                     #USAGE#{window}#{start}#{resource}
 *   bucket              {ns}/BUCKET#{entity}#{resource}#{shard}  #STATE
 *   resource defaults   {ns}/RESOURCE#{resource}                 #CONFIG
 *   system defaults     {ns}/SYSTEM#                             #CONFIG
 *   provisioner         {ns}/SYSTEM#                             #PROVISIONER
 *   its state           {ns}/SYSTEM#                             #PROVISIONER#STATE
 *   audit               {ns}/AUDIT#{entity}                      #AUDIT#{ulid}
 *   namespace by name   _/SYSTEM#                                #NAMESPACE#{name}
 *   namespace by id     _/SYSTEM#                                #NSID#{id}
 *   version             _/SYSTEM#                                #VERSION
 *   upgrade             _/SYSTEM#                                #UPGRADE
 *   pulse               _/SYSTEM#                                #PULSE
 *   heartbeat           _/SYSTEM#                                #AGGREGATOR
 *   lease of the stream _/SYSTEM#                                #STREAM
 *
 *   index  partition                       sort key                           what it finds
 *   GSI1   {ns}/PARENT#{parent}            CHILD#{entity}                     children of a parent
 *   GSI2   {ns}/RESOURCE#{resource}        BUCKET#{entity}#{shard}            buckets of a resource
 *          {ns}/RESOURCE#{resource}        USAGE#{window}#{start}#{entity}    usage of a resource
 *   GSI3   {ns}/ENTITY_CONFIG#{resource}   {entity}                           entities with limits
 *          {ns}/ENTITY#{entity}            BUCKET#{resource}#{shard}          buckets of an entity
 *   GSI4   {ns}                            CONFIG#{resource}#{entity}         limits of entities
 *          {ns}                            USAGE#{entity}#{window}#{start}#{resource}
 *          {ns}                            BUCKET#{entity}#{resource}#{shard}
 *          {ns}                            the PK of every other item
 *
 * Every item has GSI4 keys, so that a purge finds it. They also replace the registries of the
 * Python zae-limiter, on which every change of limits contended (ADR 008): `{ns}/RESOURCE#…` lists
 * the resources with defaults, `CONFIG#…` those with limits of entities, `{ns}/ENTITY#…` the
 * entities and nothing else. No identifier contains '#', and only resources contain '/', so every
 * key can be parsed.
 */

/** The namespace of what belongs to the table itself. */
export const TABLE_NAMESPACE = "_";

/** The keys of an item in the index of its namespace. */
export interface NamespaceIndexKey {
  readonly GSI4PK: string;
  readonly GSI4SK: string;
}

/** Which bucket. */
export interface BucketName {
  /** Whose bucket it is. */
  readonly entityId: string;
  /** The resource of the bucket. */
  readonly resource: string;
  /** Which shard it is, from 0; a bucket that was never split has only this one. */
  readonly shard: number;
}

/** Which usage snapshot. */
export interface UsageName {
  /** Whose usage it is. */
  readonly entityId: string;
  /** What was used. */
  readonly resource: string;
  /** The length of the window. */
  readonly window: UsageWindow;
  /** When the window begins, in milliseconds since 1970. */
  readonly startMs: number;
}

/** The sort key of an entity's own record. */
export const ENTITY_SORT_KEY = "#META";

/** The sort key of resource and system defaults. */
export const DEFAULTS_SORT_KEY = "#CONFIG";

/** The sort key of a shard of a bucket. */
export const BUCKET_SORT_KEY = "#STATE";

/** How the sort keys of an entity's limits begin. */
export const configPrefix = "#CONFIG#";

/** How the sort keys of audit events begin. */
export const auditPrefix = "#AUDIT#";

/** How the sort keys of namespaces by id begin. */
export const namespaceIdPrefix = "#NSID#";

/** How the sort keys of namespaces by name begin. */
export const namespaceNamePrefix = "#NAMESPACE#";

/** The sort key of the state of declared limits. */
export const PROVISIONER_STATE_SORT_KEY = "#PROVISIONER#STATE";

/**
 * The key of an entity's own record.
 * @example entityKey("ns1", "key-1"); // { PK: "ns1/ENTITY#key-1", SK: "#META" }
 */
export function entityKey(namespaceId: string, entityId: string): ItemKey {
  return { PK: entityPartition(namespaceId, entityId), SK: ENTITY_SORT_KEY };
}

/**
 * The key of one shard of a bucket.
 * @example
 * bucketKey("ns1", { entityId: "key-1", resource: "gpt-4", shard: 0 });
 * // { PK: "ns1/BUCKET#key-1#gpt-4#0", SK: "#STATE" }
 */
export function bucketKey(namespaceId: string, { entityId, resource, shard }: BucketName): ItemKey {
  return {
    PK: `${bucketPartitionPrefix(namespaceId, entityId)}${resource}#${shard}`,
    SK: BUCKET_SORT_KEY,
  };
}

/** How the partition keys of all buckets of an entity begin. */
export function bucketPartitionPrefix(namespaceId: string, entityId: string): string {
  return `${namespaceId}/BUCKET#${entityId}#`;
}

/**
 * Where the limits of one level are stored.
 * @example
 * configKey("ns1", { level: "resource", resource: "gpt-4" });
 * // { PK: "ns1/RESOURCE#gpt-4", SK: "#CONFIG" }
 */
export function configKey(namespaceId: string, key: ConfigKey): ItemKey {
  if (key.level === "system") return { PK: systemPartition(namespaceId), SK: DEFAULTS_SORT_KEY };
  if (key.level === "resource")
    return { PK: `${namespaceId}/RESOURCE#${key.resource}`, SK: DEFAULTS_SORT_KEY };
  return { PK: entityPartition(namespaceId, key.entityId), SK: configPrefix + key.resource };
}

/**
 * The key of a usage snapshot.
 * @example
 * usageKey("ns1", { entityId: "key-1", resource: "gpt-4", window: "daily", startMs: 0 });
 * // { PK: "ns1/ENTITY#key-1", SK: "#USAGE#daily#1970-01-01T00:00:00Z#gpt-4" }
 */
export function usageKey(
  namespaceId: string,
  { entityId, resource, window, startMs }: UsageName,
): ItemKey {
  return {
    PK: entityPartition(namespaceId, entityId),
    SK: `${usagePrefix(window)}${windowText(startMs)}#${resource}`,
  };
}

/**
 * The key of an audit event.
 * @example auditKey("ns1", "key-1", "01H"); // { PK: "ns1/AUDIT#key-1", SK: "#AUDIT#01H" }
 */
export function auditKey(namespaceId: string, entityId: string, eventId: string): ItemKey {
  return { PK: auditPartition(namespaceId, entityId), SK: auditPrefix + eventId };
}

/**
 * The key of the revision of declared limits.
 * @example provisionerKey("ns1"); // { PK: "ns1/SYSTEM#", SK: "#PROVISIONER" }
 */
export function provisionerKey(namespaceId: string): ItemKey {
  return { PK: systemPartition(namespaceId), SK: "#PROVISIONER" };
}

/**
 * The key of the state of declared limits.
 * @example provisionerStateKey("ns1"); // { PK: "ns1/SYSTEM#", SK: "#PROVISIONER#STATE" }
 */
export function provisionerStateKey(namespaceId: string): ItemKey {
  return { PK: systemPartition(namespaceId), SK: PROVISIONER_STATE_SORT_KEY };
}

/**
 * The key of an active namespace, by its name.
 * @example namespaceNameKey("my-team"); // { PK: "_/SYSTEM#", SK: "#NAMESPACE#my-team" }
 */
export function namespaceNameKey(name: string): ItemKey {
  return { PK: systemPartition(TABLE_NAMESPACE), SK: namespaceNamePrefix + name };
}

/**
 * The key of a namespace, by its id.
 * @example namespaceIdKey("ns1"); // { PK: "_/SYSTEM#", SK: "#NSID#ns1" }
 */
export function namespaceIdKey(namespaceId: string): ItemKey {
  return { PK: systemPartition(TABLE_NAMESPACE), SK: namespaceIdPrefix + namespaceId };
}

/**
 * The key of the version record of the table.
 * @example versionKey(); // { PK: "_/SYSTEM#", SK: "#VERSION" }
 */
export function versionKey(): ItemKey {
  return { PK: systemPartition(TABLE_NAMESPACE), SK: "#VERSION" };
}

/**
 * The key of how far an upgrade of the table is, and who runs it.
 * @example upgradeKey(); // { PK: "_/SYSTEM#", SK: "#UPGRADE" }
 */
export function upgradeKey(): ItemKey {
  return { PK: systemPartition(TABLE_NAMESPACE), SK: "#UPGRADE" };
}

/**
 * The key of what an aggregator writes now and then, to see it come back through the stream.
 * @example pulseKey(); // { PK: "_/SYSTEM#", SK: "#PULSE" }
 */
export function pulseKey(): ItemKey {
  return { PK: systemPartition(TABLE_NAMESPACE), SK: "#PULSE" };
}

/**
 * The key of the record that says until when consumption has been counted.
 * @example heartbeatKey(); // { PK: "_/SYSTEM#", SK: "#AGGREGATOR" }
 */
export function heartbeatKey(): ItemKey {
  return { PK: systemPartition(TABLE_NAMESPACE), SK: "#AGGREGATOR" };
}

/**
 * The key of what runners store: which of them reads the stream, and how far it is.
 * @example streamLeaseKey(); // { PK: "_/SYSTEM#", SK: "#STREAM" }
 */
export function streamLeaseKey(): ItemKey {
  return { PK: systemPartition(TABLE_NAMESPACE), SK: "#STREAM" };
}

/**
 * The partition of an entity, its limits and its usage; in GSI3, of its buckets.
 * @example entityPartition("ns1", "key-1"); // "ns1/ENTITY#key-1"
 */
export function entityPartition(namespaceId: string, entityId: string): string {
  return `${namespaceId}/ENTITY#${entityId}`;
}

/**
 * The partition of the audit events of an entity.
 * @example auditPartition("ns1", "key-1"); // "ns1/AUDIT#key-1"
 */
export function auditPartition(namespaceId: string, entityId: string): string {
  return `${namespaceId}/AUDIT#${entityId}`;
}

/**
 * The partition of a namespace's own records.
 * @example systemPartition("ns1"); // "ns1/SYSTEM#"
 */
export function systemPartition(namespaceId: string): string {
  return `${namespaceId}/SYSTEM#`;
}

/** How the sort keys of usage begin. */
export const usageSortKeys = "#USAGE#";

/**
 * Sort keys of the usage of one window length: those of later windows sort later.
 * @example usagePrefix("daily"); // "#USAGE#daily#"
 */
export function usagePrefix(window: UsageWindow): string {
  return `${usageSortKeys}${window}#`;
}

/**
 * GSI4 sort keys of all entities.
 * @example entitiesPrefix("ns1"); // "ns1/ENTITY#"
 */
export function entitiesPrefix(namespaceId: string): string {
  return `${namespaceId}/ENTITY#`;
}

/**
 * GSI4 sort keys of all resources with defaults.
 * @example resourcesPrefix("ns1"); // "ns1/RESOURCE#"
 */
export function resourcesPrefix(namespaceId: string): string {
  return `${namespaceId}/RESOURCE#`;
}

/** GSI4 sort keys of entities' limits, by resource. */
export const entityConfigsPrefix = "CONFIG#";

/** The keys of an entity in the index of its parent. */
export function childKeys(
  namespaceId: string,
  parentId: string,
  entityId: string,
): { readonly GSI1PK: string; readonly GSI1SK: string } {
  return { GSI1PK: childrenPartition(namespaceId, parentId), GSI1SK: `CHILD#${entityId}` };
}

/**
 * GSI1: the children of an entity.
 * @example childrenPartition("ns1", "team-1"); // "ns1/PARENT#team-1"
 */
export function childrenPartition(namespaceId: string, parentId: string): string {
  return `${namespaceId}/PARENT#${parentId}`;
}

/**
 * GSI2: what a resource has.
 * @example resourcePartition("ns1", "gpt-4"); // "ns1/RESOURCE#gpt-4"
 */
export function resourcePartition(namespaceId: string, resource: string): string {
  return `${namespaceId}/RESOURCE#${resource}`;
}

/** GSI2: how the sort keys of buckets begin. */
export const resourceBucketsPrefix = "BUCKET#";

/**
 * GSI2: the buckets of the entities after one, or of all. '$' follows the '#' that ends an id, and
 * is in none.
 */
export function resourceBucketsAfter(entityId: string | undefined): {
  readonly from: string;
  readonly to: string;
} {
  const from = entityId === undefined ? "" : `${entityId}$`;
  return { from: resourceBucketsPrefix + from, to: "BUCKET$" };
}

/**
 * GSI2 sort keys of the usage of one window length.
 * @example resourceUsagePrefix("daily"); // "USAGE#daily#"
 */
export function resourceUsagePrefix(window: UsageWindow): string {
  return `USAGE#${window}#`;
}

/**
 * GSI3: entities with limits of their own for a resource.
 * @example entityConfigPartition("ns1", "gpt-4"); // "ns1/ENTITY_CONFIG#gpt-4"
 */
export function entityConfigPartition(namespaceId: string, resource: string): string {
  return `${namespaceId}/ENTITY_CONFIG#${resource}`;
}

/**
 * GSI3: the buckets of an entity; its sort keys begin with `BUCKET#{resource}#`.
 * @example entityBucketsPrefix("gpt-4"); // "BUCKET#gpt-4#"
 */
export function entityBucketsPrefix(resource?: string): string {
  return resource === undefined ? "BUCKET#" : `BUCKET#${resource}#`;
}

/** All keys of a bucket in the indexes. */
export function bucketIndexKeys(
  namespaceId: string,
  { entityId, resource, shard }: BucketName,
): NamespaceIndexKey & {
  readonly GSI2PK: string;
  readonly GSI2SK: string;
  readonly GSI3PK: string;
  readonly GSI3SK: string;
} {
  return {
    GSI2PK: resourcePartition(namespaceId, resource),
    GSI2SK: `${resourceBucketsPrefix}${entityId}#${shard}`,
    GSI3PK: entityPartition(namespaceId, entityId),
    GSI3SK: `${entityBucketsPrefix(resource)}${shard}`,
    GSI4PK: namespaceId,
    GSI4SK: `BUCKET#${entityId}#${resource}#${shard}`,
  };
}

/** All keys of an entity's limits in the indexes. */
export function entityConfigIndexKeys(
  namespaceId: string,
  entityId: string,
  resource: string,
): NamespaceIndexKey & { readonly GSI3PK: string; readonly GSI3SK: string } {
  return {
    GSI3PK: entityConfigPartition(namespaceId, resource),
    GSI3SK: entityId,
    GSI4PK: namespaceId,
    GSI4SK: `${entityConfigsPrefix}${resource}#${entityId}`,
  };
}

/** All keys of a usage snapshot in the indexes. */
export function usageIndexKeys(
  namespaceId: string,
  name: UsageName,
): NamespaceIndexKey & { readonly GSI2PK: string; readonly GSI2SK: string } {
  const { entityId, resource, window, startMs } = name;
  return {
    GSI2PK: resourcePartition(namespaceId, resource),
    GSI2SK: `${resourceUsagePrefix(window)}${windowText(startMs)}#${entityId}`,
    GSI4PK: namespaceId,
    GSI4SK: `USAGE#${entityId}#${window}#${windowText(startMs)}#${resource}`,
  };
}

/** The keys of every other item in the index of its namespace. */
export function namespaceIndexKeys(namespaceId: string, { PK }: ItemKey): NamespaceIndexKey {
  return { GSI4PK: namespaceId, GSI4SK: PK };
}

/**
 * The start of a window as keys write it: whole seconds, so that texts of any two sort as their
 * times do.
 */
export function windowText(startMs: number): string {
  return `${new Date(startMs).toISOString().slice(0, 19)}Z`;
}

/** Where an archive keeps the expired audit events of a namespace: in a folder of this name. */
export function archiveFolder(namespaceName: string): string {
  return `audit/namespace=${archivePart(namespaceName)}/`;
}

/**
 * Names of namespaces and ids of events hold nothing else than these characters. What another
 * program may have stored must not name another folder either.
 */
export function archivePart(text: string): string {
  return text.replaceAll(/[^\w.-]/g, "_");
}
