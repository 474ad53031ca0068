import { fitsAt, type Call, type Charge, type Decision } from "../oracle/oracle.ts";
import { listTokens, unitsAt } from "../oracle/oracle-bucket.ts";
import { countWindows } from "./window-counts.ts";
import type { World } from "./world.ts";

/** Counts what a decision was about. */
export function countDecision(
  world: World,
  { kind, claims }: Decision,
  call: Call,
  nowMs: number,
): void {
  const own = claims.filter(({ entityId }) => entityId === call.entityId);
  if (kind === "granted") {
    world.count("grant");
    if (call.wants.length > 1) world.count("call with several resources granted");
    if (own.length < claims.length) world.count("call with a parent granted");
    if (call.override !== undefined) world.count("call with its own limits granted");
    if (claims.some(({ sources }) => new Set(sources.values()).size > 1))
      world.count("grant under several levels");
    if (claims.some(({ sources }) => [...sources.values()].includes("constructor")))
      world.count("grant under defaults in code");
    if (own.some(({ counted }) => Object.keys(counted).length > 0))
      world.count("grant with a name that no limit holds");
  } else {
    world.count("refusal");
    if (fitsAt(own, nowMs)) world.count("refusal by the parent alone");
    countDebt(world, claims, nowMs);
    if (!fitsAt(claims, nowMs + 1e12)) world.count("refusal of a call that can never fit");
  }
  countWindows(world, { kind, claims }, nowMs);
  for (const { stored, view } of claims) {
    if (stored === undefined) continue;
    if (
      stored.balances.some(
        (balance) =>
          balance.terms.window === undefined &&
          balance.units < balance.terms.ceiling &&
          unitsAt(balance, stored.stampMs, nowMs) === balance.terms.ceiling,
      )
    )
      world.count("overflow of an idle bucket");
    if (view === stored) continue;
    for (const before of stored.balances) {
      const after = view.balances.find(({ terms }) => terms.name === before.terms.name)!;
      if (after.hidden && !before.hidden) world.count("limit that left and stays hidden");
      if (!after.hidden && before.hidden) world.count("hidden limit that came back");
      if (before.terms.window !== undefined || after.terms.window !== undefined) continue;
      if (after.terms.capacityMilli * before.terms.period < unitsAt(before, stored.stampMs, nowMs))
        world.count("capacity lowered below the balance");
    }
  }
}

function countDebt(world: World, claims: readonly Charge[], nowMs: number): void {
  const isDebt = claims.some(({ view, tokens }) =>
    view.balances.some(
      (balance) =>
        !balance.hidden &&
        listTokens(tokens, balance.terms.name) === 0 &&
        unitsAt(balance, view.stampMs, nowMs) < 0n,
    ),
  );
  if (isDebt) world.count("refusal for the debt of a limit that is not named");
}
