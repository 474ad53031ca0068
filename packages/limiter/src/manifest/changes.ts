import { DEFAULT_RESOURCE } from "../core/identifiers.ts";
import type { DeclaredLimits } from "../repository/declared-limits.ts";
import type { By, Repository, SystemDefaultsOptions } from "../repository/repository.ts";
import type { PlanEntry } from "./diff.ts";
import { findLevel, getOwn, getPart, SETTINGS } from "./values.ts";

/** The options of every change. */
export interface Changes {
  readonly repository: Repository;
  readonly declared: DeclaredLimits;
  readonly by: By;
}

/** Makes the change that a plan entry describes, through the repository's own methods. */
export async function makeChange(changes: Changes, entry: PlanEntry): Promise<void> {
  const { repository, declared, by } = changes;
  if (entry.level === "record") return changeRecord(changes, entry);
  if (entry.level === "system") return changeSystem(changes, entry);
  const { entityId, resource = DEFAULT_RESOURCE } = entry;
  const wanted = findLevel(declared, { ...(entityId !== undefined && { entityId }), resource });
  if (entityId === undefined)
    return wanted === undefined
      ? repository.deleteResourceDefaults(resource, by)
      : repository.setResourceDefaults(resource, wanted.limits, { inherit: wanted.inherit, ...by });
  return wanted === undefined
    ? repository.deleteLimits(entityId, { resource, ...by })
    : repository.setLimits(entityId, wanted.limits, { resource, inherit: wanted.inherit, ...by });
}

/** The name of a change in messages. */
export function describeChange({ level, entityId, resource, action }: PlanEntry): string {
  const verb = { create: "Creating", update: "Updating", delete: "Deleting", unchanged: "Keeping" };
  const object = {
    record: `entity '${entityId}'`,
    system: "the system level",
    resource: `the limits of resource '${resource}'`,
    entity: `the limits of entity '${entityId}' on '${resource}'`,
  };
  return `${verb[action]} ${object[level]}`;
}

async function changeRecord(
  { repository, declared, by }: Changes,
  { action, entityId = "", values }: PlanEntry,
): Promise<void> {
  const { resources: _, ...record } = getOwn(declared.entities, entityId) ?? { resources: {} };
  if (action === "create") {
    await repository.createEntity(entityId, { ...record, ...by });
    return;
  }
  const { name, cascade, metadata } = record;
  const changed = new Set(values.map((value) => getPart(value.name)));
  await repository.updateEntity(entityId, {
    ...(changed.has("name") && name !== undefined && { name }),
    ...(changed.has("cascade") && cascade !== undefined && { cascade }),
    ...(changed.has("metadata") && metadata !== undefined && { metadata }),
    ...by,
  });
}

/** Settings that are no longer declared go back to their defaults. */
async function changeSystem(
  { repository, declared, by }: Changes,
  { values }: PlanEntry,
): Promise<void> {
  const changed = new Set(values.map((value) => getPart(value.name)));
  const settings = SETTINGS.filter(({ name }) => changed.has(name)).map(
    ({ field, byDefault }) => [field, declared.system?.[field] ?? byDefault] as const,
  );
  const options: SystemDefaultsOptions = { ...Object.fromEntries(settings), ...by };
  const isChanged = changed.has("limits") || changed.has("inherit");
  const { limits, inherit = true } = (isChanged && declared.system) || {};
  if (limits !== undefined || settings.length > 0)
    await repository.setSystemDefaults(limits, { ...options, ...(limits && { inherit }) });
  if (isChanged && limits === undefined)
    await repository.deleteSystemDefaults({ keepSettings: true, ...by });
}
