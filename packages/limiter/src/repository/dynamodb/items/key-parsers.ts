import { USAGE_WINDOWS } from "../../../core/usage.ts";
import type { ConfigKey } from "../../../core/bucket/policy.ts";
import type { ItemKey } from "../table/batch.ts";
import {
  auditPrefix,
  configPrefix,
  DEFAULTS_SORT_KEY,
  ENTITY_SORT_KEY,
  namespaceIdPrefix,
  type BucketName,
  type UsageName,
} from "./keys.ts";

/* Each parser returns undefined for a key of another kind; keys.ts makes the keys. */

/** The entity of a partition key. */
export function parseEntityPartition(
  PK: string,
): { readonly namespaceId: string; readonly entityId: string } | undefined {
  const match = parseRest(PK, /^ENTITY#([^#]+)$/);
  return match && { namespaceId: match.namespaceId, entityId: match.groups[0]! };
}

/** The bucket and shard of a partition key. */
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

/** The entity whose events a partition key holds. */
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
    return SK.startsWith(configPrefix)
      ? { ...entity, level: "entity", resource: SK.slice(configPrefix.length) }
      : undefined;
  if (SK !== DEFAULTS_SORT_KEY) return undefined;
  const match = parseRest(PK, /^(?:RESOURCE#([^#]+)|SYSTEM#)$/);
  if (match === undefined) return undefined;
  const resource = match.groups[0];
  return resource === undefined
    ? { namespaceId: match.namespaceId, level: "system" }
    : { namespaceId: match.namespaceId, level: "resource", resource };
}

/** The usage snapshot of a primary key. */
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

/** The id of an event, from its sort key. */
export function parseEventId(SK: string): string | undefined {
  return stripPrefix(SK, auditPrefix);
}

/** The id of a namespace, from its sort key. */
export function parseNamespaceId(SK: string): string | undefined {
  return stripPrefix(SK, namespaceIdPrefix);
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
  return SK === ENTITY_SORT_KEY && parseEntityPartition(PK) !== undefined;
}

function parseRest(
  PK: string,
  pattern: RegExp,
): { readonly namespaceId: string; readonly groups: readonly (string | undefined)[] } | undefined {
  const parsed = parseNamespace(PK);
  const match = parsed && pattern.exec(parsed.rest);
  return match ? { namespaceId: parsed.namespaceId, groups: match.slice(1) } : undefined;
}

/**
 * The namespace of a partition key, and the rest: ids of namespaces contain no '/', resources may.
 */
function parseNamespace(
  PK: string,
): { readonly namespaceId: string; readonly rest: string } | undefined {
  const slash = PK.indexOf("/");
  return slash < 1 ? undefined : { namespaceId: PK.slice(0, slash), rest: PK.slice(slash + 1) };
}

function stripPrefix(text: string, prefix: string): string | undefined {
  return text.startsWith(prefix) && text.length > prefix.length
    ? text.slice(prefix.length)
    : undefined;
}
