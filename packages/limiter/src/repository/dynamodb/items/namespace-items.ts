import type { NamespaceInfo, NamespaceStatus } from "../../../core/namespace.ts";
import { absent, Aliases } from "../table/aliases.ts";
import { marshalItem, getString, type AttributeMap } from "../transport/attribute-values.ts";
import { getKey, marshalKey } from "../table/batch.ts";
import type { TransactItem } from "../table/connection.ts";
import { parseNamespaceId } from "./key-parsers.ts";
import { namespaceIdKey, namespaceIndexKeys, namespaceNameKey, TABLE_NAMESPACE } from "./keys.ts";
import type { ItemKey } from "../table/batch.ts";

/*
 * A namespace is two items: one by id, which holds its state, and, while it is active, one by name,
 * which reserves the name.
 *
 *              register             delete               purge
 *   (nothing) ──────────▶ active  ──────────▶ deleted  ──────────▶ purging ──▶ (nothing)
 *                         by name     ▲          │ by id only         every step may be repeated
 *                         by id       └──────────┘ recover
 *
 * Each arrow is one transaction (or one write), so a crash leaves one of these states, never
 * something between two.
 */

/** Registers a namespace. Reasons of a cancellation: the name is taken, the id is taken. */
export function registerWrites(info: NamespaceInfo): readonly TransactItem[] {
  return [putIfAbsent(nameItem(info)), putIfAbsent(idItem(info))];
}

/** Frees the name of an active namespace. */
export function deleteWrites(info: NamespaceInfo, nowMs: number): readonly TransactItem[] {
  return [
    { Delete: freeName(info) },
    { Update: changeState(info, "deleted", { from: ["active"], deletedAt: new Date(nowMs) }) },
  ];
}

/**
 * Reserves the name again. Reasons of a cancellation: the name is taken, the namespace is no longer
 * deleted.
 */
export function recoverWrites(info: NamespaceInfo): readonly TransactItem[] {
  return [
    putIfAbsent(nameItem({ ...info, status: "active", deletedAt: undefined })),
    { Update: changeState(info, "active", { from: ["deleted"] }) },
  ];
}

/** Marks a namespace as being purged, which cannot be undone. */
export function beginPurge(info: NamespaceInfo): object {
  return changeState(info, "purging", { from: ["deleted", "purging"], deletedAt: info.deletedAt });
}

/** Removes the last trace of a purged namespace. */
export function endPurge({ namespaceId }: NamespaceInfo): object {
  const alias = new Aliases();
  const condition = `${alias.name("status")} = ${alias.value("purging")}`;
  return {
    Key: marshalKey(namespaceIdKey(namespaceId)),
    ConditionExpression: condition,
    ...alias.fields(),
  };
}

/** The namespace that an item describes. */
export function parseNamespace(item: AttributeMap): NamespaceInfo {
  const deletedAt = getString(item["deleted_at"]);
  return {
    name: getString(item["namespace_name"]) ?? "",
    namespaceId: getString(item["namespace_id"]) ?? parseNamespaceId(getKey(item).SK) ?? "",
    status: (getString(item["status"]) ?? "active") as NamespaceStatus,
    createdAt: new Date(getString(item["created_at"]) ?? 0),
    deletedAt: deletedAt === undefined ? undefined : new Date(deletedAt),
  };
}

function nameItem(info: NamespaceInfo): AttributeMap {
  return namespaceItem(namespaceNameKey(info.name), info);
}

function idItem(info: NamespaceInfo): AttributeMap {
  return namespaceItem(namespaceIdKey(info.namespaceId), info);
}

function namespaceItem(
  key: ItemKey,
  { name, namespaceId, status, createdAt }: NamespaceInfo,
): AttributeMap {
  return marshalItem({
    ...key,
    ...namespaceIndexKeys(TABLE_NAMESPACE, key),
    namespace_name: name,
    namespace_id: namespaceId,
    status,
    created_at: createdAt.toISOString(),
  });
}

function putIfAbsent(Item: AttributeMap): TransactItem {
  const alias = new Aliases();
  return { Put: { Item, ConditionExpression: absent(alias), ...alias.fields() } };
}

/**
 * Frees the name only if it still belongs to this namespace: another one may have taken it
 * meanwhile.
 */
function freeName({ name, namespaceId }: NamespaceInfo): object {
  const alias = new Aliases();
  const condition = `${alias.name("namespace_id")} = ${alias.value(namespaceId)}`;
  return {
    Key: marshalKey(namespaceNameKey(name)),
    ConditionExpression: condition,
    ...alias.fields(),
  };
}

function changeState(
  { namespaceId }: NamespaceInfo,
  to: NamespaceStatus,
  {
    from,
    deletedAt,
  }: { readonly from: readonly NamespaceStatus[]; readonly deletedAt?: Date | undefined },
): object {
  const alias = new Aliases();
  const set = `SET ${alias.name("status")} = ${alias.value(to)}`;
  const update =
    deletedAt === undefined
      ? `${set} REMOVE ${alias.name("deleted_at")}`
      : `${set}, ${alias.name("deleted_at")} = ${alias.value(deletedAt.toISOString())}`;
  const allowed = from.map((status) => alias.value(status)).join(", ");
  const condition = `${alias.name("status")} IN (${allowed})`;
  return {
    Key: marshalKey(namespaceIdKey(namespaceId)),
    UpdateExpression: update,
    ConditionExpression: condition,
    ...alias.fields(),
  };
}
