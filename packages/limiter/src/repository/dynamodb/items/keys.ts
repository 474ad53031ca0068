import { USAGE_WINDOWS, type UsageWindow } from "../../../core/usage.ts";
import type { ConfigKey } from "../../../core/bucket/policy.ts";
import type { ItemKey } from "../table/batch.ts";

/*
 * The keys of every item. `{ns}` is the opaque id of a namespace; `_` is the table's own.
 *
 *   item                PK                                       SK                                   GSI4SK (GSI4PK = {ns})
 *   entity              {ns}/ENTITY#{entity}                     #META                                = PK
 *   entity's limits     {ns}/ENTITY#{entity}                     #CONFIG#{resource}                   CONFIG#{resource}#{entity}
 *   usage               {ns}/ENTITY#{entity}                     #USAGE#{window}#{start}#{resource}   USAGE#{entity}#{window}#{start}#{resource}
 *   bucket              {ns}/BUCKET#{entity}#{resource}#{shard}  #STATE                               BUCKET#{entity}#{resource}#{shard}
 *   resource defaults   {ns}/RESOURCE#{resource}                 #CONFIG                              = PK
 *   system defaults     {ns}/SYSTEM#                             #CONFIG                              = PK
 *   provisioner         {ns}/SYSTEM#                             #PROVISIONER                         = PK
 *   audit               {ns}/AUDIT#{entity}                      #AUDIT#{ulid}                        = PK
 *   namespace by name   _/SYSTEM#                                #NAMESPACE#{name}                    = PK
 *   namespace by id     _/SYSTEM#                                #NSID#{id}                           = PK
 *   version             _/SYSTEM#                                #VERSION                             = PK
 *
 *   GSI1  {ns}/PARENT#{parent}            CHILD#{entity}                      children of a parent
 *   GSI2  {ns}/RESOURCE#{resource}        BUCKET#{entity}#{shard}             buckets of a resource
 *         {ns}/RESOURCE#{resource}        USAGE#{window}#{start}#{entity}     usage of a resource
 *   GSI3  {ns}/ENTITY_CONFIG#{resource}   {entity}                            entities with limits of their own
 *         {ns}/ENTITY#{entity}            BUCKET#{resource}#{shard}           buckets of an entity
 *
 * Every item has GSI4 keys, so that a purge finds it. They also replace the registries of the
 * original, on which every change of limits contended: `{ns}/RESOURCE#…` lists the resources with
 * defaults, `CONFIG#…` those with limits of entities, `{ns}/ENTITY#…` the entities and nothing
 * else. No identifier contains '#', and only resources contain '/', so every key can be taken apart
 * again.
 */

/** The namespace of what belongs to the table itself. */
export const TABLE_NAMESPACE = "_";

/** The keys of an item in the index of its namespace. */
export interface NamespaceIndexKey {
  readonly GSI4PK: string;
  readonly GSI4SK: string;
}

const META = "#META";
const STATE = "#STATE";
const CONFIG = "#CONFIG";
const CONFIG_PREFIX = "#CONFIG#";
const AUDIT_PREFIX = "#AUDIT#";
const NAMESPACE_PREFIX = "#NAMESPACE#";
const NAMESPACE_ID_PREFIX = "#NSID#";

// ---- primary keys

export function entityKey(namespaceId: string, entityId: string): ItemKey {
  return { PK: entityPartition(namespaceId, entityId), SK: META };
}

export function bucketKey(namespaceId: string, { entityId, resource, shard }: BucketName): ItemKey {
  return { PK: `${bucketPartitionPrefix(namespaceId, entityId)}${resource}#${shard}`, SK: STATE };
}

/** How the partition keys of all buckets of an entity begin. */
export function bucketPartitionPrefix(namespaceId: string, entityId: string): string {
  return `${namespaceId}/BUCKET#${entityId}#`;
}

/** Where the limits of one level are stored. */
export function configKey(namespaceId: string, key: ConfigKey): ItemKey {
  if (key.level === "system") return { PK: systemPartition(namespaceId), SK: CONFIG };
  if (key.level === "resource")
    return { PK: `${namespaceId}/RESOURCE#${key.resource}`, SK: CONFIG };
  return { PK: entityPartition(namespaceId, key.entityId), SK: CONFIG_PREFIX + key.resource };
}

