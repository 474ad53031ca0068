import { resourceAuditId, SYSTEM_AUDIT_ID, type AuditEvent } from "../../core/audit.ts";
import { InfrastructureError, ValidationError } from "../../core/errors.ts";
import { entityId as checkEntityId, resourceName } from "../../core/identifiers.ts";
import {
  ownUsage,
  toSnapshot,
  summarize,
  USAGE_WINDOWS,
  type UsageRow,
  type UsageSnapshot,
  type UsageSummary,
} from "../../core/usage.ts";
import type { Page, Paging, UsagePage, UsageQuery } from "../repository.ts";
import type { UsageRange } from "../store.ts";
import { wholeMs } from "../system-clock.ts";
import type { Context } from "./context.ts";
import { readAllPages, parsePageRequest, toPage } from "./paging.ts";

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
