/*
 * How the release before levels could inherit reads what is stored, copied from its sources
 * (commit 14bab04) and not to be changed: config-item.ts, limit-kind.ts and bucket-item.ts of
 * DynamoDB, limits.ts and limit-texts.ts of SQLite, limit-text.ts of the core. It shows what that
 * release makes of what this one writes, while both run on one store.
 */
import { IncompatibleSchemaError, Limit, ValidationError } from "zae-limiter";
import type { ConfigKey } from "../../src/core/bucket/policy.ts";
import type { StoredConfig } from "../../src/repository/store.ts";
import {
  numberOf,
  stringOf,
  type AttributeMap,
} from "../../src/repository/dynamodb/transport/attribute-values.ts";
import type { Row } from "../../src/repository/sqlite/database/connection.ts";

/** What the item of a level says, on DynamoDB. */
export function configOfItem(item: AttributeMap | undefined): StoredConfig {
  if (item === undefined) return { limits: undefined };
  const limits = limitsOf(item);
  return { limits: limits.length === 0 ? undefined : limits };
}

/** The limits and balances on the item of a bucket, on DynamoDB. */
export function bucketOfItem(item: AttributeMap): readonly OldBalance[] {
  const names = Object.keys(item)
    .filter((name) => name.startsWith("b_") && name.endsWith("_cp"))
    .map((name) => name.slice("b_".length, -"_cp".length))
    .sort();
  return names.map((name) => {
    assertSupportedKind(item, name, `b_${name}_kd`);
    return {
      name,
      capacity: number(item, `b_${name}_cp`) / 1000,
      hidden: item[`b_${name}_hd`] !== undefined,
      tokensMilli: number(item, `b_${name}_tk`),
      consumedMilli: number(item, `b_${name}_tc`),
    };
  });
}

/** One limit on a bucket. */
export interface OldBalance {
  readonly name: string;
  readonly capacity: number;
  readonly hidden: boolean;
  readonly tokensMilli: number;
  readonly consumedMilli: number;
}

/** How a level's row is read, on SQLite. */
export const READ_LEVEL =
  "SELECT limits, settings FROM limits WHERE namespace_id = ? AND resource = ? AND entity_id = ?";

/** What the row of a level says, on SQLite. */
export function configOfRow(row: Row | undefined): StoredConfig {
  const text = row?.["limits"];
  return { limits: typeof text === "string" ? parseLimits(text) : undefined };
}

/** The resource and entity that the row of a level has. */
export function placeOf(key: ConfigKey): readonly [string, string] {
  if (key.level === "system") return ["", ""];
  return [key.resource, key.level === "entity" ? key.entityId : ""];
}

function parseLimits(text: string): readonly Limit[] {
  return text.split(" ").map((part) => Limit.custom(parseLimit(part)));
}

const GRAMMAR =
  /^(?<name>[^:]+):(?<rate>\d+)(?:\/(?<count>\d*)(?<unit>sec|min|hour|day))?(?::(?<burst>\d+))?$/;

const SECONDS: ReadonlyMap<string, number> = new Map([
  ["day", 86_400],
  ["hour", 3600],
  ["min", 60],
  ["sec", 1],
]);

function parseLimit(text: string): Limit {
  const groups = typeof text === "string" ? GRAMMAR.exec(text.trim())?.groups : undefined;
  if (groups === undefined)
    throw new ValidationError(
      "limit",
      text,
      "must look like name:rate[/period][:burst], for example rpm:100 or tpm:10000/min:15000 (periods: sec, min, hour, day, or 5min)",
    );
  const rate = Number(groups["rate"]);
  const count = groups["count"] ? Number(groups["count"]) : 1;
  const unit = SECONDS.get(groups["unit"] ?? "min") ?? 60;
  return {
    name: groups["name"] ?? "",
    capacity: groups["burst"] === undefined ? rate : Number(groups["burst"]),
    refillAmount: rate,
    refillPeriodSeconds: count * unit,
  };
}

function limitsOf(item: AttributeMap): readonly Limit[] {
  const names = Object.keys(item).flatMap((attribute) => /^l_(.+)_cp$/.exec(attribute)?.[1] ?? []);
  const order = orderOf(item);
  names.sort(
    (left, right) =>
      (order.get(left) ?? order.size) - (order.get(right) ?? order.size) || (left < right ? -1 : 1),
  );
  return names.map((name) => limitOf(item, name));
}

function orderOf(item: AttributeMap): ReadonlyMap<string, number> {
  const listed = item["limit_names"];
  const names =
    listed !== undefined && "L" in listed ? listed.L.map((name) => stringOf(name) ?? "") : [];
  return new Map(names.map((name, index) => [name, index]));
}

function limitOf(item: AttributeMap, name: string): Limit {
  assertSupportedKind(item, name, `l_${name}_kd`);
  return {
    name,
    capacity: number(item, `l_${name}_cp`),
    refillAmount: number(item, `l_${name}_ra`),
    refillPeriodSeconds: number(item, `l_${name}_rp`),
  };
}

function assertSupportedKind(item: AttributeMap, limitName: string, kindAttribute: string): void {
  const kind = stringOf(item[kindAttribute]);
  if (kind === undefined || kind === "rate") return;
  throw new IncompatibleSchemaError(
    `Limit ${limitName} is of the kind '${kind}', which this version does not support. ` +
      "Upgrade zae-limiter.",
    { clientVersion: "0.0.0", schemaVersion: stringOf(item["schema_version"]) ?? "unknown" },
  );
}

function number(item: AttributeMap, name: string): number {
  return numberOf(item[name]) ?? 0;
}
