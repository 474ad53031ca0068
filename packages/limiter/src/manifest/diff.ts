import type { Entity } from "../core/entity.ts";
import type {
  DeclaredEntity,
  DeclaredLevel,
  DeclaredLimits,
  DeclaredSystem,
} from "../repository/declared-limits.ts";
import type { ProvisionerState } from "../repository/models.ts";
import {
  listDeclaredRecords,
  isStored,
  findLevel,
  toLevelValues,
  listLevels,
  getOwn,
  getPart,
  selectParts,
  toRecordValues,
  isSameValue,
  toSystemValues,
  type Values,
} from "./values.ts";

/** The action on a level, or on the record of an entity. */
export type PlanAction = "create" | "update" | "delete" | "unchanged";

/** What is stored of everything that a manifest, or an earlier one, names. */
export interface StoredLimits {
  /** The system level; what is left out is not stored, or has its default value. */
  readonly system: DeclaredSystem;
  /** The defaults of resources that have some, by name. */
  readonly resources: Readonly<Record<string, DeclaredLevel>>;
  /** Entities that have a record or limits, by id. */
  readonly entities: Readonly<Record<string, StoredEntity>>;
}

/** What is stored of an entity. */
export interface StoredEntity {
  /** Its record; undefined if it has none. */
  readonly record: Entity | undefined;
  /** Its own limits, by resource. */
  readonly resources: Readonly<Record<string, DeclaredLevel>>;
}

/** The change of one level or one record. */
export interface PlanEntry {
  /** The action on it. */
  readonly action: PlanAction;
  /** The kind of level; "record" is the record of an entity. */
  readonly level: "system" | "resource" | "entity" | "record";
  /** Present for the levels "entity" and "record". */
  readonly entityId?: string;
  /** Present for "resource" and "entity"; `_default_` for all resources of an entity. */
  readonly resource?: string;
  /** Every value that changes; empty if none does. */
  readonly values: readonly ValueChange[];
  /** Whether an earlier apply named it. Otherwise this apply adopts it. */
  readonly managed: boolean;
  /** Whether a value that changes was changed by hand since the last apply. */
  readonly drift: boolean;
}

/** One value before and after. */
export interface ValueChange {
  /** As in the manifest: `limits.rpm`, `inherit`, `on_unavailable`, `parent`, `metadata.team`. */
  readonly name: string;
  /** As stored; undefined if nothing is. Limits as in `Limit.format`, without their name. */
  readonly before: string | undefined;
  /** As declared; undefined if it is deleted, or goes back to its default. */
  readonly after: string | undefined;
  /** Whether `before` is not what was last applied. */
  readonly drift: boolean;
}

/** The subject of an entry. */
type Subject = Pick<PlanEntry, "level" | "entityId" | "resource" | "managed">;

/** One level or record, as it is in each place. */
interface Versions {
  /** As stored, without what is neither managed nor declared. */
  readonly before: Values | undefined;
  /** As declared. */
  readonly after: Values | undefined;
  /** As last applied. */
  readonly applied: Values | undefined;
  /** As an interrupted apply declares it; also undefined if there was none. */
  readonly pending: Values | undefined;
}

interface Comparison {
  readonly declared: DeclaredLimits;
  readonly stored: StoredLimits;
  readonly state: ProvisionerState;
}

/**
 * Returns what must change so that the store matches a manifest. Pure: it compares content, and an
 * equal list in another order is not a change. The entries are in the order in which an apply
 * goes through them: records, parents first, then the levels; what is deleted comes last.
 * @example
 * const entries = diffLimits(manifest.declared, stored, await repository.getProvisionerState());
 */
export function diffLimits(
  declared: DeclaredLimits,
  stored: StoredLimits,
  state: ProvisionerState,
): readonly PlanEntry[] {
  const comparison = { declared, stored, state };
  const entries = [
    ...recordEntries(comparison),
    ...systemEntry(comparison),
    ...levelEntries(comparison),
  ];
  return [
    ...entries.filter(({ action }) => action !== "delete"),
    ...entries.filter(({ action }) => action === "delete"),
  ];
}

