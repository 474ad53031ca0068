import type { AuditEvent } from "../../core/audit.ts";
import type { Entity, EntityChange } from "../../core/entity.ts";
import { EntityExistsError, EntityNotFoundError, ValidationError } from "../../core/errors.ts";
import type { EntityStore, Guard, Keyed, KeyPage } from "../store.ts";
import type { MemoryAudit } from "./audit.ts";
import type { MemoryProvisioner } from "./records.ts";
import { buildSortedPage } from "./build-sorted-page.ts";

/** Data of an entity that is deleted with it. */
interface Belongings {
  deleteEntity(entityId: string): number;
}

/** Entities by id. */
export class MemoryEntities implements EntityStore {
  readonly #entities = new Map<string, Entity>();
  readonly #children = new Map<string, Set<string>>();
  readonly #audit: MemoryAudit;
  readonly #provisioner: MemoryProvisioner;
  readonly #belongings: readonly Belongings[];

  constructor(
    audit: MemoryAudit,
    provisioner: MemoryProvisioner,
    belongings: readonly Belongings[],
  ) {
    this.#audit = audit;
    this.#provisioner = provisioner;
    this.#belongings = belongings;
  }

  create(entity: Entity, event: AuditEvent, guard: Guard): void {
    this.#provisioner.check(guard);
    const { id, parentId } = entity;
    if (this.#entities.has(id)) throw new EntityExistsError(id);
    if (parentId !== undefined && !this.#entities.has(parentId))
      throw new EntityNotFoundError(parentId);
    this.#entities.set(id, copyEntity(entity));
    if (parentId !== undefined)
      this.#children.set(parentId, (this.#children.get(parentId) ?? new Set()).add(id));
    this.#audit.add(event);
  }

  update(
    entityId: string,
    change: EntityChange,
    buildEvent: (before: Entity) => AuditEvent,
    guard: Guard,
  ): Entity {
    this.#provisioner.check(guard);
    const before = this.#entities.get(entityId);
    if (before === undefined) throw new EntityNotFoundError(entityId);
    const event = buildEvent(before);
    this.#entities.set(entityId, copyEntity({ ...before, ...change }));
    this.#audit.add(event);
    return this.get(entityId)!;
  }

  get(entityId: string): Entity | undefined {
    const entity = this.#entities.get(entityId);
    return entity === undefined ? undefined : copyEntity(entity);
  }

  /**
   * The stored entity itself, without a copy, for readers in this folder: every acquire reads it.
   */
  find(entityId: string): Entity | undefined {
    return this.#entities.get(entityId);
  }

  children(parentId: string): readonly Entity[] {
    return [...(this.#children.get(parentId) ?? [])]
      .sort()
      .map((id) => copyEntity(this.#entities.get(id)!));
  }

  list(page: KeyPage): Keyed<Entity> {
    const { items, next } = buildSortedPage(
      [...this.#entities.values()],
      (entity) => entity.id,
      page,
    );
    return { items: items.map(copyEntity), next };
  }

  delete(entityId: string, event: AuditEvent): number {
    const entity = this.#entities.get(entityId);
    const children = this.#children.get(entityId)?.size ?? 0;
    if (children > 0)
      throw new ValidationError(
        "entityId",
        entityId,
        `has ${children} children; delete them first`,
      );
    const recordsDeleted = this.#belongings.reduce(
      (sum, owner) => sum + owner.deleteEntity(entityId),
      entity === undefined ? 0 : 1,
    );
    if (recordsDeleted === 0) throw new EntityNotFoundError(entityId);
    this.#entities.delete(entityId);
    if (entity?.parentId !== undefined) this.#removeChild(entity.parentId, entityId);
    this.#audit.add(
      Object.freeze({ ...event, details: Object.freeze({ ...event.details, recordsDeleted }) }),
    );
    return recordsDeleted;
  }

  #removeChild(parentId: string, entityId: string): void {
    const children = this.#children.get(parentId);
    children?.delete(entityId);
    if (children?.size === 0) this.#children.delete(parentId);
  }

  clear(): number {
    const count = this.#entities.size;
    this.#entities.clear();
    this.#children.clear();
    return count;
  }
}

/** A Date cannot be frozen, so every caller gets its own. */
function copyEntity(entity: Entity): Entity {
  return Object.freeze({ ...entity, createdAt: new Date(entity.createdAt) });
}
