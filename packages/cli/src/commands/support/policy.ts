import type { Repository, StoredLevel } from "zae-limiter";
import type { LimitInForce } from "../../output/limits.ts";

/** The resource under which limits for all resources of an entity are stored. */
export const ALL_RESOURCES = "_default_";

/**
 * Names that are never configured. Their limits are those of every entity, or every resource,
 * without limits of its own.
 */
const ANY_ENTITY = "zae-limiter:any-entity";
const ANY_RESOURCE = "zae-limiter:any-resource";

/** Whose limits a verb is about: an entity's, or those of all entities without their own. */
export interface Scope {
  readonly entityId?: string;
  /** A resource, or `_default_` for all. */
  readonly resource: string;
}

/** The limits in force in a scope, and the level of each. Empty when no level sets any. */
export async function policyInForce(
  repository: Repository,
  { entityId = ANY_ENTITY, resource }: Scope,
): Promise<readonly LimitInForce[]> {
  const resolved = await repository.resolveLimits(entityId, resourceToAsk(resource));
  if (resolved === undefined) return [];
  return resolved.limits.map((limit) => ({ limit, source: resolved.sources[limit.name]! }));
}

/** A limit that would no longer apply, and the resource whose level sets it. */
export interface HiddenLimit extends LimitInForce {
  readonly resource: string;
}

/**
 * The limits of weaker levels that would no longer apply if a list with these names were stored
 * without inheriting. A list for all resources of an entity hides the defaults of each resource.
 */
export async function findHiddenLimits(
  repository: Repository,
  { entityId, resource }: Scope,
  names: readonly string[],
): Promise<readonly HiddenLimit[]> {
  const isForAll = resource === ALL_RESOURCES;
  const resources = isForAll
    ? [ANY_RESOURCE, ...(await repository.listResourcesWithDefaults())]
    : [resource];
  const source = entityId === undefined ? "resource" : isForAll ? "entity_default" : "entity";
  const hidden = new Map<string, HiddenLimit>();
  for (const name of resources) {
    const resolved = await repository.resolveLimits(entityId ?? ANY_ENTITY, name);
    for (const lost of findLost(resolved?.levels ?? [], { source, names })) {
      const key = `${lost.limit.name} ${lost.source === "system" ? "" : name}`;
      hidden.set(key, { ...lost, resource: name });
    }
  }
  return [...hidden.values()];
}

/** Strongest first. */
const ORDER: readonly StoredLevel["source"][] = ["entity", "entity_default", "resource", "system"];

/** What would apply if the new list inherited, and would not if it did not. */
function findLost(
  levels: readonly StoredLevel[],
  { source, names }: { readonly source: StoredLevel["source"]; readonly names: readonly string[] },
): readonly LimitInForce[] {
  const rank = ORDER.indexOf(source);
  const stronger = levels.filter((level) => ORDER.indexOf(level.source) < rank);
  const weaker = levels.filter((level) => ORDER.indexOf(level.source) > rank);
  if (stronger.some(({ inherit }) => !inherit)) return [];
  const set = new Set(names.concat(stronger.flatMap(({ limits }) => limits.map(getName))));
  const lost: LimitInForce[] = [];
  for (const level of weaker) {
    for (const limit of level.limits) {
      if (set.has(limit.name)) continue;
      set.add(limit.name);
      lost.push({ limit, source: level.source });
    }
    if (!level.inherit) break;
  }
  return lost;
}

function getName({ name }: { readonly name: string }): string {
  return name;
}

function resourceToAsk(resource: string): string {
  return resource === ALL_RESOURCES ? ANY_RESOURCE : resource;
}
