import { resourceAuditId, SYSTEM_AUDIT_ID, type AuditEvent } from "../../core/audit.ts";
import { MILLI } from "../../core/amounts.ts";
import {
  balanceMilli,
  ceilingMilli,
  getConsumedMilli,
  getStoredMilli,
} from "../../core/bucket/bucket.ts";
import { InfrastructureError, ValidationError } from "../../core/errors.ts";
import {
  entityId as checkEntityId,
  limitName as checkLimitName,
  resourceName,
} from "../../core/identifiers.ts";
import {
  ownUsage,
  toSnapshot,
  summarize,
  USAGE_WINDOWS,
  type UsageRow,
  type UsageSnapshot,
  type UsageSummary,
} from "../../core/usage.ts";
import type {
  BucketsOptions,
  BucketState,
  CapacityOptions,
  EntityCapacity,
  Page,
  Paging,
  ResourceCapacity,
  UsagePage,
  UsageQuery,
} from "../repository.ts";
import type { StoredBucket, UsageRange } from "../store.ts";
import { wholeMs } from "../system-clock.ts";
import type { Context } from "./context.ts";
import { readAllPages, parsePageRequest, toPage } from "./paging.ts";

/** Reads the buckets of an entity, one entry for each visible limit. */
export async function getBuckets(
  context: Context,
  entityId: string,
  options: BucketsOptions,
): Promise<readonly BucketState[]> {
  const resource = options.resource === undefined ? undefined : resourceName(options.resource);
  const stored = await context.data.buckets.ofEntity(checkEntityId(entityId), resource);
  const timeMs = wholeMs(context.clock);
  return stored.flatMap((bucket) => bucketStates(bucket, timeMs));
}

/** Adds up what all entities have left of one limit; `parentsOnly` reads each entity once more. */
export async function getResourceCapacity(
  context: Context,
  resource: string,
  limitName: string,
  options: CapacityOptions,
): Promise<ResourceCapacity> {
  checkLimitName(limitName, "limitName");
  const timeMs = wholeMs(context.clock);
  const sums = new Map<string, { capacityMilli: number; availableMilli: number }>();
  for (const { entityId, bucket } of await context.data.buckets.ofResource(
    resourceName(resource),
  )) {
    const index = bucket.limits.findIndex(
      ({ limit, hidden }) => limit.name === limitName && !hidden,
    );
    if (index < 0) continue;
    const sum = sums.get(entityId) ?? { capacityMilli: 0, availableMilli: 0 };
    sum.capacityMilli += ceilingMilli(bucket.limits[index]!);
    sum.availableMilli += balanceMilli(bucket, index, timeMs);
    sums.set(entityId, sum);
  }
  const roots = options.parentsOnly ? await findRoots(context, [...sums.keys()]) : undefined;
  const entities = [...sums]
    .filter(([entityId]) => roots === undefined || roots.has(entityId))
    .map(([entityId, sum]) =>
      buildCapacity(entityId, sum.capacityMilli / MILLI, Math.floor(sum.availableMilli / MILLI)),
    )
    .sort((left, right) => (left.entityId < right.entityId ? -1 : 1));
  const parents = await context.data.entities.findCascadeTargets(
    entities.map(({ entityId }) => entityId),
  );
  const total = addCapacities(entities);
  const cascaded = addCapacities(entities.filter(({ entityId }) => parents.has(entityId)));
  return {
    resource,
    limitName,
    totalCapacity: total.capacity,
    totalAvailable: total.available,
    utilizationPct: utilization(total.capacity, total.available),
    cascadedCapacity: cascaded.capacity,
    cascadedAvailable: cascaded.available,
    entities,
  };
}

/** Reads one page of usage windows. */
export async function getUsageSnapshots(
  context: Context,
  query: UsageQuery & Paging,
): Promise<UsagePage> {
  const range = usageRange(query);
  // The cursor does not depend on start and end, because a caller may compute them from the current
  // time for every page. The keys hold the time of their window anyway.
  const listed = `usage of ${range.entityId} on ${range.resource}, ${range.window}`;
  const wanted = parsePageRequest(listed, query);
  // Read before the rows: what is counted between the two must not make a window look complete.
  const countedUntilMs = await readCountedUntil(context);
  const page = await context.data.usage.rows(range, wanted);
  return {
    ...toPage(listed, page, buildToSnapshot(context, range, countedUntilMs)),
    ...completeness(context, range, countedUntilMs),
  };
}

/** Reads all windows of a query and adds them up. */
export async function getUsageSummary(context: Context, query: UsageQuery): Promise<UsageSummary> {
  const range = usageRange(query);
  const countedUntilMs = await readCountedUntil(context);
  const rows = await readAllPages(async (page) => context.data.usage.rows(range, page));
  return {
    ...summarize(rows.map(buildToSnapshot(context, range, countedUntilMs))),
    ...completeness(context, range, countedUntilMs),
  };
}

