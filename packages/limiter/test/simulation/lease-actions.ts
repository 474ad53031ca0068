import { RateLimiterUnavailable, ValidationError } from "zae-limiter";
import { LIMIT_NAMES } from "./fixtures.ts";
import { chosenAmounts, isOutdated } from "./chosen-amounts.ts";
import { compareRefusal } from "./compare.ts";
import { compareConsumed, type HeldLease } from "./held-lease.ts";
import { BrokenPromise } from "../oracle/oracle.ts";
import { listTokens, type Tokens } from "../oracle/oracle-bucket.ts";
import { faultText, toOutcome, leftBuckets, reachedBuckets, type Outcome } from "./outcome.ts";
import type { FaultChoice, LeaseAction, Step } from "./steps.ts";
import { countEnd } from "./window-counts.ts";
import type { World } from "./world.ts";

/** A caller does something with an open lease. */
export async function useLease(
  world: World,
  { lease, action }: Extract<Step, { kind: "use" }>,
): Promise<void> {
  const held = world.leases[lease % Math.max(1, world.leases.length)];
  if (held !== undefined) await act(world, held, action);
}

/** A caller ends its lease. */
export async function endLease(
  world: World,
  { lease, how, faults }: Extract<Step, { kind: "end" }>,
): Promise<void> {
  const held = world.leases[lease % Math.max(1, world.leases.length)];
  if (held === undefined) return;
  world.say(
    () =>
      `client ${held.client.index} ends its lease of ${held.lease.entityId} by ${how}${faultText(faults)}`,
  );
  const { client } = held;
  const nowMs = client.now();
  client.faults = faults;
  client.failedEnds = 0;
  let rejected = false;
  if (how === "dispose") await held.lease[Symbol.asyncDispose]();
  else
    await held.lease[how]().catch((error: unknown) => {
      if (!(error instanceof RateLimiterUnavailable)) throw error;
      rejected = true;
    });
  if (how === "dispose") world.count("lease that ends with its block");
  const failed = end(world, held, how === "commit" ? "commit" : "rollback", faults, nowMs);
  if (failed !== (how === "dispose" ? client.failedEnds === 1 : rejected))
    throw new BrokenPromise(`the end of the lease failed: ${!failed}`);
}

/** One thing that a caller does with its lease. */
export async function act(world: World, held: HeldLease, action: LeaseAction): Promise<void> {
  const { client, lease, oracleLease } = held;
  const nowMs = client.now();
  const resource = held.resources[action.resource % held.resources.length]!;
  const part = lease.resourceLease(resource);
  // A process may remember that a level had no limit of a name, or had one.
  const isKnown = (name: string): boolean =>
    held.override === undefined &&
    held.known.get(resource)!.includes(name) &&
    world.oracle.config.knows(lease.entityId, resource, name);
  const names = LIMIT_NAMES.filter(
    (name) => oracleLease.names(resource).includes(name) || isKnown(name),
  );
  const view = { entityId: lease.entityId, resource, override: held.override };
  const choices = action.amounts.filter(({ name }) => names.includes(name));
  if (action.kind === "consume")
    return consumeMore(
      world,
      held,
      resource,
      chosenAmounts(world, view, choices, nowMs),
      action.fault,
    );
  const amounts = Object.fromEntries(
    choices.map(({ name, mode, tokens }) => [
      name,
      mode === "fixed" ? tokens : oracleLease.total(resource, name),
    ]),
  );
  world.say(
    () =>
      `client ${client.index} on its lease of ${lease.entityId} on ${resource}: ${action.kind} ${JSON.stringify(amounts)}`,
  );
  const tooMuch = names.some(
    (name) => listTokens(amounts, name) > oracleLease.total(resource, name),
  );
  let rejected = false;
  try {
    part[action.kind](amounts);
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
    rejected = true;
  }
  if (rejected !== (action.kind === "release" && tooMuch))
    throw new BrokenPromise(`${action.kind} was ${rejected ? "refused" : "taken"}`);
  if (rejected) return;
  if (action.kind === "settle") oracleLease.settleTo(resource, amounts);
  else oracleLease.adjust(resource, action.kind === "adjust" ? amounts : negative(amounts));
  compareConsumed(held);
}

