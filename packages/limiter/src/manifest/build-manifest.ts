import { DEFAULT_RESOURCE } from "../core/identifiers.ts";
import { Limit } from "../core/limit.ts";
import type {
  DeclaredEntity,
  DeclaredLevel,
  DeclaredLimits,
  DeclaredSystem,
} from "../repository/declared-limits.ts";

/**
 * A declaration in the format of a manifest, as plain values to be written as YAML or JSON. The
 * same declaration gives the same text: resources and entities are sorted, limits keep their order.
 * @example JSON.stringify(buildManifest("default", declared));
 */
export function buildManifest(namespace: string, declared: DeclaredLimits): object {
  const { system = {}, resources, entities } = declared;
  return {
    namespace,
    ...section("system", systemSection(system)),
    ...section("resources", sortMap(resources, levelSection)),
    ...section("entities", sortMap(entities, entitySection)),
  };
}

function systemSection(system: DeclaredSystem): object {
  const { onUnavailable, auditRetentionDays, usageRetentionDays, limits, inherit = true } = system;
  return {
    ...(onUnavailable !== undefined && { on_unavailable: onUnavailable }),
    ...(auditRetentionDays !== undefined && { audit_retention_days: auditRetentionDays }),
    ...(usageRetentionDays !== undefined && { usage_retention_days: usageRetentionDays }),
    ...(limits !== undefined && levelSection({ limits, inherit })),
  };
}

function entitySection({ name, parentId, cascade, metadata, resources }: DeclaredEntity): object {
  return {
    ...(name !== undefined && { name }),
    ...(parentId !== undefined && { parent: parentId }),
    ...(cascade !== undefined && { cascade }),
    ...(metadata !== undefined && { metadata: sortMap(metadata, (value) => value) }),
    ...section("resources", sortMap(resources, levelSection)),
  };
}

function levelSection({ limits, inherit }: DeclaredLevel): object {
  return { inherit, limits: limitsSection(limits) };
}

/** Every limit in the short grammar, which `Limit.parse` reads back exactly. */
function limitsSection(limits: readonly Limit[]): object {
  return Object.fromEntries(
    limits.map((limit) => [limit.name, Limit.format(limit).slice(limit.name.length + 1)]),
  );
}

/** A key and its value, or nothing if the value is empty. */
function section(key: string, value: object): object {
  return Object.keys(value).length === 0 ? {} : { [key]: value };
}

/** Sorted by character code, like every listing; `_default_` first. */
function sortMap<Value>(
  map: Readonly<Record<string, Value>>,
  write: (value: Value) => unknown,
): object {
  const entries = Object.entries(map).toSorted(([left], [right]) => order(left, right));
  return Object.fromEntries(entries.map(([key, value]) => [key, write(value)]));
}

function order(left: string, right: string): number {
  if (left === DEFAULT_RESOURCE) return -1;
  return right === DEFAULT_RESOURCE || left > right ? 1 : -1;
}
