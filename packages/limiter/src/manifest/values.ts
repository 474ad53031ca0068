import { Limit } from "../core/limit.ts";
import { DEFAULT_RETENTION_DAYS } from "../core/usage.ts";
import type {
  DeclaredEntity,
  DeclaredLevel,
  DeclaredLimits,
  DeclaredSystem,
} from "../repository/declared-limits.ts";
import type { ProvisionerState } from "../repository/models.ts";
import type { Repository } from "../repository/repository.ts";

/** A level or a record as texts, under the names that its values have in a manifest. */
export interface Values {
  /** By name: `inherit`, or `limits.rpm` of the part `limits`. */
  readonly texts: ReadonlyMap<string, string>;
  /** The parts that are declared or stored as a whole: `inherit`, or `limits`. */
  readonly parts: ReadonlySet<string>;
}

/** The settings of the system level by their names in manifests, and their defaults. */
export const SETTINGS = [
  { name: "on_unavailable", field: "onUnavailable", byDefault: "block" },
  { name: "audit_retention_days", field: "auditRetentionDays", byDefault: DEFAULT_RETENTION_DAYS },
  { name: "usage_retention_days", field: "usageRetentionDays", byDefault: DEFAULT_RETENTION_DAYS },
] as const;

/** The meaning of an absent value. Writing the default and leaving it out mean the same. */
const DEFAULTS: ReadonlyMap<string, string> = new Map([
  ["inherit", "true"],
  ...SETTINGS.map(({ name, byDefault }) => [name, String(byDefault)] as const),
]);

/** The one value that a repository returns only if it is stored, even if it is the default. */
const ON_UNAVAILABLE = "on_unavailable";

/** Reads what the system level stores. A default retention is left out. */
export async function readDeclaredSystem(
  repository: Pick<Repository, "getSystemDefaults" | "getLevel">,
): Promise<DeclaredSystem> {
  const { limits, ...stored } = await repository.getSystemDefaults();
  const level = limits.length > 0 ? await repository.getLevel({}) : undefined;
  const settings = SETTINGS.filter(({ name, field }) => {
    const value = stored[field];
    return name === ON_UNAVAILABLE ? value !== undefined : String(value) !== DEFAULTS.get(name);
  });
  return {
    ...Object.fromEntries(settings.map(({ field }) => [field, stored[field]])),
    ...(level !== undefined && { limits: level.limits }),
    ...(level?.inherit === false && { inherit: false }),
  };
}

/** Whether two values of one name mean the same. */
export function isSameValue(
  name: string,
  left: string | undefined,
  right: string | undefined,
): boolean {
  return (left ?? DEFAULTS.get(name)) === (right ?? DEFAULTS.get(name));
}

/** Whether a declared value is stored. An undeclared one is stored if its default is. */
export function isStored(
  name: string,
  stored: string | undefined,
  declared: string | undefined,
): boolean {
  if (name === ON_UNAVAILABLE && declared !== undefined) return stored === declared;
  return isSameValue(name, stored, declared);
}

/** The part that a value belongs to: `limits` for `limits.rpm`. */
export function getPart(name: string): string {
  const [part = name] = name.split(".", 1);
  return part;
}

/** The level of a resource or of an entity; undefined if there is none. */
export function toLevelValues(level: DeclaredLevel | undefined): Values | undefined {
  return level && toValues({ limits: limitTexts(level.limits), inherit: level.inherit });
}

/** The system level. */
export function toSystemValues(system: DeclaredSystem = {}): Values {
  const settings = SETTINGS.map(({ name, field }) => [name, system[field]] as const);
  const level = system.limits && {
    limits: limitTexts(system.limits),
    inherit: system.inherit ?? true,
  };
  return toValues({ ...level, ...Object.fromEntries(settings) });
}

/** The fields of a record that are present. */
export function toRecordValues(record: Omit<DeclaredEntity, "resources">): Values {
  const { name, parentId: parent, cascade, metadata } = record;
  return toValues({ name, parent, cascade, metadata });
}