function recordEntries({ declared, stored, state }: Comparison): readonly PlanEntry[] {
  const applied = listDeclaredRecords(state.applied ?? NOTHING);
  const pending = listDeclaredRecords(state.pending?.declared ?? NOTHING);
  return [...listDeclaredRecords(declared)].flatMap(([entityId, entity]) => {
    const record = getOwn(stored.entities, entityId)?.record;
    // A record that is created without a name gets its id as its name.
    const named = record === undefined ? { name: entityId } : {};
    const toEntityValues = (fields: DeclaredEntity | undefined): Values | undefined =>
      fields && toRecordValues({ ...named, ...fields });
    const after = toRecordValues({ ...named, ...entity });
    const managed = applied.has(entityId) || pending.has(entityId);
    return buildEntry({ level: "record", entityId, managed }, state, {
      before: record && selectParts(toStoredValues(record), (part) => after.parts.has(part)),
      after,
      applied: toEntityValues(applied.get(entityId)),
      pending: toEntityValues(pending.get(entityId)),
    });
  });
}

function toStoredValues({ parentId, ...fields }: Entity): Values {
  return toRecordValues({ ...fields, ...(parentId !== undefined && { parentId }) });
}

/** The level and each setting are owned separately: one can be declared without the others. */
function systemEntry({ declared, stored, state }: Comparison): readonly PlanEntry[] {
  const after = toSystemValues(declared.system);
  const applied = toSystemValues(state.applied?.system);
  const pending = toSystemValues(state.pending?.declared.system);
  const isManaged = (part: string): boolean =>
    LEVEL_PARTS.has(part)
      ? state.managedSystem
      : applied.parts.has(part) || pending.parts.has(part);
  const before = selectParts(
    toSystemValues(stored.system),
    (part) => isManaged(part) || after.parts.has(part),
  );
  const managed = state.managedSystem || applied.parts.size > 0 || pending.parts.size > 0;
  return buildEntry({ level: "system", managed }, state, {
    before: before.parts.size === 0 ? undefined : before,
    after: after.parts.size === 0 ? undefined : after,
    applied,
    pending,
  });
}

const LEVEL_PARTS: ReadonlySet<string> = new Set(["limits", "inherit"]);

function levelEntries({ declared, stored, state }: Comparison): readonly PlanEntry[] {
  return listLevels(declared, state).flatMap(({ name, managed }) => {
    const level = name.entityId === undefined ? "resource" : "entity";
    return buildEntry({ level, ...name, managed }, state, {
      before: toLevelValues(findLevel(stored, name)),
      after: toLevelValues(findLevel(declared, name)),
      applied: toLevelValues(findLevel(state.applied, name)),
      pending: toLevelValues(findLevel(state.pending?.declared, name)),
    });
  });
}

/** One entry, or none if nothing is declared and nothing changes. */
function buildEntry(
  subject: Subject,
  state: ProvisionerState,
  { before, after, applied, pending }: Versions,
): readonly PlanEntry[] {
  const isDrift = (name: string, value: string | undefined): boolean => {
    // What was never applied, or has no known values, cannot have drifted.
    if (state.appliedHash === undefined || applied?.parts.has(getPart(name)) !== true) return false;
    if (isSameValue(name, value, applied.texts.get(name))) return false;
    // An interrupted apply may have come this far, even one that had to delete the level.
    return state.pending === undefined || !isSameValue(name, value, pending?.texts.get(name));
  };
  const names = new Set([...(after?.texts.keys() ?? []), ...(before?.texts.keys() ?? [])]);
  const values = [...names].flatMap((name) => {
    const [old, wanted] = [before?.texts.get(name), after?.texts.get(name)];
    if (isStored(name, old, wanted)) return [];
    return { name, before: old, after: wanted, drift: isDrift(name, old) };
  });
  if (values.length === 0 && after === undefined) return [];
  const drift = values.some((value) => value.drift);
  return [{ action: chooseAction({ before, after }, values), ...subject, values, drift }];
}

function chooseAction(
  { before, after }: Pick<Versions, "before" | "after">,
  values: readonly ValueChange[],
): PlanAction {
  if (values.length === 0) return "unchanged";
  if (before === undefined) return "create";
  return after === undefined ? "delete" : "update";
}

const NOTHING: DeclaredLimits = { resources: {}, entities: {} };
