import type { Amounts } from "../../core/amounts.ts";
import {
  USAGE_WINDOWS,
  windowEndMs,
  windowStartMs,
  type UsageRow,
  type UsageWindow,
} from "../../core/usage.ts";
import type { UsageRange } from "../store.ts";

/** Requests, and a total for each name. Counts with the same names share them. */
export interface Tally {
  requests: number;
  names: readonly string[];
  totals: number[];
}

/** What was counted: all that was charged, and how much of it came by cascade. */
interface UsageCount extends Tally {
  /** Undefined if nothing did, so that only parents pay for it. */
  cascaded: Tally | undefined;
}

/** A count of one entity and resource. */
export interface KeyedCount extends UsageCount {
  readonly entityId: string;
  readonly resource: string;
}

/** The counts of one window. */
interface KeptWindow {
  readonly window: UsageWindow;
  readonly startMs: number;
  readonly endMs: number;
  /** By resource, then by entity. */
  readonly counts: Map<string, Map<string, UsageCount>>;
  size: number;
}

/**
 * The windows of a namespace with what was counted in them. They are kept by window and not by
 * entity, so that a whole window is dropped in one step, and what is left is complete.
 */
export class UsageWindows {
  readonly #windows = new Map<string, KeptWindow>();
  readonly #completeSinceMs = new Map<UsageWindow, number>();
  #size = 0;

  /** The number of counts in all windows. */
  get size(): number {
    return this.#size;
  }

  /** The time since which nothing was dropped; undefined if nothing ever was. */
  completeSinceMs(window: UsageWindow): number | undefined {
    return this.#completeSinceMs.get(window);
  }

  /** Adds the count of an hour to its windows. Returns whether one of them is new. */
  add(count: KeyedCount, hourStartMs: number): boolean {
    let isNew = false;
    for (const window of USAGE_WINDOWS) {
      const startMs = windowStartMs(window, hourStartMs);
      const key = toKey(window, startMs);
      let kept = this.#windows.get(key);
      if (kept === undefined) {
        const endMs = windowEndMs(window, startMs);
        // A late count would look like the whole of a window that was dropped.
        if (endMs <= (this.completeSinceMs(window) ?? -Infinity)) continue;
        kept = { window, startMs, endMs, counts: new Map(), size: 0 };
        this.#windows.set(key, kept);
        isNew = true;
      }
      this.#addTo(kept, count);
    }
    return isNew;
  }

  *rows({
    entityId,
    resource,
    window,
    startMs = -Infinity,
    endMs = Infinity,
  }: UsageRange): Generator<UsageRow> {
    for (const kept of this.#windows.values()) {
      if (kept.window !== window || kept.startMs < startMs || kept.startMs >= endMs) continue;
      for (const [keptResource, counts] of pick(kept.counts, resource))
        for (const [keptEntity, count] of pick(counts, entityId))
          yield {
            entityId: keptEntity,
            resource: keptResource,
            window,
            windowStartMs: kept.startMs,
            counters: toAmounts(count),
            requests: count.requests,
            cascaded: count.cascaded === undefined ? {} : toAmounts(count.cascaded),
            cascadedRequests: count.cascaded?.requests ?? 0,
          };
    }
  }

  /** Drops the windows that ended by that time, because their retention is over. */
  dropEndedBy(timeMs: number): void {
    for (const kept of this.#windows.values()) if (kept.endMs <= timeMs) this.#drop(kept);
  }

  /**
   * Drops windows until at most this many counts are left: complete ones first, those that ended
   * earliest, then those that still run, the longest first.
   */
  dropOldest(nowMs: number, size: number): void {
    const all = [...this.#windows.values()];
    const complete = all.filter(({ endMs }) => endMs <= nowMs);
    const running = all.filter(({ endMs }) => endMs > nowMs);
    complete.sort((left, right) => left.endMs - right.endMs || right.startMs - left.startMs);
    running.sort((left, right) => left.startMs - right.startMs || right.endMs - left.endMs);
    for (const kept of [...complete, ...running]) {
      if (this.#size <= size) return;
      this.#drop(kept);
      // What was used at this very moment is dropped too.
      this.noteDropped(kept.window, Math.min(kept.endMs, nowMs + 1));
    }
  }

  /** Notes that windows of this length may be incomplete before that time. */
  noteDropped(window: UsageWindow, timeMs: number): void {
    this.#completeSinceMs.set(window, Math.max(this.completeSinceMs(window) ?? -Infinity, timeMs));
  }

  /** Removes the counts of one entity, and returns how many they were. */
  erase(entityId: string): number {
    const before = this.#size;
    for (const kept of this.#windows.values())
      for (const [resource, counts] of kept.counts) {
        if (!counts.delete(entityId)) continue;
        if (counts.size === 0) kept.counts.delete(resource);
        kept.size -= 1;
        this.#size -= 1;
      }
    return before - this.#size;
  }

  clear(): void {
    this.#windows.clear();
    this.#completeSinceMs.clear();
    this.#size = 0;
  }

  #addTo(kept: KeptWindow, count: KeyedCount): void {
    const { entityId, resource, cascaded } = count;
    const counts = kept.counts.get(resource) ?? new Map<string, UsageCount>();
    kept.counts.set(resource, counts);
    const held = counts.get(entityId);
    if (held === undefined) {
      counts.set(entityId, { ...copyTally(count), cascaded: cascaded && copyTally(cascaded) });
      kept.size += 1;
      this.#size += 1;
      return;
    }
    addTally(held, count);
    if (cascaded === undefined) return;
    if (held.cascaded === undefined) held.cascaded = copyTally(cascaded);
    else addTally(held.cascaded, cascaded);
  }

  #drop(kept: KeptWindow): void {
    this.#windows.delete(toKey(kept.window, kept.startMs));
    this.#size -= kept.size;
  }
}

function copyTally({ requests, names, totals }: Tally): Tally {
  return { requests, names, totals: totals.slice() };
}

function addTally(held: Tally, { requests, names, totals }: Tally): void {
  held.requests += requests;
  const missing = names.filter((name) => !held.names.includes(name));
  if (missing.length > 0) held.names = [...held.names, ...missing];
  names.forEach((name, at) => {
    const index = held.names.indexOf(name);
    held.totals[index] = (held.totals[index] ?? 0) + totals[at]!;
  });
}

function toAmounts({ names, totals }: Tally): Amounts {
  return Object.fromEntries(names.map((name, at) => [name, totals[at]!]));
}

function toKey(window: UsageWindow, startMs: number): string {
  return `${window}#${startMs}`;
}

/** The entry of one key, or all entries. */
function pick<T>(
  entries: ReadonlyMap<string, T>,
  key: string | undefined,
): Iterable<readonly [string, T]> {
  if (key === undefined) return entries;
  const value = entries.get(key);
  return value === undefined ? [] : [[key, value]];
}
