import type { LimitStatus } from "../../core/bucket/decision.ts";
import { nearestBoundary, nextBoundary } from "../../core/calendar.ts";
import { isRate, type Calendar, type QuotaLimit, type RateLimit } from "../../core/limit-kinds.ts";
import type { SupportedLimit } from "../../core/supported-limits.ts";
import { integer } from "./structured-fields.ts";

/** A limit as the headers show it. */
export interface ShownLimit {
  /** The name of the policy. */
  readonly name: string;
  /** The limit itself. */
  readonly limit: SupportedLimit;
  /** Whole tokens, rounded down; negative in debt. 0 for a parent whose balance is hidden. */
  readonly available: number;
  /** Whether the limit refused the call. */
  readonly exceeded: boolean;
  /** 0 if the call fits, `Infinity` if it never can. */
  readonly waitSeconds: number;
  /** The end of the open window of a quota or session, and how long it is until then. */
  readonly resetsAt: Date | undefined;
  readonly resetsInSeconds: number | undefined;
}

/**
 * What the headers show, in the order of the decision. A parent is shown only if it is asked for or
 * if it refused the call. In the second case its balance, which other tenants take from too, is
 * shown as 0.
 */
export function selectShownLimits(
  statuses: readonly LimitStatus[],
  parents: boolean,
): readonly ShownLimit[] {
  const shown: ShownLimit[] = [];
  const own = statuses[0]?.entityId;
  for (const status of statuses) {
    const isHidden = status.entityId !== own && !parents;
    if (isHidden && !status.exceeded) continue;
    shown.push({
      name: policyName(status, statuses[0]!),
      limit: status.limit,
      available: isHidden ? 0 : status.available,
      exceeded: status.exceeded,
      waitSeconds: status.retryAfterSeconds,
      resetsAt: status.resetsAt,
      resetsInSeconds: status.resetsInSeconds,
    });
  }
  return shown;
}

/**
 * What a limit is called in headers and problems: `rpm`; `parent-rpm` if it is the parent's;
 * `search-rpm` if it is that of a further resource; `parent-search-rpm` if it is both. `first` is
 * the first status of the call, which is of its own entity and resource.
 */
export function policyName(status: LimitStatus, first: LimitStatus): string {
  const { limitName } = status;
  const named = status.resource === first.resource ? limitName : `${status.resource}-${limitName}`;
  return status.entityId === first.entityId ? named : `parent-${named}`;
}

/**
 * The one limit that stands for all where headers have room for one: of those that refused, the one
 * with the longest wait; if none did, the one with the smallest part left.
 */
export function tightest(shown: readonly ShownLimit[]): ShownLimit | undefined {
  let found: ShownLimit | undefined;
  for (const limit of shown) if (found === undefined || isTighter(limit, found)) found = limit;
  return found;
}

function isTighter(left: ShownLimit, right: ShownLimit): boolean {
  if (left.exceeded !== right.exceeded) return left.exceeded;
  if (left.exceeded) return left.waitSeconds > right.waitSeconds;
  return left.available / left.limit.capacity < right.available / right.limit.capacity;
}

/**
 * Whole seconds, rounded up, until the call fits a limit that refused it, or until any other limit
 * holds one more token; undefined if that never happens.
 *
 * The time of a whole token is never too short, whatever fraction is there already. A status does
 * not include that fraction: it rounds its balance down. A quota or session is full again when its
 * window ends.
 */
export function secondsUntilMore(shown: ShownLimit): number | undefined {
  const { limit, available, exceeded, waitSeconds } = shown;
  if (exceeded) return Number.isFinite(waitSeconds) ? Math.ceil(waitSeconds) : undefined;
  if (available >= limit.capacity) return undefined;
  if (isRate(limit)) return Math.ceil(limit.refillPeriodSeconds / limit.refillAmount);
  return shown.resetsInSeconds === undefined ? undefined : Math.ceil(shown.resetsInSeconds);
}

/** The time, rounded up, until a limit is full, and never less than until the call fits. */
export function msUntilFull(shown: ShownLimit): number {
  const { limit, available, waitSeconds, resetsInSeconds = 0 } = shown;
  const missing = Math.max(0, limit.capacity - available);
  const refillsMs = isRate(limit)
    ? (missing * limit.refillPeriodSeconds * 1000) / limit.refillAmount
    : missing > 0
      ? resetsInSeconds * 1000
      : 0;
  const fullMs = Math.ceil(refillsMs);
  return Number.isFinite(waitSeconds) ? Math.max(fullMs, Math.round(waitSeconds * 1000)) : fullMs;
}

/** The capacity; more while a quota holds what it has carried over, and that remains. */
export function getShownCapacity({ limit, available }: ShownLimit): number {
  return Math.max(limit.capacity, available);
}

/** The results of `formatPolicy` for rates; they never change. */
const POLICY_MEMO = new WeakMap<RateLimit, string>();

/**
 * The quota with its window, and the capacity if it differs: `100;w=60;zae-burst=150`. A cron
 * expression has no length.
 */
export function formatPolicy({ limit, resetsAt }: ShownLimit): string {
  if (!isRate(limit)) {
    const seconds = computeWindowSeconds(limit, resetsAt);
    return integer(limit.capacity) + (seconds === undefined ? "" : `;w=${integer(seconds)}`);
  }
  let policy = POLICY_MEMO.get(limit);
  if (policy === undefined) POLICY_MEMO.set(limit, (policy = writePolicy(limit)));
  return policy;
}

/** The period of a limit: of a quota that of its open window, as days and months differ. */
export function computeWindowSeconds(
  limit: SupportedLimit,
  resetsAt: Date | undefined,
): number | undefined {
  if (isRate(limit)) return limit.refillPeriodSeconds;
  if (limit.kind === "session") return limit.windowSeconds;
  if ("cron" in limit.resets) return undefined;
  if (resetsAt === undefined) return USUAL_SECONDS[limit.resets.every];
  const endMs = resetsAt.getTime();
  let window = WINDOW_MEMO.get(limit);
  if (window?.endMs !== endMs) {
    window = { endMs, seconds: measureWindow(limit.resets, endMs) };
    WINDOW_MEMO.set(limit, window);
  }
  return window.seconds;
}

const USUAL_SECONDS = { hour: 3600, day: 86_400, week: 604_800, month: 2_592_000 } as const;

/**
 * The lengths of the windows that end next. Measuring one finds up to four boundaries of 60 µs, and
 * makes the calendar forget the one to come, which decisions look up.
 */
const WINDOW_MEMO = new WeakMap<QuotaLimit, { readonly endMs: number; readonly seconds: number }>();

/** The seconds between a boundary of a calendar and the one before. */
function measureWindow(
  calendar: Extract<Calendar, { readonly every: string }>,
  storedEndMs: number,
): number {
  // By other time zone data, the stored end is not a boundary here.
  const endMs = nearestBoundary(calendar, storedEndMs);
  let beginMs = endMs - 2 * USUAL_SECONDS[calendar.every] * 1000;
  for (let nextMs = beginMs; nextMs < endMs; nextMs = nextBoundary(calendar, nextMs))
    beginMs = nextMs;
  return (endMs - beginMs) / 1000;
}

function writePolicy(limit: RateLimit): string {
  const quota = `${integer(limit.refillAmount)};w=${integer(limit.refillPeriodSeconds)}`;
  return limit.capacity === limit.refillAmount
    ? quota
    : `${quota};zae-burst=${integer(limit.capacity)}`;
}
