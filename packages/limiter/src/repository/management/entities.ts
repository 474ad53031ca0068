import { SYSTEM_AUDIT_ID, type AuditEvent } from "../../core/audit.ts";
import {
  CHANGEABLE,
  entityCascade,
  entityMetadata,
  entityName,
  pickFields,
  type Entity,
  type EntityChange,
} from "../../core/entity.ts";
import { EntityExistsError, EntityNotFoundError, ValidationError } from "../../core/errors.ts";
import { entityId as checkEntityId, principal as checkPrincipal } from "../../core/identifiers.ts";
import type {
  By,
  CreateEntityOptions,
  DeletedEntity,
  DeleteEntityOptions,
  Page,
  Paging,
  UpdateEntityOptions,
} from "../repository.ts";
import type { AuditStore } from "../store.ts";
import { wholeMs } from "../system-clock.ts";
import { buildAuditEvent, type Context } from "./context.ts";
import { buildGuard } from "./guard.ts";
import { parsePageRequest, toPage } from "./paging.ts";

/** Checks a description and creates the entity. */
export async function createEntity(
  context: Context,
  entityId: string,
  options: CreateEntityOptions,
): Promise<Entity> {
  const entity = buildEntity(context, entityId, options);
  await create(context, entity, options);
  return entity;
}

/** Checks a description, and creates the entity unless it exists. Returns the stored entity. */
export async function ensureEntity(
  context: Context,
  entityId: string,
  options: CreateEntityOptions,
): Promise<Entity> {
  const entity = buildEntity(context, entityId, options);
  const { entities } = context.data;
  // A guarded call begins with the write, which checks the revision even if the entity exists.
  const isGuarded = options.ifRevision !== undefined;
  // After a lost race the entity exists, unless it was deleted again in that very moment.
  for (let attempt = 1; ; attempt += 1) {
    const found = isGuarded && attempt === 1 ? undefined : await entities.get(entity.id);
    if (found !== undefined) return found;
    try {
      await create(context, entity, options);
      return entity;
    } catch (error) {
      if (!(error instanceof EntityExistsError) || attempt === MAX_ENSURES) throw error;
    }
  }
}

/** Checks a change and applies it. Returns the changed entity. */
export async function updateEntity(
  context: Context,
  entityId: string,
  options: UpdateEntityOptions,
): Promise<Entity> {
  const id = checkEntityId(entityId);
  const change = checkChange(options);
  const buildEvent = (before: Entity): AuditEvent =>
    buildAuditEvent(context, {
      entityId: id,
      action: "entity_updated",
      principal: options.principal,
      details: { before: pickFields(before, change), after: change },
    });
  return context.data.entities.update(id, change, buildEvent, buildGuard(options));
}

/** Reads one entity. */
export async function getEntity(context: Context, entityId: string): Promise<Entity | undefined> {
  return context.data.entities.get(checkEntityId(entityId));
}

/** Reads the entities with a parent. */
export async function getChildren(context: Context, parentId: string): Promise<readonly Entity[]> {
  return context.data.entities.children(checkEntityId(parentId, "parentId"));
}

/** Reads one page of entities. */
export async function listEntities(context: Context, paging: Paging): Promise<Page<Entity>> {
  return toPage(
    "entities",
    await context.data.entities.list(parsePageRequest("entities", paging)),
    (entity) => entity,
  );
}

/** Deletes an entity with its limits and buckets, and with its history if that is wanted. */
export async function deleteEntity(
  context: Context,
  entityId: string,
  options: DeleteEntityOptions,
): Promise<DeletedEntity> {
  const { principal, ifRevision, history = false, signal } = options as By & DeleteEntityOptions;
  if (ifRevision !== undefined)
    throw new ValidationError("ifRevision", ifRevision, "a deletion of an entity has no guard");
  if (typeof history !== "boolean")
    throw new ValidationError("history", history, "must be true or false");
  const id = checkEntityId(entityId);
  signal?.throwIfAborted();
  const event = buildAuditEvent(context, { entityId: id, action: "entity_deleted", principal });
  let records = 0;
  try {
    records = await context.data.entities.delete(id, event);
  } catch (error) {
    // An erasure that was interrupted goes on with what is left.
    if (!(history && error instanceof EntityNotFoundError)) throw error;
  } finally {
    context.policies.evictEntity(id);
  }
  if (history) return eraseHistory(context, id, { ...options, records });
  return { records, usageRecords: 0, auditEvents: 0 };
}