/**
 * Returns a function that converts the rows of a query: over several entities, each call counts
 * once.
 */
function buildToSnapshot(
  { clock }: Context,
  { entityId }: UsageRange,
  countedUntilMs: number,
): (row: UsageRow) => UsageSnapshot {
  const untilMs = Math.min(wholeMs(clock), countedUntilMs);
  return (row) => toSnapshot(entityId === undefined ? ownUsage(row) : row, untilMs);
}

function completeness(
  { data }: Context,
  { window }: UsageRange,
  countedUntilMs: number,
): Pick<UsagePage, "completeSince" | "countedUntil"> {
  const sinceMs = data.usage.completeSinceMs?.(window);
  return {
    ...(sinceMs !== undefined && { completeSince: new Date(sinceMs) }),
    ...(countedUntilMs !== Infinity && { countedUntil: new Date(countedUntilMs) }),
  };
}

/** Reads one page of audit events. */
export async function getAuditEvents(
  context: Context,
  entityId: string,
  paging: Paging,
): Promise<Page<AuditEvent>> {
  const id = auditId(entityId);
  const query = `audit of ${id}`;
  return toPage(
    query,
    await context.data.audit.events(id, parsePageRequest(query, paging)),
    (event) => event,
  );
}

/** Checks an entity id, or a pseudo entity under which changes of other levels are filed. */
function auditId(value: string): string {
  if (value === SYSTEM_AUDIT_ID) return value;
  const prefix = resourceAuditId("");
  const isResource = typeof value === "string" && value.startsWith(prefix);
  return isResource
    ? resourceAuditId(resourceName(value.slice(prefix.length), "entityId"))
    : checkEntityId(value);
}

function bucketStates(
  { entityId, resource, shard, shardCount, bucket }: StoredBucket,
  timeMs: number,
): readonly BucketState[] {
  return bucket.limits.flatMap((limit, index) => {
    if (limit.hidden) return [];
    return {
      entityId,
      resource,
      limitName: limit.limit.name,
      shard,
      shardCount,
      tokensMilli: getStoredMilli(bucket, index),
      lastRefillMs: bucket.refilledAtMs,
      capacityMilli: ceilingMilli(limit),
      refillAmountMilli: limit.refillAmountMilli,
      refillPeriodMs: limit.refillPeriodMs,
      totalConsumedMilli: getConsumedMilli(bucket, index),
      available: Math.floor(balanceMilli(bucket, index, timeMs) / MILLI),
    };
  });
}

async function findRoots(
  context: Context,
  entityIds: readonly string[],
): Promise<ReadonlySet<string>> {
  const entities = await Promise.all(
    entityIds.map(async (entityId) => context.data.entities.get(entityId)),
  );
  return new Set(entityIds.filter((_, index) => entities[index]?.parentId === undefined));
}

function addCapacities(entities: readonly EntityCapacity[]): {
  readonly capacity: number;
  readonly available: number;
} {
  return {
    capacity: entities.reduce((sum, { capacity }) => sum + capacity, 0),
    available: entities.reduce((sum, { available }) => sum + available, 0),
  };
}

function buildCapacity(entityId: string, capacity: number, available: number): EntityCapacity {
  return { entityId, capacity, available, utilizationPct: utilization(capacity, available) };
}

function utilization(capacity: number, available: number): number {
  return capacity === 0 ? 0 : ((capacity - available) / capacity) * 100;
}

/**
 * Returns the end of the counted usage. Throws if none was ever counted: a zero would look like a
 * count.
 */
async function readCountedUntil({ data }: Context): Promise<number> {
  const timeMs = await data.usage.getCountedUntilMs();
  if (timeMs !== undefined) return timeMs;
  throw new InfrastructureError(
    "ERR_LIMITER_USAGE_NOT_RECORDED",
    "This repository does not record usage. On DynamoDB an aggregator counts it: run " +
      "`zae-limiter aggregate`, or deploy the Lambda function. Elsewhere, open the repository " +
      "without recordUsage: false.",
  );
}

function usageRange({ entityId, resource, window = "hourly", start, end }: UsageQuery): UsageRange {
  if (entityId === undefined && resource === undefined)
    throw new ValidationError("entityId", undefined, "name an entityId, a resource, or both");
  if (!USAGE_WINDOWS.includes(window))
    throw new ValidationError("window", window, `must be one of ${USAGE_WINDOWS.join(", ")}`);
  return {
    entityId: entityId === undefined ? undefined : checkEntityId(entityId),
    resource: resource === undefined ? undefined : resourceName(resource),
    window,
    startMs: toTimeMs(start, "start"),
    endMs: toTimeMs(end, "end"),
  };
}

function toTimeMs(date: Date | undefined, field: string): number | undefined {
  if (date === undefined) return undefined;
  const timeMs = date instanceof Date ? date.getTime() : Number.NaN;
  if (Number.isNaN(timeMs)) throw new ValidationError(field, date, "must be a valid Date");
  return timeMs;
}
