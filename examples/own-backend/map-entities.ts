import { EntityExistsError, EntityNotFoundError, ValidationError, type Entity } from "zae-limiter";
import type {
  AuditEvent,
  EntityChange,
  EntityStore,
  Guard,
  Keyed,
  KeyPage,
} from "zae-limiter/backend";
import type { MapAudit } from "./map-audit.ts";
import { readPage } from "./map-page.ts";
import type { MapProvisioner } from "./map-provisioner.ts";

/** Data that is deleted with its entity. */
interface Belongings {
  /** Returns the number of records that were deleted. */
  deleteEntity(entityId: string): number;
}

/** Entities by id. */
export class MapEntities implements EntityStore {
  readonly #entities = new Map<string, Entity>();
  readonly #provisioner: MapProvisioner;
  readonly #audit: MapAudit;
  readonly #belongings: readonly Belongings[];

  constructor(provisioner: MapProvisioner, audit: MapAudit, belongings: readonly Belongings[]) {
    this.#provisioner = provisioner;
    this.#audit = audit;
    this.#belongings = belongings;
  }

  create(entity: Entity, event: AuditEvent, guard: Guard): void {
    this.#provisioner.check(guard);
    const { id, parentId } = entity;
    if (this.#entities.has(id)) throw new EntityExistsError(id);
    if (parentId !== undefined && !this.#entities.has(parentId))
      throw new EntityNotFoundError(parentId);
    this.#entities.set(id, copy(entity));
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
    const after = copy({ ...before, ...change });
    this.#entities.set(entityId, after);
    this.#audit.add(buildEvent(before));
    return copy(after);
  }

  get(entityId: string): Entity | undefined {
    const entity = this.#entities.get(entityId);
    return entity && copy(entity);
  }

  children(parentId: string): readonly Entity[] {
    return [...this.#entities.values()]
      .filter((entity) => entity.parentId === parentId)
      .sort((left, right) => (left.id < right.id ? -1 : 1))
      .map(copy);
  }

  list(page: KeyPage): Keyed<Entity> {
    const { items, next } = readPage(this.#entities, page);
    return { items: items.map(([, entity]) => copy(entity)), next };
  }

  delete(entityId: string, event: AuditEvent): number {
    const { length } = this.children(entityId);
    if (length > 0)
      throw new ValidationError("entityId", entityId, `has ${length} children; delete them first`);
    let deleted = this.#entities.delete(entityId) ? 1 : 0;
    for (const owner of this.#belongings) deleted += owner.deleteEntity(entityId);
    if (deleted === 0) throw new EntityNotFoundError(entityId);
    this.#audit.add({ ...event, details: { ...event.details, recordsDeleted: deleted } });
    return deleted;
  }
}

/** A Date cannot be frozen, so every caller gets its own. */
function copy(entity: Entity): Entity {
  return Object.freeze({ ...entity, createdAt: new Date(entity.createdAt) });
}
