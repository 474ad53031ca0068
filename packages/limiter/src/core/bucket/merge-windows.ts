import { nearestBoundary } from "../calendar.ts";
import { computeOpeningMilli, type StoredWindow, type WindowState } from "./windows.ts";

/**
 * The halves of a shard as one: in the later of their windows, which the merge neither opens nor
 * fills. A half whose window is over gives what it would have in that one. Undefined while a half
 * has an older window open: clocks differ, and this one would lose or fill it.
 */
export function mergeWindows(
  halves: readonly StoredWindow[],
  nowMs: number,
): WindowState | undefined {
  const endMs = Math.max(...halves.map((half) => half.endMs));
  let storedMilli = 0;
  for (const half of halves) {
    const isOpen = nowMs < half.endMs;
    if (isSameWindow(half, endMs) || (isOpen && half.window.kind === "session"))
      storedMilli += half.storedMilli;
    else if (isOpen) return undefined;
    else storedMilli += computeMilliIn(half, endMs);
  }
  return { storedMilli, endMs };
}

/** By other time zone data, the same window has another end. */
function isSameWindow({ window: { calendar }, endMs }: StoredWindow, otherMs: number): boolean {
  if (calendar === undefined || endMs === 0 || endMs === otherMs) return endMs === otherMs;
  return nearestBoundary(calendar, endMs) === nearestBoundary(calendar, otherMs);
}

/** The balance of a shard whose window is over, in a later one that ends at `endMs`. */
function computeMilliIn(
  { window, storedMilli, endMs: overMs }: StoredWindow,
  endMs: number,
): number {
  const { calendar } = window;
  const boundaryMs = calendar === undefined ? endMs : nearestBoundary(calendar, endMs);
  return computeOpeningMilli(window, storedMilli, overMs, boundaryMs - 1);
}
