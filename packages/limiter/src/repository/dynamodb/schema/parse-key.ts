import type { ConfigKey } from "../../../core/bucket/policy.ts";
import {
  isEntityKey,
  parseAuditPartition,
  parseBucketPartition,
  parseConfigKey,
  parseEntityPartition,
  parseEventId,
  parseNamespaceId,
  parseUsageKey,
} from "../items/key-parsers.ts";
import {
  BUCKET_SORT_KEY,
  heartbeatKey,
  namespaceIdKey,
  namespaceNameKey,
  namespaceNamePrefix,
  provisionerKey,
  provisionerStateKey,
  pulseKey,
  streamLeaseKey,
  upgradeKey,
  versionKey,
  type BucketName,
  type UsageName,
} from "../items/keys.ts";
import type { ItemKey } from "../table/batch.ts";

/** Which record a key belongs to; the namespace of the table's own records is `_`. */
export type RecordKey = {
  /** The id of the namespace, which is not its name. */
  readonly namespaceId: string;
} & (
  | Kind<"entity", Pick<BucketName, "entityId">>
  | Kind<"bucket", BucketName>
  | Kind<"limits", ConfigKey>
  | Kind<"usage", UsageName>
  | Kind<"audit", AuditName>
  | Kind<"namespace name" | "namespace id", NamespaceEntry>
  | Kind<SingleKind, unknown>
);

/** What is in the key of a kind of records. */
type Kind<Name, Key> = {
  /** What the record is. */
  readonly kind: Name;
} & Key;

/** Which audit event. */
export interface AuditName {
  /** The entity that changed, or `$SYSTEM` or `$RESOURCE:{resource}` for the other levels. */
  readonly entityId: string;
  /** The id of the event; ids sort as the events happened. */
  readonly eventId: string;
}

/** Under what a namespace is registered. */
export interface NamespaceEntry {
  /** Its name or its id, as the kind says. */
  readonly registered: string;
}

/** What a namespace, or the table, has one record of. */
export type SingleKind =
  | "provisioner"
  | "provisioner state"
  | "version"
  | "upgrade"
  | "pulse"
  | "heartbeat"
  | "stream lease";

/** An item or a key, from any client: of strings, or as requests and streams write them. */
export interface KeyedItem {
  /** The partition key. */
  readonly PK?: unknown;
  /** The sort key. */
  readonly SK?: unknown;
}

/**
 * Says which record an item is, from its primary key, which items of an index have too; undefined
 * for what is not a record of this library.
 * @example
 * parseKey({ PK: "ns1/ENTITY#key-1", SK: "#META" });
 * // { kind: "entity", namespaceId: "ns1", entityId: "key-1" }
 */
export function parseKey(item: KeyedItem | undefined): RecordKey | undefined {
  const key = { PK: readText(item?.PK), SK: readText(item?.SK) };
  const { PK, SK } = key;
  const entity = parseEntityPartition(PK);
  if (entity !== undefined && isEntityKey(key)) return { kind: "entity", ...entity };
  const bucket = SK === BUCKET_SORT_KEY ? parseBucketPartition(PK) : undefined;
  if (bucket !== undefined) return { kind: "bucket", ...bucket };
  const limits = parseConfigKey(key);
  if (limits !== undefined) return { kind: "limits", ...limits };
  const usage = parseUsageKey(key);
  if (usage !== undefined) return { kind: "usage", ...usage };
  const [audit, eventId] = [parseAuditPartition(PK), parseEventId(SK)];
  if (audit !== undefined && eventId !== undefined) return { kind: "audit", ...audit, eventId };
  return parseSystemKey(key);
}

const SINGLE_KEYS: Readonly<Record<SingleKind, (namespaceId: string) => ItemKey>> = {
  provisioner: provisionerKey,
  "provisioner state": provisionerStateKey,
  version: versionKey,
  upgrade: upgradeKey,
  pulse: pulseKey,
  heartbeat: heartbeatKey,
  "stream lease": streamLeaseKey,
};

function parseSystemKey(key: ItemKey): RecordKey | undefined {
  const namespaceId = key.PK.slice(0, Math.max(0, key.PK.indexOf("/")));
  if (namespaceId === "") return undefined;
  const kinds = Object.keys(SINGLE_KEYS) as SingleKind[];
  const kind = kinds.find((each) => isSame(SINGLE_KEYS[each](namespaceId), key));
  if (kind !== undefined) return { kind, namespaceId };
  const id = parseNamespaceId(key.SK);
  if (id !== undefined && isSame(namespaceIdKey(id), key))
    return { kind: "namespace id", namespaceId, registered: id };
  const name = key.SK.slice(namespaceNamePrefix.length);
  return name !== "" && isSame(namespaceNameKey(name), key)
    ? { kind: "namespace name", namespaceId, registered: name }
    : undefined;
}

function isSame(left: ItemKey, right: ItemKey): boolean {
  return left.PK === right.PK && left.SK === right.SK;
}

function readText(value: unknown): string {
  const text = (value as { readonly S?: unknown } | undefined)?.S ?? value;
  return typeof text === "string" ? text : "";
}
