/*
 * Usage in the memory of the process: counted by meters, kept by windows.
 *
 *            first record of an hour            the hour is over, or usage is read
 *   closed ───────────────────────────▶ open ────────────────────────────────────▶ closed
 *     ▲                                  │     its count is added to hour, day and month
 *     └──────────────────────────────────┘
 *        there are too many counts, and no window is left to drop
 *
 * A bucket keeps a reference to its meter, so that counting needs no lookup. A closed meter holds
 * nothing, and only its bucket refers to it.
 */
import type { Amounts } from "../../core/amounts.ts";
import {
  DAY_MS,
  HOUR_MS,
  USAGE_WINDOWS,
  type UsageRow,
  type UsageWindow,
} from "../../core/usage.ts";
import type { Keyed, KeyPage, UsageRange, UsageStore } from "../store.ts";
import { buildSortedPage } from "./build-sorted-page.ts";
import { UsageWindows, type KeyedCount, type Tally } from "./usage-windows.ts";

/** Counts what one entity uses of one resource in the current hour, in place. */
export interface Meter extends KeyedCount {
  /**
   * The number of the hour that is counted; undefined if the meter is closed. A small number needs
   * no memory of its own, as its time would: that saves 16 bytes for each key.
   */
  hour: number | undefined;
}

/** How a change is counted. */
export interface Counted {
  readonly requests: number;
  /** Whether it came to a parent by cascade. */
  readonly isCascaded: boolean;
}

/**
 * How many counts a namespace keeps: one for each open meter, and one for each entity and resource
 * in each window. They take about 60 MB, at 190 bytes each; a parent's takes twice as much. Two
 * million identifiers took 420 MB without a bound.
 */
const MAX_COUNTS = 300_000;

/** An eighth is dropped at a time, because finding the oldest windows is slow. */
const KEPT_SHARE = 7 / 8;

/** How many open meters each meter that opens checks for hours that are over. */
const SWEPT_PER_METER = 2;

const NO_NAMES: readonly string[] = [];
/** Shared, because a meter with names gets totals of its own. */
const NO_TOTALS: number[] = [];

/** What the usage of a namespace depends on. */
export interface UsageOptions {
  readonly nowMs: () => number;
  /** @default true */
  readonly isRecorded?: boolean;
  readonly retentionDays: () => number;
  /** Called whenever counts are dropped because there are too many. */
  readonly onDropped?: (maxCounts: number) => void;
  readonly maxCounts?: number;
}

/** Usage summed into hourly, daily and monthly windows. */
export class MemoryUsage implements UsageStore {
  readonly #options: UsageOptions;
  readonly #maxCounts: number;
  readonly #windows = new UsageWindows();
  /** The open meters, by resource, then by entity. */
  readonly #open = new Map<string, Map<string, Meter>>();
  #openCount = 0;
  #sweep: Iterator<Meter> = [].values();
  #lastNames = NO_NAMES;

  constructor(options: UsageOptions) {
    this.#options = options;
    this.#maxCounts = options.maxCounts ?? MAX_COUNTS;
  }

