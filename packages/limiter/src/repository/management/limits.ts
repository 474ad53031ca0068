import { resourceAuditId, SYSTEM_AUDIT_ID } from "../../core/audit.ts";
import { ValidationError } from "../../core/errors.ts";
import { configResource, entityId as checkEntityId, resourceName } from "../../core/identifiers.ts";
import type { Limit } from "../../core/limit.ts";
import { checkSupportedLimits } from "../../core/supported-limits.ts";
import {
  checkOnUnavailable,
  resolvePolicy,
  toSource,
  sourceOfLimit,
  type ConfigKey,
  type Policy,
  type ResolvedLimits,
  type StoredLevel,
} from "../../core/bucket/policy.ts";
import { checkRetentionDays, DEFAULT_RETENTION_DAYS } from "../../core/usage.ts";
import { checkObject } from "../declared-limits.ts";
import type {
  By,
  DeleteSystemDefaultsOptions,
  LevelName,
  LimitsOptions,
  Page,
  Paging,
  SetDefaultsOptions,
  SetLimitsOptions,
  SystemDefaults,
  SystemDefaultsOptions,
} from "../repository.ts";
import { NO_CONFIG, NO_SETTINGS, type StoredConfig, type SystemSettings } from "../store.ts";
import { buildAuditEvent, type Context } from "./context.ts";
import { buildGuard } from "./guard.ts";
import { checkMany, parsePageRequest, toPage } from "./paging.ts";

/** Stores limits of an entity. */
export async function setLimits(
  context: Context,
  entityId: string,
  limits: readonly Limit[],
  options: SetLimitsOptions,
): Promise<void> {
  await put(context, entityKey(entityId, options.resource), buildLevel(limits, options), options);
}

/** Reads the limits stored for an entity. */
export async function getLimits(
  context: Context,
  entityId: string,
  options: LimitsOptions,
): Promise<readonly Limit[]> {
  return limitsAt(context, entityKey(entityId, options.resource));
}

/** Reads what one level stores. */
export async function getLevel(
  context: Context,
  level: LevelName,
): Promise<StoredLevel | undefined> {
  const [stored] = await readLevels(context, [toConfigKey(level, "level")]);
  return stored;
}

/** Reads what many levels store, in the order of their names. */
export async function batchGetLevels(
  context: Context,
  levels: readonly LevelName[],
): Promise<readonly (StoredLevel | undefined)[]> {
  const keys = checkMany(levels, "levels").map((level, index) =>
    toConfigKey(level, `levels[${index}]`),
  );
  return readLevels(context, keys);
}

async function readLevels(
  { data }: Context,
  keys: readonly ConfigKey[],
): Promise<readonly (StoredLevel | undefined)[]> {
  const configs = await data.limits.read(keys);
  return keys.map((key, index) => {
    const { limits, inherit = false } = configs[index] ?? NO_CONFIG;
    if (limits === undefined) return undefined;
    return { source: toSource(key) as StoredLevel["source"], limits, inherit };
  });
}

function toConfigKey(level: LevelName, field: string): ConfigKey {
  checkObject(level, field);
  const { entityId, resource } = level;
  if (entityId !== undefined) return entityKey(entityId, resource);
  return resource === undefined ? { level: "system" } : resourceKey(resource);
}

/** Deletes limits of an entity. */
export async function deleteLimits(
  context: Context,
  entityId: string,
  options: LimitsOptions & By,
): Promise<void> {
  await remove(context, entityKey(entityId, options.resource), options);
}

/** Stores the limits of a resource. */
export async function setResourceDefaults(
  context: Context,
  resource: string,
  limits: readonly Limit[],
  options: SetDefaultsOptions,
): Promise<void> {
  await put(context, resourceKey(resource), buildLevel(limits, options), options);
}

/** Reads the limits stored for a resource. */
export async function getResourceDefaults(
  context: Context,
  resource: string,
): Promise<readonly Limit[]> {
  return limitsAt(context, resourceKey(resource));
}

/** Deletes the limits of a resource. */
export async function deleteResourceDefaults(
  context: Context,
  resource: string,
  options: By,
): Promise<void> {
  await remove(context, resourceKey(resource), options);
}

/** Stores the limits and settings of the system level. */
export async function setSystemDefaults(
  context: Context,
  limits: readonly Limit[] | undefined,
  options: SystemDefaultsOptions,
): Promise<void> {
  const settings = checkSettings(options);
  const hasSettings = Object.values(settings).some((value) => value !== undefined);
  const { inherit } = options;
  if (limits === undefined && inherit !== undefined)
    throw new ValidationError("inherit", inherit, "belongs to a list of limits: pass them too");
  const level = limits === undefined && hasSettings ? NO_CONFIG : buildLevel(limits!, options);
  await put(context, { level: "system" }, { ...level, settings }, options);
}

/** Stores the settings of the system level that are given, and leaves the rest as it is. */
export async function setSettings(
  context: Context,
  options: Omit<SystemDefaultsOptions, keyof SetDefaultsOptions>,
): Promise<void> {
  const settings = checkSettings(options);
  const given = Object.entries(settings).filter(([, value]) => value !== undefined);
  if (given.length === 0) return;
  // Programs repeat this with every start, or even every request, so only a change is written.
  const stored = await getSystemDefaults(context);
  const isStored = given.every(([name, value]) => stored[name as keyof SystemSettings] === value);
  if (!isStored) await put(context, { level: "system" }, { limits: undefined, settings }, {});
  else if (settings.onUnavailable !== undefined)
    context.policies.lastOnUnavailable = settings.onUnavailable;
}

