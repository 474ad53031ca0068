import { boundaryAfter } from "./oracle-calendar.ts";
import type { Terms, WindowTerms } from "./terms.ts";

/** What a limit with windows holds. */
export interface WindowBalance {
  readonly terms: Terms;
  /** Millitokens. */
  readonly units: bigint;
  /** When the window ends that they belong to; 0 when none was opened. */
  readonly endMs?: number | undefined;
  /** How many windows were opened, or taken along full, so far. */
  readonly opened?: number | undefined;
}

/** Ends that a debt is carried over at most. */
const MOST_ENDS = 1000;

/** Whether a window is open at a time. */
export function isOpen({ endMs = 0 }: Pick<WindowBalance, "endMs">, nowMs: number): boolean {
  return nowMs < endMs;
}

/** The balance at a time. Every end that has passed brings a capacity, one after another. */
export function windowUnitsAt(balance: WindowBalance, nowMs: number): bigint {
  const { terms, units, endMs = 0 } = balance;
  const { capacityMilli, ceiling, window } = terms;
  if (isOpen(balance, nowMs)) return units;
  if (endMs === 0 || isForgetful(terms)) return capacityMilli;
  let held = units;
  for (let [atMs, ends] = [endMs, 0]; atMs <= nowMs && ends < MOST_ENDS; ends += 1) {
    const carried = held < 0n && !window!.carriesDebt ? 0n : held;
    held = carried + capacityMilli < ceiling ? carried + capacityMilli : ceiling;
    if (held === ceiling) break;
    atMs = windowEndAfter(window!, atMs);
  }
  return held;
}

/** Whether nothing crosses the end of its windows. */
export function isForgetful({ window }: Terms): boolean {
  return window?.carriesDebt !== true && (window?.unusedMilli ?? 0n) === 0n;
}

/** When a window ends that opens at a time. */
export function windowEndAfter({ calendar, lengthMs }: WindowTerms, nowMs: number): number {
  return calendar === undefined ? nowMs + lengthMs : boundaryAfter(calendar, nowMs);
}

/**
 * The balance after a charge, which opens a window if none is open, or after something came back:
 * only to the window that it was taken in, which ends at `takenEndMs`.
 */
export function chargedWindow<B extends WindowBalance>(
  balance: B,
  {
    costMilli,
    takenEndMs,
  }: { readonly costMilli: bigint; readonly takenEndMs?: number | undefined },
  nowMs: number,
): B {
  if (costMilli === 0n || isReturnLost(balance, { costMilli, takenEndMs }, nowMs)) return balance;
  const units = windowUnitsAt(balance, nowMs) - costMilli;
  if (isOpen(balance, nowMs)) return { ...balance, units };
  const endMs = windowEndAfter(balance.terms.window!, nowMs);
  return { ...balance, units, endMs, opened: (balance.opened ?? 0) + 1 };
}

/** Whether something comes back that only counts, because its window is not the open one. */
export function isReturnLost(
  balance: WindowBalance,
  {
    costMilli,
    takenEndMs,
  }: { readonly costMilli: bigint; readonly takenEndMs?: number | undefined },
  nowMs: number,
): boolean {
  const isWindow = balance.terms.window !== undefined;
  return isWindow && costMilli < 0n && !(isOpen(balance, nowMs) && takenEndMs === balance.endMs);
}

/**
 * The balance under other terms of the same kind: it moves with the capacity, and a window that is
 * open stays open until the next end by the new definition. What is carried comes along from one
 * that is over, into a window that opens now; so does a full balance under another calendar, or a
 * clock that is behind would open the old window again.
 */
export function convertedWindow(
  balance: WindowBalance,
  terms: Terms,
  nowMs: number,
): WindowBalance {
  if (terms === balance.terms) return balance;
  const { window: before, capacityMilli } = balance.terms;
  const { endMs = 0, opened = 0 } = balance;
  const isSame = before!.definition === terms.window!.definition;
  const raised = terms.capacityMilli - capacityMilli;
  if (isOpen(balance, nowMs)) {
    const convertedMs = isSame ? endMs : endUnder(balance, terms.window!, nowMs);
    return { terms, units: balance.units + raised, endMs: convertedMs, opened };
  }
  // By a clock that is behind, the old window may still be open.
  if (isSame && (endMs === 0 || isForgetful(terms)))
    return { ...balance, terms, units: balance.units + raised };
  if (endMs === 0 || terms.window!.kind === "session")
    return { terms, units: terms.capacityMilli, endMs: 0, opened };
  const units = windowUnitsAt(balance, nowMs);
  const isCarried = isSame || (terms.window!.carriesDebt && units < capacityMilli);
  return {
    terms,
    units: isCarried ? units + raised : terms.capacityMilli,
    endMs: windowEndAfter(terms.window!, nowMs),
    opened: opened + 1,
  };
}

/** When an open window ends by another definition. */
function endUnder({ terms, endMs = 0 }: WindowBalance, window: WindowTerms, nowMs: number): number {
  if (window.calendar === undefined) return Math.min(endMs, nowMs + window.lengthMs);
  // By a clock that went back, the window is of the future: the one of now is over.
  const comingMs = windowEndAfter(terms.window!, nowMs);
  return boundaryAfter(window.calendar, comingMs < endMs ? comingMs : nowMs);
}
