import type { OnUnavailable } from "../core/bucket/policy.ts";
import type { Limit } from "../core/limit.ts";

/** Limits as a reviewed file declares them for one namespace: what it names, and nothing else. */
export interface DeclaredLimits {
  /** The system level; absent if nothing is declared there. */
  readonly system?: DeclaredSystem;
  /** The defaults of resources, by name. */
  readonly resources: Readonly<Record<string, DeclaredLevel>>;
  /** Entities, by id. */
  readonly entities: Readonly<Record<string, DeclaredEntity>>;
}

/** One level: its whole list, and whether it inherits. */
export interface DeclaredLevel {
  /** At least one limit. */
  readonly limits: readonly Limit[];
  /** Whether limits of other names still come from the levels below. */
  readonly inherit: boolean;
}

/** The system level. What is left out is not declared, and stays as it is stored. */
export interface DeclaredSystem {
  /** The limits of all entities on all resources. */
  readonly limits?: readonly Limit[];
  /** What calls do when the store cannot be reached. */
  readonly onUnavailable?: OnUnavailable;
  /** How many days audit events are kept. */
  readonly auditRetentionDays?: number;
  /** How many days usage is kept. */
  readonly usageRetentionDays?: number;
}

/** An entity. Fields of its record that are left out are not declared. */
export interface DeclaredEntity {
  /** The entity that it belongs to. Cannot be changed once the entity exists. */
  readonly parentId?: string;
  /** Whether calls of the entity also take from its parent. */
  readonly cascade?: boolean;
  /** For people to read. */
  readonly name?: string;
  /** All of its metadata. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** Its own limits, by resource; `_default_` for all resources where it has none. */
  readonly resources: Readonly<Record<string, DeclaredLevel>>;
}
