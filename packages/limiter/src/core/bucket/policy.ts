import { bucketLimits, type BucketLimit } from "./bucket.ts";
import { ValidationError } from "../errors.ts";
import { DEFAULT_RESOURCE } from "../identifiers.ts";
import type { Limit } from "../limit.ts";

/** What to do when the store cannot be reached. */
export type OnUnavailable = "allow" | "block";

/** The level that the limits of a call came from. */
export type ConfigSource = "entity" | "entity_default" | "resource" | "system" | "override";

/** The limits that apply to an entity and a resource, prepared for deciding. */
export interface Policy {
  /** The level that the limits came from. */
  readonly source: ConfigSource;
  /** The limits, in the order in which they were set. */
  readonly limits: readonly Limit[];
  /** The same limits, as buckets count them. */
  readonly bucketLimits: readonly BucketLimit[];
  /** The names of the limits. */
  readonly names: ReadonlySet<string>;
}

/** Names one place where limits are stored. */
export type ConfigKey =
  | { readonly level: "system" }
  | { readonly level: "resource"; readonly resource: string }
  | { readonly level: "entity"; readonly entityId: string; readonly resource: string };

/** The level that a key belongs to. */
export function sourceOf(key: ConfigKey): ConfigSource {
  if (key.level !== "entity") return key.level;
  return key.resource === DEFAULT_RESOURCE ? "entity_default" : "entity";
}

/** Makes a policy from checked limits. */
export function policyOf(limits: readonly Limit[], source: ConfigSource): Policy {
  return {
    source,
    limits,
    bucketLimits: bucketLimits(limits),
    names: new Set(limits.map((limit) => limit.name)),
  };
}

/** The policy for the limits stored under a key, or `undefined` if there are none. */
export function policyAt(key: ConfigKey, limits: readonly Limit[] | undefined): Policy | undefined {
  return limits === undefined ? undefined : policyOf(limits, sourceOf(key));
}

/**
 * The policy of the strongest level that has limits, given the levels strongest first. Levels are
 * not merged limit by limit.
 */
export function strongest(levels: readonly (Policy | undefined)[]): Policy | undefined {
  return levels.find((policy) => policy !== undefined);
}

/** Returns a valid choice of what to do when the store cannot be reached, or throws. */
export function checkOnUnavailable(value: unknown): OnUnavailable {
  if (value !== "allow" && value !== "block")
    throw new ValidationError("onUnavailable", value, "must be 'allow' or 'block'");
  return value;
}
