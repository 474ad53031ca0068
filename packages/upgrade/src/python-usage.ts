/*
 * Usage snapshots of the Python zae-limiter. Their keys lack the length of the window, so the first
 * hour of a day, the day, and a month that begins with it are one item, the sum of all of them
 * (W-20).
 *
 *   any other hour            that hour
 *   midnight, hours and days  with m at midnight and s in the other hours of the day, the first
 *                             hour is (m − s) / 2 and the day (m + s) / 2: both counted the same
 *                             calls. Where that is not whole, or negative, the item is left.
 *   midnight, days only       the day
 *   the first of a month,     left: the three parts cannot be separated
 *   with months counted
 *
 * Counters become millitokens with a prefix. `total_events` counted limits and adjustments (W-27),
 * so it does not become the number of requests; it is kept under its own name.
 */
import type { UsageWindow } from "zae-limiter";
import {
  CONSUMED_PREFIX,
  marshalItem,
  MILLI,
  getNumber,
  getString,
  usageIndexKeys,
  usageKey,
  windowStartMs,
  windowText,
  type AttributeMap,
  type UsageName,
} from "zae-limiter/dynamodb-internals";
import type { Change } from "./change.ts";

const HOUR_MS = 3_600_000;
const HOURS_OF_A_DAY = 24;

/** Which snapshot of theirs. */
export interface PythonSnapshot {
  readonly namespaceId: string;
  readonly entityId: string;
  readonly resource: string;
  readonly startMs: number;
}

/** The snapshot of a sort key; undefined when it is of another kind, or already ours. */
export function parsePythonUsage(
  SK: string,
): Pick<PythonSnapshot, "resource" | "startMs"> | undefined {
  const match = /^#USAGE#([^#]+)#(\d{4}-\d{2}-\d{2}T\d{2}:00:00Z)$/.exec(SK);
  return match === null ? undefined : { resource: match[1]!, startMs: Date.parse(match[2]!) };
}

/** The sort key of a snapshot of theirs. */
export function pythonUsageSortKey(resource: string, startMs: number): string {
  return `#USAGE#${resource}#${windowText(startMs)}`;
}

/** Whether a window starts at midnight, so that windows of several lengths may be one item. */
export function isMidnight(startMs: number): boolean {
  return windowStartMs("daily", startMs) === startMs;
}

/** The other hours of a day, by their starts. */
export function otherHours(startMs: number): readonly number[] {
  return Array.from({ length: HOURS_OF_A_DAY - 1 }, (_, hour) => startMs + (hour + 1) * HOUR_MS);
}

/** The windows of ours that a snapshot may become. */
export function listWindows(snapshot: PythonSnapshot): readonly UsageName[] {
  const lengths: readonly UsageWindow[] = isMidnight(snapshot.startMs)
    ? ["hourly", "daily", "monthly"]
    : ["hourly"];
  const { entityId, resource, startMs } = snapshot;
  return lengths.map((window) => ({ entityId, resource, startMs, window }));
}

/** The inputs for splitting a snapshot. */
export interface SnapshotContext {
  /** The items of the other hours of its day, at midnight. */
  readonly hours: readonly AttributeMap[];
  /** Items that an aggregator of ours has begun for the same windows, by length. */
  readonly begun: ReadonlyMap<UsageWindow, AttributeMap>;
  /** The windows that the Python zae-limiter's aggregator was configured to count. */
  readonly counted: readonly UsageWindow[];
}

/** The windows of ours that a snapshot of theirs becomes. */
export function snapshotChange(
  snapshot: PythonSnapshot,
  item: AttributeMap,
  context: SnapshotContext,
): Change {
  const parts = toParts(snapshot, item, context);
  const kind = "usage snapshots";
  if (parts === undefined) {
    const { entityId, resource, startMs } = snapshot;
    const text = `usage of ${entityId} for ${resource} from ${windowText(startMs)}: windows of several lengths in one item`;
    return { kind, seen: [item], result: [item], left: [text] };
  }
  const begun = [...context.begun].filter(([window]) => parts.has(window));
  return {
    kind,
    seen: [item, ...begun.map(([, held]) => held)],
    result: [...parts].map(([window, counters]) =>
      snapshotItem({ ...snapshot, window }, item, {
        counters,
        begun: context.begun.get(window),
      }),
    ),
  };
}

type Counters = ReadonlyMap<string, number>;
type Parts = ReadonlyMap<UsageWindow, Counters>;

function toParts(
  { startMs }: PythonSnapshot,
  item: AttributeMap,
  { hours, counted }: SnapshotContext,
): Parts | undefined {
  const all = readCounters(item);
  if (!isMidnight(startMs)) return new Map([["hourly", all]]);
  const window = getString(item["window"]);
  // The first hour and the day are written together, so a day without any hour was counted alone.
  if (window === "monthly" || counted.includes("monthly"))
    return window === "monthly" && hours.length === 0 ? new Map([["monthly", all]]) : undefined;
  if (!counted.includes("hourly") || (window === "daily" && hours.length === 0))
    return new Map([["daily", all]]);
  if (!counted.includes("daily")) return new Map([["hourly", all]]);
  const [first, day] = [new Map<string, number>(), new Map<string, number>()];
  for (const [name, mixed] of all) {
    const others = hours.reduce((sum, hour) => sum + (readCounters(hour).get(name) ?? 0), 0);
    if (mixed < others || (mixed - others) % 2 !== 0) return undefined;
    if (mixed > others) first.set(name, (mixed - others) / 2);
    day.set(name, (mixed + others) / 2);
  }
  const parts = new Map<UsageWindow, Counters>([["daily", day]]);
  if (first.size > 0) parts.set("hourly", first);
  return parts;
}

/** The other attributes of a snapshot; `wcu` counted its own writes. */
const OTHER_ATTRIBUTES: ReadonlySet<string> = new Set([
  "PK",
  "SK",
  "GSI2PK",
  "GSI2SK",
  "GSI4PK",
  "GSI4SK",
  "entity_id",
  "resource",
  "window",
  "window_start",
  "ttl",
  "total_events",
  "wcu",
]);

function readCounters(item: AttributeMap): Counters {
  return new Map(
    Object.entries(item).flatMap(([name, value]): readonly (readonly [string, number])[] =>
      // A name with '#' counts how often a soft limit was overdrawn.
      OTHER_ATTRIBUTES.has(name) || name.includes("#") || !("N" in value)
        ? []
        : [[name, Number(value.N)]],
    ),
  );
}

function snapshotItem(
  name: UsageName & { readonly namespaceId: string },
  item: AttributeMap,
  { counters, begun }: { readonly counters: Counters; readonly begun: AttributeMap | undefined },
): AttributeMap {
  const counted = [...counters].map(([limit, tokens]) => {
    const attribute = CONSUMED_PREFIX + limit;
    return [attribute, tokens * MILLI + (getNumber(begun?.[attribute]) ?? 0)] as const;
  });
  return {
    ...marshalItem({
      ...usageKey(name.namespaceId, name),
      ...usageIndexKeys(name.namespaceId, name),
      entity_id: name.entityId,
      resource: name.resource,
      window: name.window,
      window_start: windowText(name.startMs),
      ttl: getNumber(item["ttl"]),
      total_events: getNumber(item["total_events"]),
    }),
    ...begun,
    ...marshalItem(Object.fromEntries(counted)),
  };
}
