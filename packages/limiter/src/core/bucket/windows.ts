/*
 * Limits that are full again when a window ends: calendar quotas and sessions. Their state is a
 * balance and the end of the window that it belongs to; 0 means that none was opened yet.
 *
 *            charged               the end has passed
 *   no window ──────▶ open until end ──────▶ over ──────▶ open until the next end
 *                     balance moves          full,        charged
 *                                            and nothing moves it
 *
 * Only a charge opens a window, and it stores the end that it has computed: the stored end is the
 * identity of the window, so two processes whose time zone data differ cannot open it twice.
 * Nothing crosses the end of a window but what `carry` says.
 */
import { MILLI } from "../amounts.ts";
import { nearestBoundary, nextBoundary } from "../calendar.ts";
import { isRate, type Calendar } from "../limit-kinds.ts";
import { formatDefinition } from "../limit-text.ts";
import type { SupportedLimit } from "../supported-limits.ts";
import { applyMap, type TimeMap } from "./time-map.ts";

/** How the windows of a limit fill and follow each other. A shard has its shares. */
export interface LimitWindow {
  readonly kind: "quota" | "session";
  /** What a window begins with. */
  readonly capacityMilli: number;
  /** The most that is carried over the end unused. */
  readonly unusedMilli: number;
  /** Whether a debt is still owed after the end. */
  readonly carriesDebt: boolean;
  /** Undefined for a session, whose windows begin with their first use. */
  readonly calendar: Calendar | undefined;
  /** The length of a session; 0 for a quota. */
  readonly lengthMs: number;
  /** The same text for the same calendar, length and carry: a bucket keeps it with its balance. */
  readonly definition: string;
}

/** What a bucket stores of a limit with windows. */
export interface WindowState {
  readonly storedMilli: number;
  /** The end of the window that the balance belongs to; 0 when none was opened. */
  readonly endMs: number;
}

/** How a limit resets; undefined for one that does not. */
export function buildWindow(limit: SupportedLimit): LimitWindow | undefined {
  if (isRate(limit)) return undefined;
  const isQuota = limit.kind === "quota";
  return {
    kind: limit.kind,
    capacityMilli: limit.capacity * MILLI,
    unusedMilli: isQuota ? (limit.carry?.unused ?? 0) * MILLI : 0,
    carriesDebt: isQuota && limit.carry?.debt === true,
    calendar: isQuota ? limit.resets : undefined,
    lengthMs: isQuota ? 0 : limit.windowSeconds * MILLI,
    definition: formatDefinition(limit),
  };
}

/** The balance at a time: what is stored while the window is open, then what the next begins with. */
export function computeWindowMilli(
  window: LimitWindow,
  storedMilli: number,
  endMs: number,
  nowMs: number,
): number {
  return nowMs < endMs ? storedMilli : computeOpeningMilli(window, storedMilli, endMs, nowMs);
}

/** The balance of a window that opens now, before anything is charged. */
export function computeOpeningMilli(
  window: LimitWindow,
  storedMilli: number,
  endMs: number,
  nowMs: number,
): number {
  return carriesNothing(window) || endMs === 0
    ? window.capacityMilli
    : applyMap(buildOpeningMap(window, { storedMilli, endMs }, nowMs), storedMilli);
}

/**
 * What the ends that have passed do to a balance. Each brings a capacity, as far as that matters to
 * the stored balance; debt and what is unused cross them only where they are carried.
 */
export function buildOpeningMap(
  window: LimitWindow,
  { storedMilli, endMs }: WindowState,
  nowMs: number,
): TimeMap {
  const { capacityMilli, unusedMilli, carriesDebt } = window;
  const high = capacityMilli + unusedMilli;
  if (carriesNothing(window) || endMs === 0)
    return { low: capacityMilli, add: capacityMilli, addMost: capacityMilli, high: capacityMilli };
  let ends = 0;
  for (let passedMs = endMs; passedMs <= nowMs && ends < MOST_ENDS; ends += 1) {
    if (ends > 0 && storedMilli + ends * capacityMilli >= high) break;
    passedMs = computeNextEnd(window, passedMs);
  }
  const add = ends * capacityMilli;
  return { low: carriesDebt ? -Infinity : Math.min(high, add), add, addMost: add, high };
}

/** Whether a window that is over leaves nothing to the next one. */
export function carriesNothing({ carriesDebt, unusedMilli }: LimitWindow): boolean {
  return !carriesDebt && unusedMilli === 0;
}

/** Windows that are looked at, one after another: longer waits and idle times are cut off there. */
const MOST_ENDS = 1000;

