import type { SupportedLimit } from "../../../core/supported-limits.ts";
import type { ConfigKey, OnUnavailable } from "../../../core/bucket/policy.ts";
import type { StoredConfig, SystemSettings } from "../../store.ts";
import {
  marshalItem,
  getNumber,
  getString,
  type AttributeMap,
  type Value,
} from "../transport/attribute-values.ts";
import { configKey, entityConfigIndexKeys, namespaceIndexKeys } from "./keys.ts";
import { buildLimitAttributes, configAttribute, readLimit } from "./config-limit.ts";
import { assertNothingOfPython } from "./limit-kind.ts";

/** Stands where names of limits stand, and is none. */
const NO_LIMIT = "*";

const INHERIT_KIND = "inherit";

/**
 * Says that a level inherits (ADR 003). It cannot be mistaken for a limit, because no name of one
 * begins with `*`.
 */
const INHERIT_MARK = {
  [configAttribute(NO_LIMIT, "cp")]: 0,
  [configAttribute(NO_LIMIT, "kd")]: INHERIT_KIND,
};

/** The item of what one level stores. */
export function configItem(
  namespaceId: string,
  key: ConfigKey,
  { limits, inherit, settings }: StoredConfig,
): AttributeMap {
  const primary = configKey(namespaceId, key);
  const index =
    key.level === "entity"
      ? entityConfigIndexKeys(namespaceId, key.entityId, key.resource)
      : namespaceIndexKeys(namespaceId, primary);
  return marshalItem({
    ...primary,
    ...index,
    ...(key.level === "entity" && { entity_id: key.entityId }),
    ...(key.level !== "system" && { resource: key.resource }),
    ...(limits !== undefined && limitAttributes(limits)),
    ...(inherit === true && INHERIT_MARK),
    on_unavailable: settings?.onUnavailable,
    audit_retention_days: settings?.auditRetentionDays,
    usage_retention_days: settings?.usageRetentionDays,
  });
}

/** What the item of a level says; nothing is stored where there is no item. */
export function parseConfig(key: ConfigKey, item: AttributeMap | undefined): StoredConfig {
  if (item === undefined) return { limits: undefined };
  assertNothingOfPython(item);
  const inherit = getString(item[configAttribute(NO_LIMIT, "kd")]) === INHERIT_KIND;
  const limits = parseLimits(item, inherit);
  const stored = {
    limits: limits.length === 0 ? undefined : limits,
    ...(inherit && { inherit }),
  };
  if (key.level !== "system") return stored;
  return { ...stored, settings: parseSettings(item) };
}

/** The settings in the item of the system level, also where its limits cannot be read. */
export function parseSettings(item: AttributeMap): SystemSettings {
  return {
    onUnavailable: getString(item["on_unavailable"]) as OnUnavailable | undefined,
    auditRetentionDays: getNumber(item["audit_retention_days"]),
    usageRetentionDays: getNumber(item["usage_retention_days"]),
  };
}

function limitAttributes(limits: readonly SupportedLimit[]): {
  readonly [attribute: string]: Value | undefined;
} {
  const attributes = limits.map((limit) => buildLimitAttributes(limit));
  // Attributes have no order, but limits are listed in the order in which they were declared.
  return { ...Object.assign({}, ...attributes), limit_names: limits.map(({ name }) => name) };
}

function parseLimits(item: AttributeMap, inherit: boolean): readonly SupportedLimit[] {
  const names = Object.keys(item)
    .flatMap((attribute) => /^l_(.+)_cp$/.exec(attribute)?.[1] ?? [])
    .filter((name) => !(inherit && name === NO_LIMIT));
  const order = readOrder(item);
  names.sort(
    (left, right) =>
      (order.get(left) ?? order.size) - (order.get(right) ?? order.size) || (left < right ? -1 : 1),
  );
  return names.map((name) => readLimit(item, name));
}

function readOrder(item: AttributeMap): ReadonlyMap<string, number> {
  const listed = item["limit_names"];
  const names =
    listed !== undefined && "L" in listed ? listed.L.map((name) => getString(name) ?? "") : [];
  return new Map(names.map((name, index) => [name, index]));
}
