import { Limit, type Repository } from "zae-limiter";
import { toSystemLimits, type Content, type ModelRecord } from "./model.ts";
import type { SpecLevel, SpecLimits } from "./spec.ts";

/** Reads everything that a repository lists, in the form of the model. */
export async function storedContent(repository: Repository): Promise<Content> {
  const system = await repository.getSystemDefaults();
  const level = await repository.getLevel({});
  const resources = await repository.listResourcesWithDefaults();
  const configured = await Promise.all(
    (await repository.listResourcesWithEntityConfigs()).map(async (resource) => {
      const { items: ids } = await repository.listEntitiesWithCustomLimits(resource);
      return ids.map((entityId) => ({ entityId, resource }));
    }),
  );
  const names = [...resources.map((resource) => ({ resource })), ...configured.flat()];
  const levels = await Promise.all(
    names.map(async (name): Promise<[string, SpecLevel]> => {
      const of = "entityId" in name ? `entity ${name.entityId} on` : "resource";
      return [`${of} ${name.resource}`, getLevel(await repository.getLevel(name))];
    }),
  );
  const { items } = await repository.listEntities();
  return {
    systemLimits: level && toSystemLimits(toTexts(level.limits), level.inherit),
    settings: {
      on_unavailable: system.onUnavailable ?? "none",
      audit_retention_days: system.auditRetentionDays,
      usage_retention_days: system.usageRetentionDays,
    },
    levels: new Map(levels),
    records: new Map(
      items.map(({ id, name, parentId: parent, cascade, metadata }): [string, ModelRecord] => [
        id,
        { name, parent, cascade, metadata },
      ]),
    ),
  };
}

/** The limits of a repository for the texts of the model. */
export function buildLimits(texts: SpecLimits): readonly Limit[] {
  return Object.entries(texts).map(([name, text]) => Limit.parse(`${name}:${text}`));
}

function getLevel(
  level: { readonly limits: readonly Limit[]; readonly inherit: boolean } | undefined,
): SpecLevel {
  if (level === undefined) throw new Error("a level is listed and not stored");
  return { limits: toTexts(level.limits), inherit: level.inherit };
}

function toTexts(limits: readonly Limit[]): SpecLimits {
  return Object.fromEntries(
    limits.map((limit) => [limit.name, Limit.format(limit).slice(limit.name.length + 1)]),
  );
}
