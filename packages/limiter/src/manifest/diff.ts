import type {
  DeclaredLevel,
  DeclaredLimits,
  DeclaredSystem,
} from "../repository/declared-limits.ts";
import type { Entity } from "../core/entity.ts";
import type { ProvisionerState } from "../repository/models.ts";

/** What becomes of a level, or of the record of an entity. */
export type PlanAction = "create" | "update" | "delete" | "unchanged";

/** What is stored of everything that a manifest, or an earlier one, names. */
export interface StoredLimits {
  /** The system level; `limits` absent if none are stored. */
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

/** What becomes of one level, or of one record. */
export interface PlanEntry {
  readonly action: PlanAction;
  /** Which kind of thing it is; "record" is the record of an entity. */
  readonly level: "system" | "resource" | "entity" | "record";
  /** Of the levels "entity" and "record". */
  readonly entityId?: string;
  /** Of the levels "resource" and "entity"; `_default_` for all resources of an entity. */
  readonly resource?: string;
  /** Every value that changes; for "unchanged" and "delete" of nothing, empty. */
  readonly values: readonly ValueChange[];
  /** Whether an earlier apply has named it. What was never named is adopted by being named. */
  readonly managed: boolean;
  /** Whether a value was changed by hand since the last apply. */
  readonly drift: boolean;
}

/** One value before and after. */
export interface ValueChange {
  /** The name of a limit, or `inherit`, `on_unavailable`, `parent`, `cascade`, `metadata.team`. */
  readonly name: string;
  /** As stored; undefined if nothing is. Limits as in `Limit.format`, without their name. */
  readonly before: string | undefined;
  /** As declared; undefined if it goes. */
  readonly after: string | undefined;
  /** Whether `before` is not what was last applied. */
  readonly drift: boolean;
}

/**
 * What must change so that the store says what a manifest declares. Pure: it compares content, and
 * an equal list in another order is no change.
 * @example const entries = diffLimits(manifest.declared, stored, await repository.getProvisionerState());
 */
export function diffLimits(
  declared: DeclaredLimits,
  stored: StoredLimits,
  state: ProvisionerState,
): readonly PlanEntry[] {
  throw new Error(`not built yet: ${JSON.stringify([declared, stored, state])}`);
}
