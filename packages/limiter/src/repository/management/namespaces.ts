import { SYSTEM_AUDIT_ID, type AuditAction } from "../../core/audit.ts";
import { ValidationError } from "../../core/errors.ts";
import { namespaceName } from "../../core/identifiers.ts";
import { newNamespaceId, NO_NAMESPACE, type NamespaceInfo } from "../../core/namespace.ts";
import type { PurgeOptions } from "../repository.ts";
import type { NamespaceNote, NamespaceStore } from "../store.ts";
import { wholeMs } from "../system-clock.ts";
import { buildAuditEvent, type Context } from "./context.ts";

/** Creates a namespace if there is none with this name, and returns its id. */
export async function registerNamespace(context: Context, name: string): Promise<string> {
  const note = await buildNote(context, "namespace_registered");
  const newId = (): string => newNamespaceId(context.random);
  const { namespaceId, created } = await context.store.namespaces.register(
    namespaceName(name),
    newId,
    wholeMs(context.clock),
    note,
  );
  if (created) await fileAfterwards(context, note, { name, namespaceId });
  return namespaceId;
}

/** Checks all names, then registers each of them. */
export async function registerNamespaces(
  context: Context,
  names: readonly string[],
): Promise<Readonly<Record<string, string>>> {
  if (!Array.isArray(names)) throw new ValidationError("names", names, "must be an array of names");
  for (const name of names) namespaceName(name);
  const ids: [string, string][] = [];
  for (const name of names as readonly string[])
    ids.push([name, await registerNamespace(context, name)]);
  return Object.fromEntries(ids);
}

/** Deletes a namespace and frees its name. */
export async function deleteNamespace(context: Context, name: string): Promise<void> {
  const note = await buildNote(context, "namespace_deleted");
  const namespaceId = await context.store.namespaces.delete(
    namespaceName(name),
    wholeMs(context.clock),
    note,
  );
  if (namespaceId !== undefined) await fileAfterwards(context, note, { name, namespaceId });
}

/** Makes a deleted namespace active again, and returns its name. */
export async function recoverNamespace(context: Context, namespaceId: string): Promise<string> {
  const note = await buildNote(context, "namespace_recovered");
  const name = await context.store.namespaces.recover(checkNamespaceId(namespaceId), note);
  await fileAfterwards(context, note, { name, namespaceId });
  return name;
}

/** Reads the namespaces that were deleted, or whose purge was interrupted. */
export async function listOrphanNamespaces({
  namespaces,
}: {
  readonly namespaces: NamespaceStore;
}): Promise<readonly NamespaceInfo[]> {
  return (await namespaces.list()).filter(({ status }) => status !== "active");
}

/** Removes all data of a deleted namespace, or what was written to one after it was purged. */
export async function purgeNamespace(
  context: Context,
  namespaceId: string,
  options: PurgeOptions,
): Promise<void> {
  const isOwn = namespaceId === context.namespaceId;
  const note = isOwn ? undefined : await buildNote(context, "namespace_purged");
  const info = await context.store.namespaces.byId(checkNamespaceId(namespaceId));
  const purged = await context.store.namespaces.purge(namespaceId, options, note);
  if (purged) await fileAfterwards(context, note, { name: info?.name, namespaceId });
}

/**
 * Describes a change. Returns undefined if it is made from no namespace, or from one that was
 * purged, where the event would be the only record.
 */
async function buildNote(
  context: Context,
  action: AuditAction,
): Promise<NamespaceNote | undefined> {
  if (context.namespaceId === NO_NAMESPACE) return undefined;
  const own = await context.store.namespaces.byId(context.namespaceId);
  if (own === undefined || own.status === "purging") return undefined;
  return {
    filedIn: context.namespaceId,
    event: (details) => buildAuditEvent(context, { entityId: SYSTEM_AUDIT_ID, action, details }),
  };
}

/** Files the event, unless the store has filed it together with the change. */
async function fileAfterwards(
  context: Context,
  note: NamespaceNote | undefined,
  details: { readonly name: string | undefined; readonly namespaceId: string },
): Promise<void> {
  if (note !== undefined && context.store.namespaces.filesNotes !== true)
    await context.data.audit.add(note.event(details));
}

function checkNamespaceId(value: unknown): string {
  if (typeof value === "string" && /^[A-Za-z0-9_-]{1,64}$/.test(value)) return value;
  throw new ValidationError(
    "namespaceId",
    value,
    "must be the id of a namespace, as listed by listOrphanNamespaces",
  );
}