export function usageKey(
  namespaceId: string,
  { entityId, resource, window, startMs }: UsageName,
): ItemKey {
  return {
    PK: entityPartition(namespaceId, entityId),
    SK: `${usagePrefix(window)}${windowText(startMs)}#${resource}`,
  };
}

export function auditKey(namespaceId: string, entityId: string, eventId: string): ItemKey {
  return { PK: auditPartition(namespaceId, entityId), SK: AUDIT_PREFIX + eventId };
}

export function provisionerKey(namespaceId: string): ItemKey {
  return { PK: systemPartition(namespaceId), SK: "#PROVISIONER" };
}

export function namespaceNameKey(name: string): ItemKey {
  return { PK: systemPartition(TABLE_NAMESPACE), SK: NAMESPACE_PREFIX + name };
}

export function namespaceIdKey(namespaceId: string): ItemKey {
  return { PK: systemPartition(TABLE_NAMESPACE), SK: NAMESPACE_ID_PREFIX + namespaceId };
}

export function versionKey(): ItemKey {
  return { PK: systemPartition(TABLE_NAMESPACE), SK: "#VERSION" };
}

// ---- partitions and ranges for queries

export function entityPartition(namespaceId: string, entityId: string): string {
  return `${namespaceId}/ENTITY#${entityId}`;
}

export function auditPartition(namespaceId: string, entityId: string): string {
  return `${namespaceId}/AUDIT#${entityId}`;
}

export function systemPartition(namespaceId: string): string {
  return `${namespaceId}/SYSTEM#`;
}

export const auditPrefix: string = AUDIT_PREFIX;
export const configPrefix: string = CONFIG_PREFIX;
export const namespaceIdPrefix: string = NAMESPACE_ID_PREFIX;

/** Sort keys of the usage of one window length: those of later windows sort later. */
export function usagePrefix(window: UsageWindow): string {
  return `#USAGE#${window}#`;
}

/** GSI4 sort keys of all entities. */
export function entitiesPrefix(namespaceId: string): string {
  return `${namespaceId}/ENTITY#`;
}

/** GSI4 sort keys of all resources with defaults. */
export function resourcesPrefix(namespaceId: string): string {
  return `${namespaceId}/RESOURCE#`;
}

/** GSI4 sort keys of entities' limits, by resource. */
export const entityConfigsPrefix = "CONFIG#";

// ---- index keys

export function childKeys(
  namespaceId: string,
  parentId: string,
  entityId: string,
): { readonly GSI1PK: string; readonly GSI1SK: string } {
  return { GSI1PK: childrenPartition(namespaceId, parentId), GSI1SK: `CHILD#${entityId}` };
}

export function childrenPartition(namespaceId: string, parentId: string): string {
  return `${namespaceId}/PARENT#${parentId}`;
}

/** GSI2: what a resource has. */
export function resourcePartition(namespaceId: string, resource: string): string {
  return `${namespaceId}/RESOURCE#${resource}`;
}

export const resourceBucketsPrefix = "BUCKET#";

/** GSI2 sort keys of the usage of one window length. */
export function resourceUsagePrefix(window: UsageWindow): string {
  return `USAGE#${window}#`;
}

/** GSI3: entities with limits of their own for a resource. */
export function entityConfigPartition(namespaceId: string, resource: string): string {
  return `${namespaceId}/ENTITY_CONFIG#${resource}`;
}

/** GSI3: the buckets of an entity; its sort keys begin with `BUCKET#{resource}#`. */
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

// ---- parsers: `undefined` for a key of another kind

/** Which bucket. */
export interface BucketName {
  readonly entityId: string;
  readonly resource: string;
  readonly shard: number;
}

/** Which usage snapshot. */
export interface UsageName {
  readonly entityId: string;
  readonly resource: string;
  readonly window: UsageWindow;
  readonly startMs: number;
}

/**
 * The namespace of a partition key, and the rest: ids of namespaces contain no '/', resources may.
 */
export function parseNamespace(
  PK: string,
): { readonly namespaceId: string; readonly rest: string } | undefined {
  const slash = PK.indexOf("/");
  return slash < 1 ? undefined : { namespaceId: PK.slice(0, slash), rest: PK.slice(slash + 1) };
}

