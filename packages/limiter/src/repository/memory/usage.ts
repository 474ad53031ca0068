import type { Amounts } from "../../core/amounts.ts";
import {
  DAY_MS,
  USAGE_WINDOWS,
  windowEndMs,
  windowStartMs,
  type UsageRow,
  type UsageWindow,
} from "../../core/usage.ts";
import type { Keyed, KeyPage, UsageRange, UsageStore } from "../store.ts";
import { sortedPage } from "./sorted-page.ts";

/** How many meters each closed hour checks for expired windows. */
const SWEPT_PER_FLUSH = 2;

/** One window of one meter. */
interface Row {
  readonly window: UsageWindow;
  readonly startMs: number;
  requests: number;
  readonly counters: Map<string, number>;
}

/**
 * Counts what one entity uses of one resource. The current hour is counted in place, and added to
 * the windows when it ends or when usage is queried.
 */
export interface Meter {
  readonly entityId: string;
  readonly resource: string;
  hourStartMs: number;
  requests: number;
  /**
   * The limits that were named in this hour, with the total of each in `totals`. Meters with the
   * same names share one list.
   */
  names: readonly string[];
  totals: number[];
  rows: Map<string, Row> | undefined;
}

const NO_NAMES: readonly string[] = [];

/** Usage summed into hourly, daily and monthly windows. */
export class MemoryUsage implements UsageStore {
  /** By resource, then by entity. */
  readonly #meters = new Map<string, Map<string, Meter>>();
  readonly #nowMs: () => number;
  readonly #retentionDays: () => number;
  #sweep: Iterator<Meter> = [].values();
  #lastNames = NO_NAMES;

  constructor(nowMs: () => number, retentionDays: () => number) {
    this.#nowMs = nowMs;
    this.#retentionDays = retentionDays;
  }

  /** The meter of an entity and a resource. Buckets keep a reference to theirs. */
  meter(entityId: string, resource: string): Meter {
    const held = this.#meters.get(resource)?.get(entityId);
    if (held !== undefined) return held;
    const meter: Meter = {
      entityId,
      resource,
      hourStartMs: -Infinity,
      requests: 0,
      names: NO_NAMES,
      totals: [],
      rows: undefined,
    };
    this.#keep(meter);
    return meter;
  }

