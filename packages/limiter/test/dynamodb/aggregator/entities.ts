import { Limit, type Repository } from "zae-limiter";

/** The resources of all calls. */
export const RESOURCES: readonly string[] = ["r", "s"];

/** The entity that others cascade into, and that is called itself. */
export const PARENT = "parent";

/** What the configuration says of an entity, as the oracle needs to know it. */
export interface EntityModel {
  readonly id: string;
  /** Whether its calls take from the parent, too. */
  cascades: boolean;
  /** The limits of its own, each with what it holds; undefined: those of the system. */
  limits: readonly (readonly [name: string, capacity: number])[] | undefined;
  /** Whether there is a record of it. */
  readonly isRegistered: boolean;
  /** Whether it may be deleted and created again. */
  readonly isDeletable: boolean;
}

/** The limits of the system. Some calls ask for more than is there. */
const SYSTEM_LIMITS = [
  ["rpm", 60],
  ["tpm", 900],
] as const;

/** Entities as they are at first. */
export function newEntities(): readonly EntityModel[] {
  const entity = (id: string, model: Partial<EntityModel>): EntityModel => ({
    id,
    cascades: false,
    limits: undefined,
    isRegistered: true,
    isDeletable: false,
    ...model,
  });
  return [
    // It has no limit for requests, and counts them: the system has one.
    entity(PARENT, { limits: [["tpm", 4000]] }),
    // No other entity has its limit for images, so the parent does not count them.
    entity("painter", {
      cascades: true,
      limits: [
        ["rpm", 100],
        ["tpm", 1500],
        ["images", 64],
      ],
    }),
    entity("child", { cascades: true }),
    entity("turncoat", { isDeletable: true }),
    entity("loner", { limits: [["tpm", 700]], isDeletable: true }),
    entity("stranger", { isRegistered: false }),
  ];
}

/** The names that a call of an entity may use: those of any level. */
export function listNames({ limits }: EntityModel): readonly string[] {
  const own = (limits ?? []).map(([name]) => name);
  return [...new Set([...SYSTEM_LIMITS.map(([name]) => name), ...own])];
}

/** Stores the limits of the system, and all entities. */
export async function storeEntities(
  repository: Repository,
  entities: readonly EntityModel[],
): Promise<void> {
  await repository.setSystemDefaults(buildLimits(SYSTEM_LIMITS));
  for (const entity of entities) await storeEntity(repository, entity);
}

/** Stores an entity with its limits, if it is registered. */
export async function storeEntity(repository: Repository, entity: EntityModel): Promise<void> {
  const { id, cascades } = entity;
  if (entity.isRegistered)
    await repository.createEntity(id, id === PARENT ? {} : { parentId: PARENT, cascade: cascades });
  await storeLimits(repository, entity);
}

/** Stores the limits of an entity, or none. */
export async function storeLimits(
  repository: Repository,
  { id, limits }: EntityModel,
): Promise<void> {
  if (limits !== undefined) await repository.setLimits(id, buildLimits(limits));
}

/** They fill up within an hour: a test waits for none of them, and none stays empty. */
function buildLimits(
  limits: readonly (readonly [name: string, capacity: number])[],
): readonly Limit[] {
  return limits.map(([name, capacity]) => Limit.perHour(name, capacity));
}
