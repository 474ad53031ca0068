import type { Entity } from "../core/entity.ts";
import type { DeclaredLevel, DeclaredLimits } from "../repository/declared-limits.ts";
import type { ProvisionerState, Repository } from "../repository/repository.ts";
import type { StoredEntity, StoredLimits } from "./diff.ts";
import { declaredRecords, namedLevels, SETTINGS, type ResourceLevel } from "./values.ts";

/** Enough reads at once to fill a batch of DynamoDB, and few enough to hold no memory to speak of. */
const READS_AT_ONCE = 100;

/** Reads what is stored of everything that a declaration names, or that the state manages. */
export async function readStored(
  repository: Repository,
  declared: DeclaredLimits,
  state: ProvisionerState,
): Promise<StoredLimits> {
  const levels = namedLevels(declared, state).map(({ name }) => name);
  const ids = [...declaredRecords(declared)].flatMap(([id, { parentId }]) => [id, parentId ?? id]);
  return {
    system: await readSystem(repository),
    ...storedLevels(
      await readAll([...new Set(ids)], (id) => repository.getEntity(id)),
      await readAll(levels, (name) => repository.getLevel(name)),
    ),
  };
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

function storedLevels(
  records: Found<string, Entity>,
  levels: Found<ResourceLevel, DeclaredLevel>,
): Pick<StoredLimits, "resources" | "entities"> {
  const recordOf = new Map(records);
  /** Those of an entity by its id, those of resources by undefined. */
  const levelsOf = new Map<string | undefined, [string, DeclaredLevel][]>();
  for (const [{ entityId, resource }, { limits, inherit }] of levels) {
    const held = levelsOf.get(entityId) ?? [];
    held.push([resource, { limits, inherit }]);
    levelsOf.set(entityId, held);
  }
  const resourcesOf = (entityId: string | undefined): StoredEntity["resources"] =>
    Object.fromEntries(levelsOf.get(entityId) ?? []);
  const ids = new Set([...recordOf.keys(), ...levelsOf.keys()].filter((id) => id !== undefined));
  return {
    resources: resourcesOf(undefined),
    entities: Object.fromEntries(
      [...ids].map((id) => [id, { record: recordOf.get(id), resources: resourcesOf(id) }]),
    ),
  };
}

/** What was found under some of the names that were asked for. */
type Found<Name, T> = readonly (readonly [Name, T])[];

/** Reads some at once, and keeps what is there. */
async function readAll<Name, T>(
  names: readonly Name[],
  read: (name: Name) => Promise<T | undefined>,
): Promise<Found<Name, T>> {
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
