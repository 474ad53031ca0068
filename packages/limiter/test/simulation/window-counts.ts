import type { Charge, Decision } from "../oracle/oracle.ts";
import {
  listEnds,
  listTokens,
  unitsAt,
  type LimitBalance,
  type Tokens,
} from "../oracle/oracle-bucket.ts";
import { boundaryAfter, offsetMs } from "../oracle/oracle-calendar.ts";
import type { Part } from "../oracle/oracle-lease.ts";
import { isForgetful, isOpen, isReturnLost, windowEndAfter } from "../oracle/window-balance.ts";
import type { World } from "./world.ts";

/** Counts what a decision did to windows. */
export function countWindows(world: World, { kind, claims }: Decision, nowMs: number): void {
  for (const claim of claims) {
    countChanges(world, claim, nowMs);
    countCarried(world, claim, nowMs);
    if (kind === "granted") countOpenings(world, claim, nowMs);
    else if (claim.view.balances.some((balance) => refuses(balance, claim, nowMs)))
      world.count("refusal by a limit whose window ends");
  }
  const [own, ...others] = claims.map(({ view }) => listEnds(view));
  const differ = (name: string, endMs: number): boolean =>
    others.some((ends) => nowMs < (ends.get(name) ?? 0) && ends.get(name) !== endMs);
  if ([...own!].some(([name, endMs]) => nowMs < endMs && differ(name, endMs)))
    world.count("parent whose windows end at other times");
}

function countCarried(world: World, { view }: Charge, nowMs: number): void {
  for (const balance of view.balances) {
    const { terms, endMs = 0 } = balance;
    if (terms.window === undefined || isForgetful(terms) || endMs === 0 || isOpen(balance, nowMs))
      continue;
    const units = unitsAt(balance, view.stampMs, nowMs);
    if (units < terms.capacityMilli) world.count("debt carried over an end");
    if (units > terms.capacityMilli) world.count("unused tokens carried over an end");
  }
}

function refuses(balance: LimitBalance, { view, tokens }: Charge, nowMs: number): boolean {
  const { terms, hidden } = balance;
  const milli = BigInt(listTokens(tokens, terms.name)) * 1000n;
  return terms.window !== undefined && !hidden && unitsAt(balance, view.stampMs, nowMs) < milli;
}

function countChanges(world: World, { stored, view, sources }: Charge, nowMs: number): void {
  if (stored === undefined || stored === view) return;
  for (const before of stored.balances) {
    const { terms } = view.balances.find((after) => after.terms.name === before.terms.name)!;
    if (terms === before.terms) continue;
    const [from, to] = [before.terms.window, terms.window];
    const isInside = from !== undefined && isOpen(before, nowMs);
    if (from?.kind !== to?.kind) {
      if (isInside) world.count("kind changed inside a window");
      if (to !== undefined) world.count("kind changed to one with windows");
    } else if (isInside && from.definition === to!.definition)
      world.count(
        sources.get(terms.name) === "override"
          ? "capacity changed inside a window by an override"
          : "capacity changed inside a window",
      );
    else if (isInside && from.calendar === undefined) {
      if (to!.lengthMs < from.lengthMs) world.count("session shortened inside a window");
    } else if (isInside) {
      world.count("calendar changed inside a window");
      if (from.calendar!.zone !== to!.calendar!.zone) world.count("zone changed inside a window");
      if (from.carriesDebt !== to!.carriesDebt || from.unusedMilli !== to!.unusedMilli)
        world.count("carry changed inside a window");
    } else if (from?.definition === to?.definition && before.endMs && !isForgetful(terms))
      world.count("capacity changed after a window, with carry");
  }
}

/** Counts what a charge of a bucket does to its windows; returns how many it opens. */
export function countOpenings(world: World, { view, tokens }: Charge, nowMs: number): number {
  let opened = 0;
  for (const balance of view.balances) {
    const { terms, endMs = 0 } = balance;
    const { window } = terms;
    if (window === undefined || listTokens(tokens, terms.name) <= 0) continue;
    const nextMs = windowEndAfter(window, nowMs);
    if (isOpen(balance, nowMs)) {
      if (window.calendar !== undefined && nextMs < endMs)
        world.count("window open after a clock stepped back over an end");
      continue;
    }
    world.count("window opened");
    opened += 1;
    const { zone } = window.calendar ?? { zone: "UTC" };
    if (offsetMs(zone, nowMs) !== offsetMs(zone, nextMs - 1))
      world.count("window that lasts over a change of clocks");
    if (endMs === 0) continue;
    if (window.calendar !== undefined && boundaryAfter(window.calendar, endMs) <= nowMs)
      world.count("window entered after several ends");
  }
  return opened;
}

/** Counts where what a lease writes at its end goes. */
export function countEnd(
  world: World,
  how: "settled" | "rolled back",
  { part, tokens }: { readonly part: Part; readonly tokens: Tokens },
  nowMs: number,
): void {
  const bucket = world.oracle.bucket(part.entityId, part.resource);
  if (bucket?.life !== part.life) return;
  for (const balance of bucket.balances) {
    const { terms } = balance;
    const amount = listTokens(tokens, terms.name);
    const takenEndMs = part.ends.get(terms.name) ?? 0;
    if (terms.window === undefined || amount === 0 || takenEndMs === 0) continue;
    const isOver = !isOpen(balance, nowMs) || balance.endMs !== takenEndMs;
    if (amount > 0 && !isOpen(balance, nowMs))
      world.count("window opened by a charge or settlement");
    if (how === "rolled back") {
      if (isOver) world.count("lease over an end rolled back");
    } else if (isOver)
      world.count(amount > 0 ? "lease over an end settled up" : "lease over an end settled down");
    if (amount < 0 && !isReturnLost(balance, { costMilli: -1n, takenEndMs }, nowMs))
      world.count("return to the open window");
  }
}