/**
 * Removes the usage of an entity, files the event of the erasure, which does not name it, and then
 * removes the audit events: until then a repetition finds the event of the deletion, and so
 * continues as if nothing had interrupted it.
 */
async function eraseHistory(
  context: Context,
  entityId: string,
  { records, principal, onProgress, signal }: DeleteEntityOptions & { readonly records: number },
): Promise<DeletedEntity> {
  const { usage, audit } = context.data;
  let removed = records;
  const step = async (store: Pick<AuditStore, "erase">): Promise<number> => {
    signal?.throwIfAborted();
    const before = removed;
    const count = await store.erase(entityId, {
      ...(signal !== undefined && { signal }),
      onProgress: (more) => onProgress?.(before + more),
    });
    removed += count;
    if (count > 0) onProgress?.(removed);
    return count;
  };
  const newest = (await audit.events(entityId, { limit: 1, after: undefined })).items[0];
  const mayFollow = newest !== undefined && (await isUncounted(context, newest.timestamp));
  const usageRecords = await step(usage);
  if (newest !== undefined || removed > 0) {
    const details = { recordsDeleted: records, usageRecordsDeleted: usageRecords };
    const event = {
      entityId: SYSTEM_AUDIT_ID,
      action: "entity_erased",
      principal,
      details,
    } as const;
    await audit.add(buildAuditEvent(context, event));
  }
  const auditEvents = await step(audit);
  const archivedUnder = audit.archivedUnder?.(context.namespaceName);
  return {
    records,
    usageRecords,
    auditEvents,
    ...(mayFollow && { usageMayFollowUntil: newest.timestamp }),
    ...(archivedUnder !== undefined && { archivedUnder }),
  };
}

/**
 * Whether usage of an entity may be counted later. Its buckets were deleted by that time, so what
 * is counted until then is all of it. Where the store reports changes and nothing was ever counted,
 * an aggregator may still start.
 */
async function isUncounted({ data, store }: Context, deletedAt: Date): Promise<boolean> {
  const unknownMs = store.capabilities.changeStreams ? -Infinity : Infinity;
  return ((await data.usage.getCountedUntilMs()) ?? unknownMs) < deletedAt.getTime();
}

/** More lost races mean that another caller creates and deletes the entity in a loop. */
const MAX_ENSURES = 3;

function buildEntity(context: Context, entityId: string, options: CreateEntityOptions): Entity {
  const { principal } = options;
  if (principal !== undefined) checkPrincipal(principal);
  const id = checkEntityId(entityId);
  const parentId =
    options.parentId === undefined ? undefined : checkEntityId(options.parentId, "parentId");
  if (parentId === id)
    throw new ValidationError("parentId", id, "an entity cannot be its own parent");
  return Object.freeze({
    id,
    name: options.name === undefined ? id : entityName(options.name),
    parentId,
    cascade: entityCascade(options.cascade === undefined ? false : options.cascade),
    metadata: entityMetadata(options.metadata === undefined ? {} : options.metadata),
    createdAt: new Date(wholeMs(context.clock)),
  });
}

async function create(context: Context, entity: Entity, options: By): Promise<void> {
  const { principal } = options;
  const { id, name, parentId, cascade, metadata } = entity;
  const details = { name, ...(parentId !== undefined && { parentId }), cascade, metadata };
  await context.data.entities.create(
    entity,
    buildAuditEvent(context, { entityId: id, action: "entity_created", principal, details }),
    buildGuard(options),
  );
}

function checkChange(options: UpdateEntityOptions): EntityChange {
  const { name, metadata, cascade, principal } = options;
  if (principal !== undefined) checkPrincipal(principal);
  const { parentId } = options as { readonly parentId?: unknown };
  if (parentId !== undefined)
    throw new ValidationError(
      "parentId",
      parentId,
      "cannot be changed yet; delete the entity and create it under the other parent",
    );
  const change = {
    ...(name !== undefined && { name: entityName(name) }),
    ...(metadata !== undefined && { metadata: entityMetadata(metadata) }),
    ...(cascade !== undefined && { cascade: entityCascade(cascade) }),
  };
  if (Object.keys(change).length > 0) return change;
  throw new ValidationError(
    "options",
    undefined,
    `must name at least one of ${CHANGEABLE.join(", ")}`,
  );
}
