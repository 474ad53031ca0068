import type { Entity } from "../core/entity.ts";
import type { DeclaredLevel, DeclaredLimits } from "../repository/declared-limits.ts";
import type { LevelName, ProvisionerState, Repository } from "../repository/repository.ts";
import type { StoredEntity, StoredLimits } from "./diff.ts";
import { declaredRecords, ownValue, SETTINGS } from "./values.ts";

/** Enough reads at once to fill a batch of DynamoDB, and few enough to hold no memory to speak of. */
const READS_AT_ONCE = 100;

/** Reads what is stored of everything that a declaration names, or that the state manages. */
export async function readStored(
  repository: Repository,
  declared: DeclaredLimits,
  state: ProvisionerState,
): Promise<StoredLimits> {
  const resources = new Set([...Object.keys(declared.resources), ...state.managedResources]);
  const levels: readonly NamedLevel[] = [
    ...[...resources].map((resource) => ({ resource })),
    ...entityLevels(declared, state),
  ];
  const found = await readAll(levels, (level) => repository.getLevel(level));
  const records = await readAll([...namedRecords(declared)], (id) => repository.getEntity(id));
  return {
    system: await readSystem(repository),
    resources: Object.fromEntries(
      found.flatMap(([{ entityId, resource }, level]) =>
        entityId === undefined ? [[resource, level]] : [],
      ),
    ),
    entities: storedEntities(
      records.map(([, record]) => record),
      found.flatMap(([{ entityId, resource }, level]) =>
        entityId === undefined ? [] : [{ entityId, resource, level }],
      ),
    ),
  };
}

/** A level of a resource, or of an entity on one. */
type NamedLevel = LevelName & { readonly resource: string };

function entityLevels(declared: DeclaredLimits, state: ProvisionerState): readonly NamedLevel[] {
  const ids = new Set([...Object.keys(declared.entities), ...Object.keys(state.managedEntities)]);
  return [...ids].flatMap((entityId) => {
    const names = new Set([
      ...Object.keys(ownValue(declared.entities, entityId)?.resources ?? {}),
      ...(ownValue(state.managedEntities, entityId) ?? []),
    ]);
    return [...names].map((resource) => ({ entityId, resource }));
  });
}

/** The entities whose records are declared, and all of their parents. */
function namedRecords(declared: DeclaredLimits): ReadonlySet<string> {
  return new Set(
    [...declaredRecords(declared)].flatMap(([id, { parentId }]) =>
      parentId === undefined ? [id] : [id, parentId],
    ),
  );
}

/** What is as it is by default is left out: retention does not say whether it is stored. */
async function readSystem(repository: Repository): Promise<StoredLimits["system"]> {
  const stored = await repository.getSystemDefaults();
  const settings = SETTINGS.flatMap(({ field, byDefault }) => {
    const value = stored[field];
    return value === undefined || value === byDefault ? [] : [[field, value] as const];
  });
  return {
    ...Object.fromEntries(settings),
    ...(stored.limits.length > 0 && { limits: stored.limits }),
  };
}

function storedEntities(
  records: readonly Entity[],
  levels: readonly (Required<LevelName> & { readonly level: DeclaredLevel })[],
): Readonly<Record<string, StoredEntity>> {
  const entities = new Map<
    string,
    { record: Entity | undefined; resources: Map<string, DeclaredLevel> }
  >();
  const entityOf = (id: string) => {
    const entity = entities.get(id) ?? { record: undefined, resources: new Map() };
    entities.set(id, entity);
    return entity;
  };
  for (const record of records) entityOf(record.id).record = record;
  for (const { entityId, resource, level } of levels)
    entityOf(entityId).resources.set(resource, level);
  return Object.fromEntries(
    [...entities].map(([id, { record, resources }]) => [
      id,
      { record, resources: Object.fromEntries(resources) },
    ]),
  );
}

/** Reads some at once, and keeps what is there. */
async function readAll<Name, T>(
  names: readonly Name[],
  read: (name: Name) => Promise<T | undefined>,
): Promise<readonly (readonly [Name, T])[]> {
  const found: (readonly [Name, T])[] = [];
  for (let start = 0; start < names.length; start += READS_AT_ONCE) {
    const chunk = names.slice(start, start + READS_AT_ONCE);
    const answers = await Promise.all(chunk.map(read));
    chunk.forEach((name, index) => {
      const answer = answers[index];
      if (answer !== undefined) found.push([name, answer]);
    });
  }
  return found;
}
