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
import { formatStoredDefinition } from "../limit-text.ts";
import type { SupportedLimit } from "../supported-limits.ts";
import { applyMap, buildConstant, IDENTITY, shiftMap, type TimeMap } from "./time-map.ts";

/** How the windows of a limit fill and follow each other. A shard has its shares. */
export interface LimitWindow {
  /** The kind of the limit. */
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
    definition: formatStoredDefinition(limit),
  };
}

/** The balance at a time: what is stored while the window is open, then a new window's. */
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
  const { capacityMilli, unusedMilli } = window;
  const high = capacityMilli + unusedMilli;
  if (carriesNothing(window) || endMs === 0) return buildConstant(capacityMilli);
  let ends = 0;
  for (let passedMs = endMs; passedMs <= nowMs && ends < MOST_ENDS; ends += 1) {
    if (ends > 0 && storedMilli + ends * capacityMilli >= high) break;
    passedMs = computeNextEnd(window, passedMs);
  }
  return buildEndsMap(window, ends);
}

/** What a number of ends does to a balance, where something is carried over them. */
function buildEndsMap(
  { capacityMilli, unusedMilli, carriesDebt }: LimitWindow,
  ends: number,
): TimeMap {
  const high = capacityMilli + unusedMilli;
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

/** The window of one limit on one shard, and what is stored of it. */
export interface StoredWindow extends WindowState {
  readonly window: LimitWindow;
  /** What a call must leave of it. */
  readonly keptMilli?: number | undefined;
}

/**
 * The time until the windows of all shards together hold `neededMilli` if nothing is taken;
 * `Infinity` if they never can. Nothing changes but at ends, where a balance may also fall: a shard
 * can hold more than its share. The windows that follow are thought to be opened when they begin.
 */
export function computeWindowWaitMs(
  shards: readonly StoredWindow[],
  neededMilli: number,
  nowMs: number,
): number {
  const running = shards.map(({ window, storedMilli, endMs, keptMilli }) => ({
    window,
    keptMilli,
    storedMilli,
    milli: endMs === 0 ? window.capacityMilli : storedMilli,
    ends: 0,
    nextMs: endMs === 0 ? Infinity : endMs,
  }));
  let atMs = nowMs;
  for (let steps = 0; steps <= MOST_ENDS && atMs < Infinity; steps += 1) {
    for (const shard of running) while (shard.nextMs <= atMs) passEnd(shard);
    if (
      running.reduce((sum, { milli, keptMilli }) => sum + aboveKept(milli, keptMilli), 0) >=
      neededMilli
    )
      return atMs - nowMs;
    atMs = Math.min(...running.map(({ nextMs }) => nextMs));
  }
  return Infinity;
}

/** What a balance holds above what is kept of it; a debt as it is. */
export function aboveKept(heldMilli: number, keptMilli = 0): number {
  return Math.max(heldMilli - keptMilli, Math.min(heldMilli, 0));
}

/** Lets a window end; the ends that no longer matter to its balance are not looked for. */
function passEnd(shard: {
  readonly window: LimitWindow;
  readonly storedMilli: number;
  milli: number;
  ends: number;
  nextMs: number;
}): void {
  const { window, storedMilli } = shard;
  const { capacityMilli, unusedMilli } = window;
  shard.ends += 1;
  shard.milli = carriesNothing(window)
    ? capacityMilli
    : applyMap(buildEndsMap(window, shard.ends), storedMilli);
  const isLast =
    carriesNothing(window) ||
    shard.ends >= MOST_ENDS ||
    storedMilli + shard.ends * capacityMilli >= capacityMilli + unusedMilli;
  shard.nextMs = isLast ? Infinity : computeNextEnd(window, shard.nextMs);
}

/** When the windows end that a take was charged in, by limit. */
export type WindowEnds = Readonly<Record<string, number>>;

/**
 * Charges a window, opening one if none is open, or gives back to it. Tokens of another window than
 * the open one are lost, because nothing crosses the end of a window.
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

/** What happens to a balance when its limit becomes another one, and when its window ends then. */
export interface Conversion {
  readonly map: TimeMap;
  readonly endMs: number;
}

/**
 * The change to another limit that also has windows. No change opens a window or closes one: of an
 * open one, the balance follows the capacity, so that what was used stays used. What the ends that
 * have passed carried over was earned under the old limit, so it comes along into a window that
 * opens now.
 */
export function planConversion(
  before: LimitWindow,
  state: WindowState,
  after: LimitWindow,
  nowMs: number,
): Conversion {
  const { storedMilli, endMs } = state;
  const isSame = after.definition === before.definition;
  const raisedMilli = after.capacityMilli - before.capacityMilli;
  const follow = shiftMap(IDENTITY, raisedMilli);
  const convertedMs = isSame ? endMs : computeConvertedEnd(before, after, endMs, nowMs);
  if (nowMs < endMs) return { map: follow, endMs: convertedMs };
  if (isSame && (raisedMilli === 0 || endMs === 0 || carriesNothing(after)))
    return { map: follow, endMs };
  const opening = buildOpeningMap(before, state, nowMs);
  if (isSame)
    return { map: shiftMap(opening, raisedMilli), endMs: computeWindowEnd(after, nowMs, endMs) };
  // A boundary of the old calendar means nothing in the new one, so only a debt is brought along.
  const isOwed = after.carriesDebt && applyMap(opening, storedMilli) < before.capacityMilli;
  return {
    map: isOwed ? shiftMap(opening, raisedMilli) : buildConstant(after.capacityMilli),
    endMs: convertedMs,
  };
}

/** The state under another limit that also has windows. */
export function convertWindow(
  before: LimitWindow,
  state: WindowState,
  after: LimitWindow,
  nowMs: number,
): WindowState {
  const { map, endMs } = planConversion(before, state, after, nowMs);
  const storedMilli = Math.max(applyMap(map, state.storedMilli), Number.MIN_SAFE_INTEGER);
  return { storedMilli, endMs };
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
  // By other time zone data, the stored end may lie just before the boundary that it stands for.
  return calendar === undefined
    ? endMs + lengthMs
    : nextBoundary(calendar, nearestBoundary(calendar, endMs));
}
