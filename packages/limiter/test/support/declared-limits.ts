import type * as fc from "fast-check";
import type { DeclaredLimits, Repository } from "zae-limiter";
import { writtenManifest } from "./written-manifests.ts";

/** What manifests declare, with parents that are declared too. */
export function declaredLimits(): fc.Arbitrary<DeclaredLimits> {
  return writtenManifest().map(({ declared }) => withParents(declared));
}

/** The parent is the entity before it, so there are parents of parents, and no circles. */
function withParents(declared: DeclaredLimits): DeclaredLimits {
  const ids = Object.keys(declared.entities);
  const entities = Object.entries(declared.entities).map(([id, { parentId, ...entity }]) => {
    const parent = parentId === undefined ? undefined : ids[ids.indexOf(id) - 1];
    return [id, { ...entity, ...(parent !== undefined && { parentId: parent }) }] as const;
  });
  return { ...declared, entities: Object.fromEntries(entities) };
}

/** Stores by hand what a declaration says. */
export async function store(repository: Repository, declared: DeclaredLimits): Promise<void> {
  const { limits, ...settings } = declared.system ?? {};
  if (declared.system !== undefined) await repository.setSystemDefaults(limits, settings);
  for (const [resource, level] of Object.entries(declared.resources))
    await repository.setResourceDefaults(resource, level.limits, { inherit: level.inherit });
  const entities = Object.entries(declared.entities);
  const parents = new Set(entities.map(([, { parentId }]) => parentId));
  for (const [id, { resources, ...record }] of entities) {
    const isDeclared = Object.keys(record).length > 0 || Object.keys(resources).length === 0;
    if (isDeclared || parents.has(id)) await repository.createEntity(id, record);
    for (const [resource, level] of Object.entries(resources))
      await repository.setLimits(id, level.limits, { resource, inherit: level.inherit });
  }
}