  /** The meter of an entity and a resource. Buckets keep a reference to theirs. */
  meter(entityId: string, resource: string): Meter {
    return (
      this.#open.get(resource)?.get(entityId) ?? {
        entityId,
        resource,
        hour: undefined,
        requests: 0,
        names: NO_NAMES,
        totals: NO_TOTALS,
        cascaded: undefined,
      }
    );
  }

  /** The number of counts that are kept. */
  get size(): number {
    return this.#openCount + this.#windows.size;
  }

  /**
   * Counts a change in the hour in which it is written. A give-back counts negative. What came by
   * cascade is counted once more, by itself.
   */
  record(meter: Meter, amounts: Amounts, { requests, isCascaded }: Counted, nowMs: number): void {
    if (meter.hour !== toHour(nowMs)) this.#turnHour(meter, nowMs);
    this.#add(meter, amounts, requests);
    if (!isCascaded) return;
    meter.cascaded ??= { requests: 0, names: NO_NAMES, totals: NO_TOTALS };
    this.#add(meter.cascaded, amounts, requests);
  }

  rows(range: UsageRange, page: KeyPage): Keyed<UsageRow> {
    const nowMs = this.#options.nowMs();
    for (const meter of this.#openMeters(range)) this.#close(meter);
    this.#dropExpired();
    if (this.size > this.#maxCounts) this.#makeRoom(nowMs);
    return buildSortedPage(
      [...this.#windows.rows(range)],
      (row) => `${String(row.windowStartMs).padStart(16, "0")}#${row.entityId}#${row.resource}`,
      page,
    );
  }

  getCountedUntilMs(): number | undefined {
    return this.#options.isRecorded === false ? undefined : Infinity;
  }

  completeSinceMs(window: UsageWindow): number | undefined {
    return this.#windows.completeSinceMs(window);
  }

  erase(entityId: string): number {
    for (const meter of this.#openMeters({ entityId })) this.#close(meter);
    return this.#windows.erase(entityId);
  }

  clear(): number {
    const count = this.#windows.size;
    this.#emptyAll();
    this.#windows.clear();
    return count;
  }

  *#openMeters({
    entityId,
    resource,
  }: Partial<Pick<UsageRange, "entityId" | "resource">> = {}): Generator<Meter> {
    for (const [name, meters] of this.#open) {
      if (resource !== undefined && name !== resource) continue;
      if (entityId === undefined) yield* meters.values();
      else if (meters.has(entityId)) yield meters.get(entityId)!;
    }
  }

  #turnHour(meter: Meter, nowMs: number): void {
    if (meter.hour !== undefined) this.#close(meter);
    for (let count = 0; count < SWEPT_PER_METER; count += 1) {
      const { value, done } = this.#sweep.next();
      if (done) this.#sweep = this.#openMeters();
      // One that was emptied meanwhile is closed already.
      else if (value.hour !== undefined && value.hour < toHour(nowMs)) this.#close(value);
    }
    if (this.size >= this.#maxCounts) this.#makeRoom(nowMs);
    this.#openFor(meter, nowMs);
  }

  #add(tally: Tally, amounts: Amounts, requests: number): void {
    tally.requests += requests;
    let position = 0;
    for (const name in amounts) {
      // Calls usually name their limits in the same order.
      const index = tally.names[position] === name ? position : this.#indexOf(tally, name, amounts);
      tally.totals[index] = tally.totals[index]! + amounts[name]!;
      position += 1;
    }
  }

  /** The index of a limit's total. All new names of the call are added to the list at once. */
  #indexOf(tally: Tally, name: string, amounts: Amounts): number {
    const index = tally.names.indexOf(name);
    if (index >= 0) return index;
    const names = [
      ...tally.names,
      ...Object.keys(amounts).filter((key) => !tally.names.includes(key)),
    ];
    if (!isSameList(names, this.#lastNames)) this.#lastNames = names;
    tally.names = this.#lastNames;
    tally.totals = names.map((_, position) => tally.totals[position] ?? 0);
    return tally.names.indexOf(name);
  }

  #openFor(meter: Meter, nowMs: number): void {
    const meters = this.#open.get(meter.resource) ?? new Map<string, Meter>();
    this.#open.set(meter.resource, meters);
    meters.set(meter.entityId, meter);
    this.#openCount += 1;
    meter.hour = toHour(nowMs);
  }

  #close(meter: Meter): void {
    const meters = this.#open.get(meter.resource);
    meters?.delete(meter.entityId);
    if (meters?.size === 0) this.#open.delete(meter.resource);
    this.#openCount -= 1;
    // Expired windows are dropped when others begin, which is once an hour.
    if (isUsed(meter) && this.#windows.add(meter, meter.hour! * HOUR_MS)) this.#dropExpired();
    empty(meter);
  }

  #dropExpired(): void {
    const { nowMs, retentionDays } = this.#options;
    this.#windows.dropEndedBy(nowMs() - retentionDays() * DAY_MS);
  }

  /**
   * Drops the oldest windows. If that is not enough, so many meters have opened within an hour that
   * even their counts have to go.
   */
  #makeRoom(nowMs: number): void {
    const most = Math.floor(this.#maxCounts * KEPT_SHARE);
    this.#windows.dropOldest(nowMs, most - this.#openCount);
    if (this.#openCount > most) {
      this.#emptyAll();
      for (const window of USAGE_WINDOWS) this.#windows.noteDropped(window, nowMs + 1);
    }
    this.#options.onDropped?.(this.#maxCounts);
  }

  /** Closes all meters without adding their counts. */
  #emptyAll(): void {
    for (const meter of this.#openMeters()) empty(meter);
    this.#open.clear();
    this.#openCount = 0;
  }
}

function toHour(timeMs: number): number {
  return Math.floor(timeMs / HOUR_MS);
}

function empty(meter: Meter): void {
  meter.hour = undefined;
  meter.requests = 0;
  meter.names = NO_NAMES;
  meter.totals = NO_TOTALS;
  meter.cascaded = undefined;
}

/** A parent's own calls and a give-back by cascade may add up to nothing, and still count. */
function isUsed({ requests, names, cascaded }: Meter): boolean {
  return requests !== 0 || names.length > 0 || (cascaded !== undefined && cascaded.requests !== 0);
}

function isSameList(left: readonly string[], right: readonly string[]): boolean {
  return left.length === right.length && left.every((name, index) => name === right[index]);
}
