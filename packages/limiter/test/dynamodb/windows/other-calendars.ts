import { AsyncLocalStorage } from "node:async_hooks";
import type * as Calendar from "../../../src/core/calendar.ts";

/** By how much the wall clocks of processes with other time zone data differ. */
const shift = new AsyncLocalStorage<number>();

/** Runs a process whose time zone data say that it is so much later. */
export function runWithShift<T>(shiftMs: number, work: () => T): T {
  return shift.run(shiftMs, work);
}

/** In place of the module of calendars, for `vi.mock`: each process has its own time zone data. */
export function shiftCalendars(original: typeof Calendar): typeof Calendar {
  const shifted = new Map<number, Calendar.Boundaries>();
  const find = (): Calendar.Boundaries => {
    const ms = shift.getStore() ?? 0;
    const held =
      shifted.get(ms) ??
      original.buildBoundaries((zone, at) => original.readWallClock(zone, at) + ms);
    shifted.set(ms, held);
    return held;
  };
  return {
    ...original,
    nextBoundary: (...args) => find().next(...args),
    nearestBoundary: (...args) => find().nearest(...args),
  };
}
