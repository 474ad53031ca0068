import { addAmounts, MILLI, type Amounts } from "./amounts.ts";
import { ValidationError } from "./errors.ts";

/** The lengths of time that usage is summed over, all in UTC. */
export type UsageWindow = "hourly" | "daily" | "monthly";

/** Every window length, shortest first. */
export const USAGE_WINDOWS: readonly UsageWindow[] = ["hourly", "daily", "monthly"];

/** What an entity consumed of a resource in one window. */
export interface UsageSnapshot {
  /** Whose usage it is. */
  readonly entityId: string;
  /** The resource that was used. */
  readonly resource: string;
  /** The length of the window. */
  readonly window: UsageWindow;
  /** The first moment of the window, in UTC. */
  readonly windowStart: Date;
  /** Exclusive: the start of the next window. */
  readonly windowEnd: Date;
  /**
   * Tokens by limit, net of what was given back. A query that names an entity counts all that was
   * charged to it, a query by resource alone only what the entity's own calls took. A give-back may
   * be divided between windows, so a window may hold thousandths of a token.
   */
  readonly counters: Amounts;
  /** Granted acquires; counted as `counters` are. */
  readonly requests: number;
  /**
   * What came to the entity by cascade, from the calls of its children. It is included in
   * `counters` if the query names the entity, and not otherwise.
   */
  readonly cascaded: Amounts;
  /** Granted acquires of its children that were charged to the entity. */
  readonly cascadedRequests: number;
  /** False until the window has ended and all of it is counted. */
  readonly complete: boolean;
}

/**
 * The sum of several snapshots. A query by resource counts each call once, with the entity that
 * made it; a query that names an entity counts all that was charged to it.
 */
export interface UsageSummary {
  /** How many snapshots were added up. */
  readonly snapshotCount: number;
  /** Tokens by limit over all windows, net of what was given back; exact to the thousandth. */
  readonly total: Amounts;
  /** `total` divided by the number of windows in which something was used. */
  readonly average: Amounts;
  /** Granted acquires over all windows. */
  readonly requests: number;
  /**
   * What came to parents by cascade. It is included in `total` if the query names an entity, and
   * not otherwise.
   */
  readonly cascaded: Amounts;
  /** The requests that came to parents by cascade. */
  readonly cascadedRequests: number;
  /** The start of the earliest window; undefined if there is no usage. */
  readonly minWindowStart: Date | undefined;
  /** The start of the latest window; undefined if there is no usage. */
  readonly maxWindowStart: Date | undefined;
  /**
   * Only if the memory backend had to drop usage: windows that begin earlier are missing, or lack
   * something.
   */
  readonly completeSince?: Date;
  /**
   * Only on DynamoDB: until when the aggregator has counted. Windows that end later are not
   * complete.
   */
  readonly countedUntil?: Date;
}

/** The shortest window. */
export const HOUR_MS = 3_600_000;
/** Retention is counted in days. */
export const DAY_MS = 86_400_000;

/** How long usage and audit events are kept if the system defaults do not say otherwise. */
export const DEFAULT_RETENTION_DAYS = 90;

const LONGEST_RETENTION_DAYS = 3650;

/** Returns how many days something is kept, or throws; undefined stays undefined. */
export function checkRetentionDays(value: unknown, field: string): number | undefined {
  if (value === undefined) return undefined;
  if (
    typeof value === "number" &&
    Number.isInteger(value) &&
    value >= 1 &&
    value <= LONGEST_RETENTION_DAYS
  )
    return value;
  throw new ValidationError(
    field,
    value,
    `must be a whole number of days from 1 to ${LONGEST_RETENTION_DAYS}`,
  );
}

/** The start of the window that contains a time. */
export function windowStartMs(window: UsageWindow, timeMs: number): number {
  if (window === "hourly") return Math.floor(timeMs / HOUR_MS) * HOUR_MS;
  if (window === "daily") return Math.floor(timeMs / DAY_MS) * DAY_MS;
  const date = new Date(timeMs);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1);
}

/** The start of the next window. */
export function windowEndMs(window: UsageWindow, startMs: number): number {
  if (window === "hourly") return startMs + HOUR_MS;
  if (window === "daily") return startMs + DAY_MS;
  const date = new Date(startMs);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
}

/** What a backend keeps of one window: all that was charged, and how much of it by cascade. */
export interface UsageRow {
  readonly entityId: string;
  readonly resource: string;
  readonly window: UsageWindow;
  readonly windowStartMs: number;
  readonly counters: Amounts;
  readonly requests: number;
  readonly cascaded: Amounts;
  readonly cascadedRequests: number;
}

/** The row without what came by cascade, for sums over entities: each call counts once. */
export function ownUsage(row: UsageRow): UsageRow {
  const cascaded = Object.entries(row.cascaded).map(([name, amount]) => [name, -amount] as const);
  return {
    ...row,
    counters: addTokens(row.counters, Object.fromEntries(cascaded)),
    requests: row.requests - row.cascadedRequests,
  };
}

/** Converts a stored window to its public form; what came before `countedUntilMs` is counted. */
export function toSnapshot(
  { windowStartMs: startMs, ...row }: UsageRow,
  countedUntilMs: number,
): UsageSnapshot {
  const endMs = windowEndMs(row.window, startMs);
  return {
    ...row,
    windowStart: new Date(startMs),
    windowEnd: new Date(endMs),
    complete: countedUntilMs >= endMs,
  };
}

/** Adds snapshots up. */
export function summarize(snapshots: readonly UsageSnapshot[]): UsageSummary {
  const total = addUp(snapshots, ({ counters }) => counters);
  // Several entities or resources may share a window.
  const starts = [...new Set(snapshots.map(({ windowStart }) => windowStart.getTime()))].sort(
    (left, right) => left - right,
  );
  const average = Object.fromEntries(
    Object.entries(total).map(([name, amount]) => [name, amount / starts.length]),
  );
  const [first, last] = [starts.at(0), starts.at(-1)];
  return {
    snapshotCount: snapshots.length,
    total,
    average,
    requests: snapshots.reduce((sum, { requests }) => sum + requests, 0),
    cascaded: addUp(snapshots, ({ cascaded }) => cascaded),
    cascadedRequests: snapshots.reduce((sum, { cascadedRequests }) => sum + cascadedRequests, 0),
    minWindowStart: first === undefined ? undefined : new Date(first),
    maxWindowStart: last === undefined ? undefined : new Date(last),
  };
}

function addUp(
  snapshots: readonly UsageSnapshot[],
  getAmounts: (snapshot: UsageSnapshot) => Amounts,
): Amounts {
  return snapshots.map(getAmounts).reduce(addTokens, {});
}

/** Adds amounts that may hold thousandths of a token: 0.1 and 0.2 are 0.3. */
function addTokens(left: Amounts, right: Amounts): Amounts {
  const sums = Object.entries(addAmounts(left, right));
  return Object.fromEntries(sums.map(([name, sum]) => [name, toThousandth(sum)]));
}

function toThousandth(tokens: number): number {
  return Number.isInteger(tokens) ? tokens : Math.round(tokens * MILLI) / MILLI;
}
