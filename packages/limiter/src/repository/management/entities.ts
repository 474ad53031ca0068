import { entityMetadata, entityName, type Entity } from "../../core/entity.ts";
import { ValidationError } from "../../core/errors.ts";
import { entityId as checkEntityId } from "../../core/identifiers.ts";
import type { By, CreateEntityOptions, Page, Paging } from "../repository.ts";
import { wholeMs } from "../system-clock.ts";
import { auditEvent, type Context } from "./context.ts";
import { checkOptionsOf } from "./option-names.ts";
import { keyPage, pageOf } from "./paging.ts";

/** Checks a description and creates the entity. */
export async function createEntity(
  context: Context,
  entityId: string,
  options: CreateEntityOptions,
): Promise<Entity> {
  checkOptionsOf("createEntity", options);
  const { principal, cascade = false } = options;
  const id = checkEntityId(entityId);
  const parentId =
    options.parentId === undefined ? undefined : checkEntityId(options.parentId, "parentId");
  if (parentId === id)
    throw new ValidationError("parentId", id, "an entity cannot be its own parent");
  if (typeof cascade !== "boolean")
    throw new ValidationError("cascade", cascade, "must be true or false");
  const name = options.name === undefined ? id : entityName(options.name);
  const metadata = entityMetadata(options.metadata === undefined ? {} : options.metadata);
  const entity: Entity = Object.freeze({
    id,
    name,
    parentId,
    cascade,
    metadata,
    createdAt: new Date(wholeMs(context.clock)),
  });
  const details = { name, ...(parentId !== undefined && { parentId }), cascade, metadata };
  await context.data.entities.create(
    entity,
    auditEvent(context, { entityId: id, action: "entity_created", principal, details }),
  );
  return entity;
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
  checkOptionsOf("listEntities", paging);
  return pageOf(
    "entities",
    await context.data.entities.list(keyPage("entities", paging)),
    (entity) => entity,
  );
}

/** Deletes an entity with its limits and buckets. */
export async function deleteEntity(context: Context, entityId: string, options: By): Promise<void> {
  checkOptionsOf("deleteEntity", options);
  const { principal } = options;
  const id = checkEntityId(entityId);
  await context.data.entities.delete(
    id,
    auditEvent(context, { entityId: id, action: "entity_deleted", principal }),
  );
  context.policies.evictEntity(id);
}