function checkSettings(
  options: Omit<SystemDefaultsOptions, keyof SetDefaultsOptions>,
): SystemSettings {
  const { onUnavailable, auditRetentionDays, usageRetentionDays } = options;
  return {
    onUnavailable: onUnavailable === undefined ? undefined : checkOnUnavailable(onUnavailable),
    auditRetentionDays: checkRetentionDays(auditRetentionDays, "auditRetentionDays"),
    usageRetentionDays: checkRetentionDays(usageRetentionDays, "usageRetentionDays"),
  };
}

/** Reads the limits and settings of the system level. */
export async function getSystemDefaults(context: Context): Promise<SystemDefaults> {
  const [config] = await context.data.limits.read([{ level: "system" }]);
  const settings = config?.settings ?? NO_SETTINGS;
  return {
    limits: config?.limits ?? [],
    onUnavailable: settings.onUnavailable,
    auditRetentionDays: settings.auditRetentionDays ?? DEFAULT_RETENTION_DAYS,
    usageRetentionDays: settings.usageRetentionDays ?? DEFAULT_RETENTION_DAYS,
  };
}

/** Deletes the limits of the system level, and its settings unless they are to be kept. */
export async function deleteSystemDefaults(
  context: Context,
  options: DeleteSystemDefaultsOptions,
): Promise<void> {
  const { keepSettings = false } = options;
  checkBoolean(keepSettings, "keepSettings");
  await remove(context, { level: "system" }, options, keepSettings);
  if (!keepSettings) context.policies.lastOnUnavailable = undefined;
}

/** Reads one page of the entities that have limits on a resource. */
export async function listEntitiesWithCustomLimits(
  context: Context,
  resource: string,
  paging: Paging,
): Promise<Page<string>> {
  const checked = configResource(resource);
  const query = `limits of ${checked}`;
  return toPage(
    query,
    await context.data.limits.entitiesWithLimits(checked, parsePageRequest(query, paging)),
    (entityId) => entityId,
  );
}

/** Finds the limits that apply, and the level they come from. */
export async function resolveLimits(
  context: Context,
  entityId: string,
  resource: string,
): Promise<ResolvedLimits | undefined> {
  const levels = await context.policies.levels(checkEntityId(entityId), resourceName(resource));
  const policy = resolvePolicy(levels);
  if (policy === undefined) return undefined;
  const sources = policy.limits.map(({ name }) => [name, sourceOfLimit(policy, name)] as const);
  return {
    limits: policy.limits,
    onUnavailable: context.policies.lastOnUnavailable,
    source: policy.source,
    sources: Object.fromEntries(sources),
    levels: levels.flatMap((level) => (level === undefined ? [] : toStoredLevel(level))),
  };
}

function toStoredLevel({ source, limits, inherits }: Policy): StoredLevel {
  return { source: source as StoredLevel["source"], limits, inherit: inherits };
}

/** What a level stores: `inherit` belongs to the list that it comes with. */
function buildLevel(
  limits: readonly Limit[],
  { inherit = true }: { readonly inherit?: boolean },
): StoredConfig {
  checkBoolean(inherit, "inherit");
  return { limits: checkSupportedLimits(limits), inherit };
}

function checkBoolean(value: unknown, field: string): void {
  if (typeof value !== "boolean") throw new ValidationError(field, value, "must be true or false");
}

function entityKey(entityId: string, resource: string | undefined): ConfigKey {
  return { level: "entity", entityId: checkEntityId(entityId), resource: configResource(resource) };
}

function resourceKey(resource: string): ConfigKey {
  return { level: "resource", resource: resourceName(resource) };
}

async function limitsAt(context: Context, key: ConfigKey): Promise<readonly Limit[]> {
  const [config] = await context.data.limits.read([key]);
  return config?.limits ?? [];
}

async function put(
  context: Context,
  key: ConfigKey,
  config: StoredConfig,
  options: By,
): Promise<void> {
  const { principal } = options;
  const onUnavailable = config.settings?.onUnavailable;
  const details = {
    ...(config.limits !== undefined && { limits: config.limits, inherit: config.inherit }),
    ...(onUnavailable !== undefined && { onUnavailable }),
  };
  await context.data.limits.put(
    key,
    config,
    buildAuditEvent(context, { ...toSubject(key), action: "limits_set", principal, details }),
    buildGuard(options),
  );
  context.policies.evict(key);
  if (onUnavailable !== undefined) context.policies.lastOnUnavailable = onUnavailable;
}

async function remove(
  context: Context,
  key: ConfigKey,
  options: By,
  keepSettings = false,
): Promise<void> {
  const { principal } = options;
  await context.data.limits.delete(
    key,
    buildAuditEvent(context, { ...toSubject(key), action: "limits_deleted", principal }),
    { ...buildGuard(options), keepSettings },
  );
  context.policies.evict(key);
}

/** What an audit event is about. */
function toSubject(key: ConfigKey): { readonly entityId: string; readonly resource?: string } {
  if (key.level === "system") return { entityId: SYSTEM_AUDIT_ID };
  return {
    entityId: key.level === "resource" ? resourceAuditId(key.resource) : key.entityId,
    resource: key.resource,
  };
}
