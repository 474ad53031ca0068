import { Limit, type Repository } from "zae-limiter";
import type { Content, ModelRecord } from "./model.ts";
import type { SpecLevel, SpecLimits } from "./spec.ts";

/** Everything that a repository lists, in the words of the model. */
export async function storedContent(repository: Repository): Promise<Content> {
  const { limits, ...system } = await repository.getSystemDefaults();
  const levels = new Map<string, SpecLevel>();
  for (const resource of await repository.listResourcesWithDefaults())
    levels.set(`resource ${resource}`, levelOf(await repository.getLevel({ resource })));
  for (const resource of await repository.listResourcesWithEntityConfigs())
    for (const entityId of (await repository.listEntitiesWithCustomLimits(resource)).items) {
      const level = await repository.getLevel({ entityId, resource });
      levels.set(`entity ${entityId} on ${resource}`, levelOf(level));
    }
  const { items } = await repository.listEntities();
  return {
    systemLimits: limits.length === 0 ? undefined : textsOf(limits),
    settings: {
      on_unavailable: system.onUnavailable ?? "block",
      audit_retention_days: system.auditRetentionDays,
      usage_retention_days: system.usageRetentionDays,
    },
    levels,
    records: new Map(
      items.map(({ id, name, parentId: parent, cascade, metadata }): [string, ModelRecord] => [
        id,
        { name, parent, cascade, metadata },
      ]),
    ),
  };
}

/** The limits of a repository for the texts of the model. */
export function limitsOf(texts: SpecLimits): readonly Limit[] {
  return Object.entries(texts).map(([name, text]) => Limit.parse(`${name}:${text}`));
}

function levelOf(
  level: { readonly limits: readonly Limit[]; readonly inherit: boolean } | undefined,
): SpecLevel {
  if (level === undefined) throw new Error("a level is listed and not stored");
  return { limits: textsOf(level.limits), inherit: level.inherit };
}

function textsOf(limits: readonly Limit[]): SpecLimits {
  return Object.fromEntries(
    limits.map((limit) => [limit.name, Limit.format(limit).slice(limit.name.length + 1)]),
  );
}
