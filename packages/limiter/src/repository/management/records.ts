import { ApplyConflictError, ValidationError } from "../../core/errors.ts";
import { configResource, entityId, principal, resourceName } from "../../core/identifiers.ts";
import { checkDeclaredLimits, checkObject } from "../declared-limits.ts";
import type {
  NewVersionRecord,
  PendingApply,
  ProvisionerState,
  VersionRecord,
} from "../repository.ts";
import { wholeMs } from "../system-clock.ts";
import type { Context } from "./context.ts";
import { isRevision } from "./guard.ts";

/** The state before anything was stored. */
export function noProvisionerState(): ProvisionerState {
  return {
    managedSystem: false,
    managedResources: [],
    managedEntities: {},
    lastApplied: undefined,
    appliedHash: undefined,
    revision: 0,
  };
}

/** Stores the state of declared limits, unless another one was stored since it was read. */
export async function putProvisionerState(
  context: Context,
  state: ProvisionerState,
): Promise<void> {
  const checked = checkProvisionerState(state);
  const stored = await context.data.provisioner.put(
    { ...checked, revision: checked.revision + 1 },
    checked.revision,
  );
  if (!stored) throw new ApplyConflictError(state.revision);
}

/** Checks and stores the versions that write the data. */
export async function setVersionRecord(context: Context, record: NewVersionRecord): Promise<void> {
  checkObject(record, "record");
  const version: VersionRecord = {
    schemaVersion: versionText(record.schemaVersion, "schemaVersion"),
    lambdaVersion:
      record.lambdaVersion === undefined
        ? undefined
        : versionText(record.lambdaVersion, "lambdaVersion"),
    clientMinVersion:
      record.clientMinVersion === undefined
        ? "0.0.0"
        : versionText(record.clientMinVersion, "clientMinVersion"),
    updatedAt: new Date(wholeMs(context.clock)),
    updatedBy: optionalText(record.updatedBy, "updatedBy"),
  };
  await context.store.versions.put(version);
}

/**
 * Returns a checked copy of a state, or throws. What is new since the first version is left out if
 * it is undefined, so that every store returns the same.
 */
function checkProvisionerState(state: ProvisionerState): ProvisionerState {
  checkObject(state, "state");
  const { managedSystem, managedResources, managedEntities, lastApplied, revision } = state;
  const { applied, pending, owner } = state;
  if (!isRevision(revision))
    throw new ValidationError("revision", revision, "must be the revision that was read");
  if (typeof managedSystem !== "boolean")
    throw new ValidationError("managedSystem", managedSystem, "must be true or false");
  checkObject(managedEntities, "managedEntities");
  const entities = Object.entries(managedEntities).map(([id, resources]) => [
    entityId(id, "managedEntities"),
    list(resources, `managedEntities.${id}`).map((resource) => configResource(resource)),
  ]);
  return {
    managedSystem,
    managedResources: list(managedResources, "managedResources").map((resource) =>
      resourceName(resource, "managedResources"),
    ),
    managedEntities: Object.fromEntries(entities) as ProvisionerState["managedEntities"],
    lastApplied: lastApplied === undefined ? undefined : checkDate(lastApplied, "lastApplied"),
    appliedHash:
      state.appliedHash === undefined ? undefined : text(state.appliedHash, "appliedHash", 0),
    revision,
    ...(applied !== undefined && { applied: checkDeclaredLimits(applied, "applied") }),
    ...(pending !== undefined && { pending: checkPending(pending) }),
    ...(owner !== undefined && { owner: text(owner, "owner") }),
  };
}

function checkPending(pending: PendingApply): PendingApply {
  checkObject(pending, "pending");
  return {
    hash: text(pending.hash, "pending.hash"),
    startedAt: checkDate(pending.startedAt, "pending.startedAt"),
    ...(pending.principal !== undefined && { principal: principal(pending.principal) }),
    declared: checkDeclaredLimits(pending.declared, "pending.declared"),
  };
}

function checkDate(value: unknown, field: string): Date {
  if (value instanceof Date && !Number.isNaN(value.getTime())) return value;
  throw new ValidationError(field, value, "must be a valid Date");
}

function list(value: unknown, field: string): readonly unknown[] {
  if (!Array.isArray(value))
    throw new ValidationError(field, value, "must be an array of resource names");
  return value as readonly unknown[];
}

function optionalText(value: unknown, field: string): string | undefined {
  if (value === undefined || typeof value === "string") return value;
  throw new ValidationError(field, value, "must be a string");
}

/** Longest text of a state: ample for a hash, and the most that CloudFormation allows for an id. */
const MAX_TEXT_LENGTH = 1024;

function text(value: unknown, field: string, least = 1): string {
  if (typeof value === "string" && value.length >= least && value.length <= MAX_TEXT_LENGTH)
    return value;
  throw new ValidationError(
    field,
    value,
    `must be a text of ${least} to ${MAX_TEXT_LENGTH} characters`,
  );
}

function versionText(value: unknown, field: string): string {
  if (typeof value === "string" && /^\d+\.\d+\.\d+(?:[-+.][0-9A-Za-z.+-]+)?$/.test(value))
    return value;
  throw new ValidationError(field, value, "must be a version such as 1.2.3");
}
