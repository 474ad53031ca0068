import type { Setting, Spec, SpecEntity, SpecLevel, SpecLimits } from "./spec.ts";

/** A record as the model has it. */
export interface ModelRecord {
  readonly name: string;
  readonly parent: string | undefined;
  readonly cascade: boolean;
  readonly metadata: Readonly<Record<string, string>>;
}

/** Everything that is stored. Levels are called `resource gpt-4` or `entity key-1 on gpt-4`. */
export interface Content {
  readonly systemLimits: SpecLimits | undefined;
  readonly settings: Readonly<Record<Setting, string | number>>;
  readonly levels: ReadonlyMap<string, SpecLevel>;
  readonly records: ReadonlyMap<string, ModelRecord>;
}

/** What belongs to manifests: the names of levels and settings, and `limits` of the system. */
export type Owned = ReadonlySet<string>;

export const NOTHING_STORED: Content = {
  systemLimits: undefined,
  settings: { on_unavailable: "none", audit_retention_days: 90, usage_retention_days: 90 },
  levels: new Map(),
  records: new Map(),
};

/** What a manifest names. */
export function namedBy(spec: Spec): Owned {
  const { inherit: _, ...system } = spec.system;
  return new Set([...Object.keys(system), ...listLevels(spec).keys()]);
}

/**
 * What must be stored after an apply. It knows two rules and no diff: what a manifest names is as
 * it says, and what belongs to manifests and is not named is not there.
 */
export function apply(spec: Spec, before: Content, owned: Owned): Content {
  const levels = new Map([...before.levels].filter(([name]) => !owned.has(name)));
  for (const [name, level] of listLevels(spec)) levels.set(name, level);
  const { limits, inherit, ...declared } = spec.system;
  const settings = { ...before.settings };
  for (const name of Object.keys(settings) as Setting[]) {
    if (owned.has(name)) settings[name] = backToDefault(settings[name]);
    settings[name] = declared[name] ?? settings[name];
  }
  return {
    systemLimits:
      (limits && toSystemLimits(limits, inherit)) ??
      (owned.has("limits") ? undefined : before.systemLimits),
    settings,
    levels,
    records: new Map([...before.records, ...listRecords(spec, before.records)]),
  };
}

/** A retention of 90 looks like none that is stored; "block" does not look like "none". */
function backToDefault(value: string | number): string | number {
  if (typeof value === "number") return 90;
  return value === "none" ? "none" : "block";
}

/** The levels that a manifest declares, by the names of the model. */
export function listLevels(spec: Spec): ReadonlyMap<string, SpecLevel> {
  return new Map([
    ...Object.entries(spec.resources).map(([name, level]) => [`resource ${name}`, level] as const),
    ...Object.entries(spec.entities).flatMap(([id, { resources }]) =>
      Object.entries(resources).map(([name, level]) => [`entity ${id} on ${name}`, level] as const),
    ),
  ]);
}

function listRecords(
  spec: Spec,
  before: ReadonlyMap<string, ModelRecord>,
): readonly (readonly [string, ModelRecord])[] {
  const parents = new Set(Object.values(spec.entities).map(({ parent }) => parent));
  return Object.entries(spec.entities).flatMap(([id, entity]) => {
    const { resources, ...fields } = entity;
    const isDeclared =
      Object.keys(fields).length > 0 || Object.keys(resources).length === 0 || parents.has(id);
    return isDeclared ? [[id, buildRecord(id, entity, before.get(id))] as const] : [];
  });
}

function buildRecord(id: string, entity: SpecEntity, old: ModelRecord | undefined): ModelRecord {
  return {
    name: entity.name ?? old?.name ?? id,
    parent: old === undefined ? entity.parent : old.parent,
    cascade: entity.cascade ?? old?.cascade ?? false,
    metadata: entity.metadata ?? old?.metadata ?? {},
  };
}

/** No limit has the name under which a list says that it replaces the levels below. */
export function toSystemLimits(limits: SpecLimits, inherit = true): SpecLimits {
  return inherit ? limits : { ...limits, "inherit: false": "" };
}