/** Some parts of a level or a record. */
export function selectParts({ texts, parts }: Values, isWanted: (part: string) => boolean): Values {
  return {
    texts: new Map([...texts].filter(([name]) => isWanted(getPart(name)))),
    parts: new Set([...parts].filter(isWanted)),
  };
}

/**
 * The entities whose records are declared, parents before their children: those with any field of
 * a record, those without resources, and those that another one names as its parent.
 */
export function listDeclaredRecords(declared: DeclaredLimits): ReadonlyMap<string, DeclaredEntity> {
  const parents = new Set(Object.values(declared.entities).map(({ parentId }) => parentId));
  const records = new Map<string, DeclaredEntity>();
  for (const [id, entity] of Object.entries(declared.entities)) {
    const isDeclared =
      parents.has(id) ||
      Object.keys(entity.resources).length === 0 ||
      toRecordValues(entity).parts.size > 0;
    if (!isDeclared) continue;
    // Up to the first ancestor that is in the list. A chain may be too long for recursion.
    const chain = new Map<string, DeclaredEntity>();
    let next: string | undefined = id;
    while (next !== undefined && !records.has(next) && !chain.has(next)) {
      const found: DeclaredEntity | undefined = getOwn(declared.entities, next);
      if (found === undefined) break;
      chain.set(next, found);
      next = found.parentId;
    }
    for (const [ancestor, found] of [...chain].toReversed()) records.set(ancestor, found);
  }
  return records;
}

/** Names the level of a resource, or of an entity on one. */
export interface ResourceLevel {
  readonly entityId?: string;
  readonly resource: string;
}

/** Lists every level but the system's that a declaration names or that is managed, once. */
export function listLevels(
  declared: DeclaredLimits,
  state: ProvisionerState,
): readonly { readonly name: ResourceLevel; readonly managed: boolean }[] {
  const { managedResources, managedEntities } = state;
  const ids = new Set([...Object.keys(declared.entities), ...Object.keys(managedEntities)]);
  const levels = [
    { owner: {}, named: declared.resources, listed: managedResources },
    ...[...ids].map((entityId) => ({
      owner: { entityId },
      named: getOwn(declared.entities, entityId)?.resources ?? {},
      listed: getOwn(managedEntities, entityId) ?? [],
    })),
  ];
  return levels.flatMap(({ owner, named, listed }) => {
    const managed = new Set(listed);
    return [...new Set([...Object.keys(named), ...managed])].map((resource) => ({
      name: { ...owner, resource },
      managed: managed.has(resource),
    }));
  });
}

/** Returns what is declared or stored at one level. */
export function findLevel(
  limits: Pick<DeclaredLimits, "resources" | "entities"> | undefined,
  { entityId, resource }: ResourceLevel,
): DeclaredLevel | undefined {
  const holder = entityId === undefined ? limits : getOwn(limits?.entities, entityId);
  return getOwn(holder?.resources, resource);
}

/** Returns the value of a name that a user has chosen, such as `constructor`. */
export function getOwn<T>(
  values: Readonly<Record<string, T>> | undefined,
  name: string,
): T | undefined {
  return values !== undefined && Object.hasOwn(values, name) ? values[name] : undefined;
}

/** A part is one value, or an object of them. */
type Part = string | number | boolean | Readonly<Record<string, string>>;

function toValues(given: Readonly<Record<string, Part | undefined>>): Values {
  const texts = new Map<string, string>();
  const parts = new Set<string>();
  for (const [part, value] of Object.entries(given)) {
    if (value === undefined) continue;
    parts.add(part);
    if (typeof value !== "object") texts.set(part, String(value));
    else for (const [key, text] of Object.entries(value)) texts.set(`${part}.${key}`, text);
  }
  return { texts, parts };
}

/** Each limit in the text form of `Limit.format`, without its name. */
function limitTexts(limits: readonly Limit[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    limits.map((limit) => [limit.name, Limit.format(limit).slice(limit.name.length + 1)]),
  );
}