/** The end of the window that opens now, after one that ended at `previousEndMs`. */
export function computeWindowEnd(
  { calendar, lengthMs }: LimitWindow,
  nowMs: number,
  previousEndMs: number,
): number {
  if (calendar === undefined) return nowMs + lengthMs;
  if (previousEndMs === 0) return nextBoundary(calendar, nowMs);
  // By other time zone data, the boundary nearest to the stored end is the same boundary, and has
  // passed. The first one after now could be it, and would open the window again.
  const passedMs = nearestBoundary(calendar, previousEndMs);
  return nextBoundary(calendar, Math.max(nowMs, passedMs));
}

/** The end of the window after the one that is open, or that would open now. */
export function computeNextWindowEnd(window: LimitWindow, nowMs: number, endMs: number): number {
  const openMs = nowMs < endMs ? endMs : computeWindowEnd(window, nowMs, endMs);
  return computeNextEnd(window, openMs);
}

/**
 * The time until a window holds `neededMilli` if nothing is taken; `Infinity` if none ever can. The
 * windows that follow are thought to be opened when they begin.
 */
export function computeWindowWaitMs(
  window: LimitWindow,
  { storedMilli, endMs }: WindowState,
  neededMilli: number,
  nowMs: number,
): number {
  if (neededMilli > window.capacityMilli + window.unusedMilli) return Infinity;
  let atMs = Math.max(nowMs, endMs);
  for (let ends = 0; ends < MOST_ENDS; ends += 1) {
    if (computeOpeningMilli(window, storedMilli, endMs, atMs) >= neededMilli) return atMs - nowMs;
    atMs = computeNextEnd(window, atMs);
  }
  return Infinity;
}

/** When the windows end that a take was charged in, by limit. */
export type WindowEnds = Readonly<Record<string, number>>;

/**
 * Charges a window, opening one if none is open, or gives back to it. What was taken from another
 * window than the open one is lost, because nothing crosses the end of a window.
 */
export function chargeWindow(
  window: LimitWindow,
  { storedMilli, endMs }: WindowState,
  {
    costMilli,
    takenEndMs,
  }: { readonly costMilli: number; readonly takenEndMs: number | undefined },
  nowMs: number,
): WindowState {
  const isOpen = nowMs < endMs;
  if (costMilli === 0 || (costMilli < 0 && !(isOpen && takenEndMs === endMs)))
    return { storedMilli, endMs };
  if (isOpen) return { storedMilli: subtract(storedMilli, costMilli), endMs };
  const openingMilli = computeOpeningMilli(window, storedMilli, endMs, nowMs);
  return {
    storedMilli: subtract(openingMilli, costMilli),
    endMs: computeWindowEnd(window, nowMs, endMs),
  };
}

function subtract(milli: number, costMilli: number): number {
  return Math.max(milli - costMilli, Number.MIN_SAFE_INTEGER);
}

/**
 * The state under another limit that also has windows. No change opens a window or closes one: of
 * an open one, the balance follows the capacity, so that what was used stays used.
 */
export function convertWindow(
  before: LimitWindow,
  { storedMilli, endMs }: WindowState,
  after: LimitWindow,
  nowMs: number,
): WindowState {
  const isSame = after.definition === before.definition;
  const raisedMilli = after.capacityMilli - before.capacityMilli;
  const convertedMs = isSame ? endMs : computeConvertedEnd(before, after, endMs, nowMs);
  if (isSame || nowMs < endMs)
    return { storedMilli: subtract(storedMilli, -raisedMilli), endMs: convertedMs };
  // A boundary of the old calendar means nothing in the new one, so a debt that is carried is
  // brought along into a window that opens now.
  const openingMilli = computeOpeningMilli(before, storedMilli, endMs, nowMs);
  const isOwed = after.carriesDebt && openingMilli < before.capacityMilli;
  return {
    storedMilli: isOwed ? openingMilli + raisedMilli : after.capacityMilli,
    endMs: convertedMs,
  };
}

/**
 * The end of the open window under another definition. A quota whose window is over has its next
 * one opened: a slower clock would open the one that is over again if it found none.
 */
function computeConvertedEnd(
  { calendar }: LimitWindow,
  after: LimitWindow,
  endMs: number,
  nowMs: number,
): number {
  // A shorter session ends earlier; a longer one begins with the next window.
  if (after.calendar === undefined)
    return nowMs < endMs ? Math.min(endMs, nowMs + after.lengthMs) : 0;
  if (endMs === 0) return 0;
  if (calendar === undefined) return nextBoundary(after.calendar, nowMs);
  const closestMs = nearestBoundary(calendar, endMs);
  if (endMs <= nowMs) return nextBoundary(after.calendar, Math.max(nowMs, closestMs));
  // A faster clock or other time zone data may have opened it for a boundary that is yet to come.
  const comingMs = nextBoundary(calendar, nowMs);
  return nextBoundary(after.calendar, comingMs < closestMs ? comingMs : nowMs);
}

function computeNextEnd({ calendar, lengthMs }: LimitWindow, endMs: number): number {
  return calendar === undefined ? endMs + lengthMs : nextBoundary(calendar, endMs);
}
