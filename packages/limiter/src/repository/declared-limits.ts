import { checkOnUnavailable, type OnUnavailable } from "../core/bucket/policy.ts";
import { entityCascade, entityMetadata, entityName } from "../core/entity.ts";
import { ValidationError } from "../core/errors.ts";
import { configResource, entityId, resourceName } from "../core/identifiers.ts";
import type { Limit } from "../core/limit.ts";
import { checkSupportedLimits } from "../core/supported-limits.ts";
import { checkOptions, optionNames } from "../core/options.ts";
import { checkRetentionDays } from "../core/usage.ts";

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
  /** With limits only: whether limits of other names in code apply too. @default true */
  readonly inherit?: boolean;
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
  /** Whether calls by the entity also take from its parent. */
  readonly cascade?: boolean;
  /** A display name. */
  readonly name?: string;
  /** All of its metadata. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** Its own limits, by resource; `_default_` for all resources where it has none. */
  readonly resources: Readonly<Record<string, DeclaredLevel>>;
}

/**
 * Returns a checked copy of declared limits, without what is undefined, or throws. `field` is what
 * errors name them by.
 */
export function checkDeclaredLimits(value: unknown, field: string): DeclaredLimits {
  checkObject(value, field);
  checkOptions(value, LIMITS_NAMES, field);
  const { system, resources, entities } = value as Partial<DeclaredLimits>;
  return {
    ...(system !== undefined && { system: checkSystem(system, `${field}.system`) }),
    resources: checkEach(resources, `${field}.resources`, resourceName, checkLevel),
    entities: checkEach(entities, `${field}.entities`, entityId, checkEntity),
  };
}

/** Throws if the value is not a plain object. */
export function checkObject(value: unknown, field: string): asserts value is object {
  if (typeof value !== "object" || value === null || Symbol.iterator in value)
    throw new ValidationError(field, value, "must be an object");
}

const LIMITS_NAMES = optionNames<DeclaredLimits>({ system: true, resources: true, entities: true });
const LEVEL_NAMES = optionNames<DeclaredLevel>({ limits: true, inherit: true });
const SYSTEM_NAMES = optionNames<DeclaredSystem>({
  limits: true,
  inherit: true,
  onUnavailable: true,
  auditRetentionDays: true,
  usageRetentionDays: true,
});
const ENTITY_NAMES = optionNames<DeclaredEntity>({
  parentId: true,
  cascade: true,
  name: true,
  metadata: true,
  resources: true,
});

function checkSystem(value: DeclaredSystem, field: string): DeclaredSystem {
  checkObject(value, field);
  checkOptions(value, SYSTEM_NAMES, field);
  const { limits, inherit, onUnavailable } = value;
  const days = (name: "auditRetentionDays" | "usageRetentionDays"): number | undefined =>
    checkRetentionDays(value[name], `${field}.${name}`);
  const [auditRetentionDays, usageRetentionDays] = [
    days("auditRetentionDays"),
    days("usageRetentionDays"),
  ];
  return {
    ...(limits !== undefined && { limits: checkSupportedLimits(limits, `${field}.limits`) }),
    ...(inherit !== undefined && { inherit: checkInherit(inherit, field) }),
    ...(onUnavailable !== undefined && { onUnavailable: checkOnUnavailable(onUnavailable) }),
    ...(auditRetentionDays !== undefined && { auditRetentionDays }),
    ...(usageRetentionDays !== undefined && { usageRetentionDays }),
  };
}

function checkLevel(value: DeclaredLevel, field: string): DeclaredLevel {
  checkObject(value, field);
  checkOptions(value, LEVEL_NAMES, field);
  const inherit = checkInherit(value.inherit, field);
  return { limits: checkSupportedLimits(value.limits, `${field}.limits`), inherit };
}

function checkInherit(value: unknown, field: string): boolean {
  if (typeof value === "boolean") return value;
  throw new ValidationError(`${field}.inherit`, value, "must be true or false");
}

function checkEntity(value: DeclaredEntity, field: string): DeclaredEntity {
  checkObject(value, field);
  checkOptions(value, ENTITY_NAMES, field);
  const { parentId, cascade, name, metadata, resources } = value;
  return {
    ...(parentId !== undefined && { parentId: entityId(parentId, `${field}.parentId`) }),
    ...(cascade !== undefined && { cascade: entityCascade(cascade) }),
    ...(name !== undefined && { name: entityName(name) }),
    ...(metadata !== undefined && { metadata: entityMetadata(metadata) }),
    resources: checkEach(resources, `${field}.resources`, configResource, checkLevel),
  };
}

/** Checks the names and values of an object. Names such as `constructor` are names like others. */
function checkEach<Value>(
  value: Readonly<Record<string, Value>> | undefined,
  field: string,
  checkName: (name: unknown, field: string) => string,
  checkValue: (value: Value, field: string) => Value,
): Readonly<Record<string, Value>> {
  checkObject(value, field);
  return Object.fromEntries(
    Object.entries(value).map(([name, entry]) => [
      checkName(name, field),
      checkValue(entry, `${field}.${name}`),
    ]),
  );
}