export function parseEntityPartition(
  PK: string,
): { readonly namespaceId: string; readonly entityId: string } | undefined {
  const match = parseRest(PK, /^ENTITY#([^#]+)$/);
  return match && { namespaceId: match.namespaceId, entityId: match.groups[0]! };
}

export function parseBucketPartition(
  PK: string,
): ({ readonly namespaceId: string } & BucketName) | undefined {
  const match = parseRest(PK, /^BUCKET#([^#]+)#([^#]+)#(\d+)$/);
  return (
    match && {
      namespaceId: match.namespaceId,
      entityId: match.groups[0]!,
      resource: match.groups[1]!,
      shard: Number(match.groups[2]),
    }
  );
}

export function parseAuditPartition(
  PK: string,
): { readonly namespaceId: string; readonly entityId: string } | undefined {
  const match = parseRest(PK, /^AUDIT#([^#]+)$/);
  return match && { namespaceId: match.namespaceId, entityId: match.groups[0]! };
}

/** Where limits are stored, from the key of their item. */
export function parseConfigKey({
  PK,
  SK,
}: ItemKey): ({ readonly namespaceId: string } & ConfigKey) | undefined {
  const entity = parseEntityPartition(PK);
  if (entity !== undefined)
    return SK.startsWith(CONFIG_PREFIX)
      ? { ...entity, level: "entity", resource: SK.slice(CONFIG_PREFIX.length) }
      : undefined;
  if (SK !== CONFIG) return undefined;
  const match = parseRest(PK, /^(?:RESOURCE#([^#]+)|SYSTEM#)$/);
  if (match === undefined) return undefined;
  const resource = match.groups[0];
  return resource === undefined
    ? { namespaceId: match.namespaceId, level: "system" }
    : { namespaceId: match.namespaceId, level: "resource", resource };
}

export function parseUsageKey({
  PK,
  SK,
}: ItemKey): ({ readonly namespaceId: string } & UsageName) | undefined {
  const entity = parseEntityPartition(PK);
  const match = /^#USAGE#([a-z]+)#([^#]+)#([^#]+)$/.exec(SK);
  if (entity === undefined || match === null) return undefined;
  const window = USAGE_WINDOWS.find((known) => known === match[1]);
  const startMs = Date.parse(match[2]!);
  if (window === undefined || Number.isNaN(startMs)) return undefined;
  return { ...entity, window, startMs, resource: match[3]! };
}

/** The entity of a GSI1 sort key. */
export function parseChild(GSI1SK: string): string | undefined {
  return after(GSI1SK, "CHILD#");
}

/** The id of an event, from its sort key. */
export function parseEventId(SK: string): string | undefined {
  return after(SK, AUDIT_PREFIX);
}

/** The name of a namespace, from its sort key. */
export function parseNamespaceName(SK: string): string | undefined {
  return after(SK, NAMESPACE_PREFIX);
}

/** The id of a namespace, from its sort key. */
export function parseNamespaceId(SK: string): string | undefined {
  return after(SK, NAMESPACE_ID_PREFIX);
}

/** The resource and entity of a GSI4 sort key of an entity's limits. */
export function parseEntityConfigIndex(
  GSI4SK: string,
): { readonly resource: string; readonly entityId: string } | undefined {
  const match = /^CONFIG#([^#]+)#([^#]+)$/.exec(GSI4SK);
  return match === null ? undefined : { resource: match[1]!, entityId: match[2]! };
}

/** Whether an item is an entity's own record. */
export function isEntityKey({ PK, SK }: ItemKey): boolean {
  return SK === META && parseEntityPartition(PK) !== undefined;
}

/**
 * The start of a window as keys write it: whole seconds, so that texts of any two sort as their
 * times do.
 */
export function windowText(startMs: number): string {
  return `${new Date(startMs).toISOString().slice(0, 19)}Z`;
}

function parseRest(
  PK: string,
  pattern: RegExp,
): { readonly namespaceId: string; readonly groups: readonly (string | undefined)[] } | undefined {
  const parsed = parseNamespace(PK);
  const match = parsed && pattern.exec(parsed.rest);
  return match ? { namespaceId: parsed.namespaceId, groups: match.slice(1) } : undefined;
}

function after(text: string, prefix: string): string | undefined {
  return text.startsWith(prefix) && text.length > prefix.length
    ? text.slice(prefix.length)
    : undefined;
}