async function consumeMore(
  world: World,
  held: HeldLease,
  resource: string,
  tokens: Tokens,
  fault: FaultChoice,
): Promise<void> {
  const { client, lease, oracleLease, override } = held;
  const nowMs = client.now();
  if (isOutdated(world, { entityId: lease.entityId, resource, override })) return;
  world.focus = { entityId: lease.entityId, resource };
  const verdict = world.oracle.decide(
    { entityId: lease.entityId, wants: [{ resource, tokens }], override: held.override },
    nowMs,
  );
  const expected = verdict.kind;
  world.say(
    () =>
      `client ${client.index} takes more of ${resource} on its lease of ${lease.entityId}: ${JSON.stringify(tokens)}${faultText([fault])}, which must be ${expected}`,
  );
  client.faults = [fault];
  let outcome: Outcome | { readonly kind: "granted" } = { kind: "granted" };
  try {
    await lease.resourceLease(resource).consume(tokens);
  } catch (error) {
    outcome = toOutcome(error);
  }
  client.faults = [];
  if (verdict.kind === "invalid" && fault !== "error-before") {
    if (outcome.kind !== "invalid")
      throw new BrokenPromise(`a further take was ${outcome.kind}, and must be invalid`);
    return;
  }
  if (fault !== undefined) {
    if (outcome.kind !== "unavailable")
      throw new BrokenPromise(`a further take whose store failed was ${outcome.kind}`);
    world.count(
      fault === "error-before"
        ? "request lost before a further take"
        : "answer lost after a further take",
    );
    if (fault === "error-after" && verdict.kind !== "invalid") {
      const left = await leftBuckets(client, verdict, nowMs);
      const reached = await reachedBuckets(client, verdict, nowMs, left);
      world.oracle.carryOut(verdict, nowMs, { extending: oracleLease, left, reached });
    }
    return;
  }
  if (outcome.kind !== verdict.kind || verdict.kind === "invalid")
    throw new BrokenPromise(`a further take was ${outcome.kind}, and must be ${verdict.kind}`);
  world.count(
    verdict.kind === "granted"
      ? "further take of a lease granted"
      : "further take of a lease refused",
  );
  world.oracle.carryOut(verdict, nowMs, {
    extending: oracleLease,
    left: await leftBuckets(client, verdict, nowMs),
  });
  if ("refusal" in outcome)
    return compareRefusal(outcome.refusal.statuses, outcome.refusal.retryAfterSeconds, verdict, {
      nowMs,
      loose: client.loose,
    });
  held.tookMore = true;
  oracleLease.noteTaken(resource, tokens);
  compareConsumed(held);
}

/** The attempts that the end of a lease gets before it is given up. */
const END_ATTEMPTS = 3;

/** Lets the oracle end a lease; returns whether its end had to fail. */
export function end(
  world: World,
  held: HeldLease,
  how: "commit" | "rollback",
  faults: readonly FaultChoice[],
  nowMs: number,
): boolean {
  const { oracleLease, client } = held;
  client.faults = [];
  world.leases = world.leases.filter((other) => other !== held);
  const isWritten = how === "rollback" || oracleLease.hasDifferences;
  if (how === "rollback") world.count("rollback");
  else if (!isWritten) world.count("commit without difference");
  if (!isWritten) return false;
  const attempts = Array.from({ length: END_ATTEMPTS }, (_, index) => faults[index]);
  const failed = attempts.every((fault) => fault !== undefined);
  const reached = !failed || attempts.includes("error-after");
  if (failed && how === "commit")
    world.count(
      reached ? "settlement whose answers were all lost" : "settlement that never arrived",
    );
  if (failed && how === "rollback")
    world.count(reached ? "give-back whose answers were all lost" : "give-back that never arrived");
  if (!failed && faults.length > 0) world.count("end of a lease that needed a second attempt");
  if (!reached) return failed;
  if (how === "rollback") {
    for (const part of oracleLease.parts)
      countEnd(world, "rolled back", { part, tokens: negative(part.tokens) }, nowMs);
    world.oracle.giveBack(oracleLease, nowMs);
  } else {
    const writes = world.oracle.getSettlement(oracleLease);
    for (const write of writes) countEnd(world, "settled", write, nowMs);
    const amounts = writes.flatMap(({ tokens }) => Object.values(tokens));
    if (writes.some(({ counted }) => Object.keys(counted).length > 0))
      world.count("commit that only counts");
    if (amounts.some((tokens) => tokens > 0)) world.count("commit that charges more");
    if (amounts.some((tokens) => tokens < 0)) world.count("commit that gives back");
    world.oracle.settle(oracleLease, nowMs);
  }
  return failed;
}

function negative(tokens: Tokens): Tokens {
  return Object.fromEntries(Object.entries(tokens).map(([name, amount]) => [name, -amount]));
}