  /** The number of meters. */
  get size(): number {
    return [...this.#meters.values()].reduce((sum, meters) => sum + meters.size, 0);
  }

  /** Counts a change in the hour in which it is written. A give-back counts negative. */
  record(meter: Meter, amounts: Amounts, requests: number, nowMs: number): void {
    if (nowMs < meter.hourStartMs || nowMs >= windowEndMs("hourly", meter.hourStartMs))
      this.#turnHour(meter, nowMs);
    meter.requests += requests;
    let position = 0;
    for (const name in amounts) {
      // Calls usually name their limits in the same order.
      const index = meter.names[position] === name ? position : this.#indexOf(meter, name, amounts);
      meter.totals[index] = meter.totals[index]! + amounts[name]!;
      position += 1;
    }
  }

  rows(
    { entityId, resource, window, startMs = -Infinity, endMs = Infinity }: UsageRange,
    page: KeyPage,
  ): Keyed<UsageRow> {
    const found: UsageRow[] = [];
    for (const meter of this.#all()) {
      if (
        (entityId !== undefined && meter.entityId !== entityId) ||
        (resource !== undefined && meter.resource !== resource)
      )
        continue;
      this.#flush(meter);
      this.#dropOld(meter);
      for (const row of meter.rows?.values() ?? []) {
        if (row.window === window && row.startMs >= startMs && row.startMs < endMs)
          found.push(usageRow(meter, row));
      }
    }
    return sortedPage(
      found,
      (row) => `${String(row.windowStartMs).padStart(16, "0")}#${row.entityId}#${row.resource}`,
      page,
    );
  }

  clear(): number {
    const count = [...this.#all()].reduce((sum, meter) => sum + (meter.rows?.size ?? 0), 0);
    this.#meters.clear();
    return count;
  }

  *#all(): Generator<Meter> {
    for (const meters of this.#meters.values()) yield* meters.values();
  }

  #turnHour(meter: Meter, nowMs: number): void {
    this.#flush(meter);
    this.#keep(meter);
    meter.hourStartMs = windowStartMs("hourly", nowMs);
    for (let count = 0; count < SWEPT_PER_FLUSH; count += 1) {
      const { value, done } = this.#sweep.next();
      if (done) this.#sweep = this.#all();
      else this.#dropOld(value);
    }
  }

  /** The index of a limit's total. All new names of the call are added to the list at once. */
  #indexOf(meter: Meter, name: string, amounts: Amounts): number {
    const index = meter.names.indexOf(name);
    if (index >= 0) return index;
    const names = [
      ...meter.names,
      ...Object.keys(amounts).filter((key) => !meter.names.includes(key)),
    ];
    if (!isSameList(names, this.#lastNames)) this.#lastNames = names;
    meter.names = this.#lastNames;
    meter.totals = names.map((_, position) => meter.totals[position] ?? 0);
    return meter.names.indexOf(name);
  }

  #flush(meter: Meter): void {
    if (meter.requests === 0 && meter.names.length === 0) return;
    const rows = (meter.rows ??= new Map<string, Row>());
    for (const window of USAGE_WINDOWS) {
      const startMs = windowStartMs(window, meter.hourStartMs);
      const key = `${window}#${startMs}`;
      const row = rows.get(key) ?? {
        window,
        startMs,
        requests: 0,
        counters: new Map<string, number>(),
      };
      row.requests += meter.requests;
      meter.names.forEach((name, index) =>
        row.counters.set(name, (row.counters.get(name) ?? 0) + meter.totals[index]!),
      );
      rows.set(key, row);
    }
    meter.requests = 0;
    meter.names = NO_NAMES;
    meter.totals = [];
  }

  /**
   * Adds the meter, unless it is there. A bucket may refer to a meter that was dropped because all
   * of its windows had expired; the meter comes back with its next hour.
   */
  #keep(meter: Meter): void {
    const meters = this.#meters.get(meter.resource) ?? new Map<string, Meter>();
    this.#meters.set(meter.resource, meters);
    meters.set(meter.entityId, meter);
  }

  #dropOld(meter: Meter): void {
    const nowMs = this.#nowMs();
    const isOver = nowMs >= windowEndMs("hourly", meter.hourStartMs);
    if (isOver) this.#flush(meter);
    const oldestMs = nowMs - this.#retentionDays() * DAY_MS;
    for (const [key, row] of meter.rows ?? [])
      if (windowEndMs(row.window, row.startMs) <= oldestMs) meter.rows?.delete(key);
    const isEmpty =
      (meter.rows?.size ?? 0) === 0 && meter.names.length === 0 && meter.requests === 0;
    // A meter of the current hour stays, because its bucket counts in it without a lookup.
    if (isEmpty && isOver) this.#forget(meter);
  }

  /**
   * Drops a meter. A bucket may still refer to it: its next record then starts a new hour, which
   * brings the meter back, even if the clock was set back.
   */
  #forget(meter: Meter): void {
    const meters = this.#meters.get(meter.resource);
    meters?.delete(meter.entityId);
    if (meters?.size === 0) this.#meters.delete(meter.resource);
    meter.hourStartMs = -Infinity;
  }
}

function isSameList(left: readonly string[], right: readonly string[]): boolean {
  return left.length === right.length && left.every((name, index) => name === right[index]);
}

function usageRow(
  { entityId, resource }: Meter,
  { window, startMs, requests, counters }: Row,
): UsageRow {
  return {
    entityId,
    resource,
    window,
    windowStartMs: startMs,
    counters: Object.fromEntries(counters),
    requests,
  };
}
