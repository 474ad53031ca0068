import type { ChargeRequest } from "zae-limiter";
import { chosenWants } from "./chosen-amounts.ts";
import { BrokenPromise, fitsAt, type Decision } from "../oracle/oracle.ts";
import { unitsAt } from "../oracle/oracle-bucket.ts";
import { faultText, toOutcome, type Outcome } from "./outcome.ts";
import type { ChargeStep } from "./steps.ts";
import { countOpenings } from "./window-counts.ts";
import type { World } from "./world.ts";

/** A client reports consumption that has already happened. */
export async function charge(world: World, step: ChargeStep): Promise<void> {
  const client = world.client(step.client);
  const nowMs = client.now();
  const { entityId, resource, fault } = step;
  const wants = chosenWants(world, step, undefined, nowMs);
  const [own, also] = wants;
  const request: ChargeRequest = {
    entityId,
    resource,
    amounts: own.tokens,
    ...(also !== undefined && { also: { [also.resource]: also.tokens } }),
  };
  world.focus = { entityId, resource };
  const verdict = world.oracle.decide({ entityId, wants, override: undefined }, nowMs);
  const isInvalid = verdict.kind === "invalid" && fault !== "error-before";
  const expected = isInvalid ? "invalid" : fault === undefined ? "charged" : "unavailable";
  world.say(
    () =>
      `client ${client.index} charges at ${nowMs}: ${JSON.stringify(request)}${faultText([fault])}, which must be ${expected}`,
  );
  client.faults = [fault];
  const outcome = await client.limiter.charge(request).then(
    () => "charged" as const,
    (error: unknown): Outcome["kind"] => toOutcome(error).kind,
  );
  client.faults = [];
  if (outcome !== expected)
    throw new BrokenPromise(`a charge was ${outcome}, and must be ${expected}`);
  if (fault === "error-before") return world.count("request lost before a charge");
  if (verdict.kind === "invalid") return world.count("invalid charge");
  if (fault === "error-after") world.count("answer lost after a charge");
  countCharge(world, verdict, nowMs);
  world.oracle.charge(verdict, nowMs);
}

function countCharge(world: World, { claims }: Decision, nowMs: number): void {
  const isNothing = claims.every(({ tokens, counted }) =>
    [...Object.values(tokens), ...Object.values(counted)].every((amount) => amount === 0),
  );
  if (isNothing) return world.count("charge of nothing");
  world.count("charge");
  for (const claim of claims)
    if (countOpenings(world, claim, nowMs) > 0)
      world.count("window opened by a charge or settlement");
  if (claims.some(({ stored }) => stored === undefined)) world.count("charge of a new bucket");
  if (!fitsAt(claims, nowMs)) world.count("charge that does not fit");
  const isInDebt = claims.some(({ view }) =>
    view.balances.some((balance) => unitsAt(balance, view.stampMs, nowMs) < 0n),
  );
  if (isInDebt) world.count("charge of a bucket in debt");
  if (claims.some(({ entityId }) => entityId !== claims[0]!.entityId))
    world.count("charge with a parent");
}
