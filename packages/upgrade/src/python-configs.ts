import type { RateLimit } from "zae-limiter";
import type { ConfigKey } from "zae-limiter/backend";
import {
  configItem,
  getNumber,
  parseSettings,
  type AttributeMap,
} from "zae-limiter/dynamodb-internals";
import type { Change } from "./change.ts";
import { findUnsupported, findUnsupportedLevel } from "./python-limits.ts";

/** Where a level keeps attributes that this library does not use, so that none is lost. */
const KEPT_ATTRIBUTE = "python";

/**
 * Whether limits may still be as the Python zae-limiter wrote them: not all of its writers leave a
 * mark, but ours list the names of limits, and an upgrade what it could not use.
 */
export function isPythonConfig(item: AttributeMap): boolean {
  return item["limit_names"] === undefined && item[KEPT_ATTRIBUTE] === undefined;
}

/** The limits of one level. */
export function configChange(
  key: { readonly namespaceId: string } & ConfigKey,
  item: AttributeMap,
): Change {
  const limits: RateLimit[] = [];
  const dropped: string[] = [];
  const unused: Record<string, AttributeMap[string]> = {};
  const keep = (isUnused: (attribute: string) => boolean): void => {
    for (const [attribute, value] of Object.entries(item))
      if (isUnused(attribute)) unused[attribute] = value;
  };
  for (const { name, prefix } of limitsIn(item)) {
    const problem = findUnsupported(item, prefix);
    if (problem !== undefined) {
      dropped.push(`limit ${name} of ${levelText(key)}: ${problem.reason}`);
      keep((attribute) => attribute.startsWith(prefix) || attribute === "sched_tz");
    }
    if (problem?.isKept !== false) limits.push(readLimit(item, name, prefix));
  }
  const level = findUnsupportedLevel(item);
  if (level !== undefined) {
    dropped.push(`${levelText(key)}: ${level}`);
    keep((attribute) => attribute === "disabled" || attribute === "cascade");
  }
  const isSystem = key.level === "system";
  const settings = isSystem ? parseSettings(item) : undefined;
  const result: AttributeMap = {
    ...configItem(key.namespaceId, key, {
      limits: limits.length === 0 ? undefined : limits,
      ...(settings !== undefined && { settings }),
    }),
    // A change of settings requires the version that was read.
    ...(isSystem && item["config_version"] && { config_version: item["config_version"] }),
    ...(Object.keys(unused).length > 0 && { [KEPT_ATTRIBUTE]: { M: unused } }),
  };
  return { kind: "limits", seen: [item], result: [result], dropped };
}

function limitsIn(
  item: AttributeMap,
): readonly { readonly name: string; readonly prefix: string }[] {
  return Object.keys(item)
    .flatMap((attribute) => {
      const match = /^([lw]_)(.+)_cp$/.exec(attribute);
      return match === null ? [] : [{ name: match[2]!, prefix: `${match[1]}${match[2]}_` }];
    })
    .sort((left, right) => (left.name < right.name ? -1 : 1));
}

function readLimit(item: AttributeMap, name: string, prefix: string): RateLimit {
  const number = (field: string): number => getNumber(item[prefix + field]) ?? 0;
  return {
    name,
    capacity: number("cp"),
    refillAmount: number("ra"),
    refillPeriodSeconds: number("rp"),
  };
}

function levelText(key: ConfigKey): string {
  if (key.level === "system") return "the system";
  return key.level === "resource"
    ? `resource ${key.resource}`
    : `entity ${key.entityId} for ${key.resource}`;
}
