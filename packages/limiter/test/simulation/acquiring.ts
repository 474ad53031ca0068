import { type AcquireRequest, type Lease } from "zae-limiter";
import { LIMIT_NAMES, LIMIT_SETS } from "./fixtures.ts";
import { toSpec, type LimitSpec } from "../oracle/terms.ts";
import { chosenWants, isOutdated } from "./chosen-amounts.ts";
import type { Client } from "./client.ts";
import { compareRefusal } from "./compare.ts";
import { countDecision } from "./decision-counts.ts";
import { compareConsumed, type HeldLease } from "./held-lease.ts";
import { act, end } from "./lease-actions.ts";
import { BrokenPromise, type Call, type Verdict } from "../oracle/oracle.ts";
import { faultText, toOutcome, leftBuckets, reachedBuckets, type Outcome } from "./outcome.ts";
import type { AcquireStep } from "./steps.ts";
import type { World } from "./world.ts";

class WorkFailed extends Error {}

/** A client takes, and may do its work at once. */
export async function acquire(world: World, step: AcquireStep): Promise<void> {
  const client = world.client(step.client);
  const nowMs = client.now();
  const { entityId, resource } = step;
  const override = step.override === undefined ? undefined : chosenLimits(world, step);
  const wants = chosenWants(world, step, override, nowMs);
  const [own, also] = wants;
  const call: Call = { entityId, wants, override };
  const request: AcquireRequest = {
    entityId,
    resource,
    consume: own.tokens,
    onUnavailable: step.onUnavailable,
    ...(override !== undefined && { limits: override }),
    ...(also !== undefined && { also: { [also.resource]: also.tokens } }),
  };
  world.focus = { entityId, resource };
  await decideAndDo(world, client, { step, call, request });
}

/** Limits for one call, which may change only the capacity of a quota or session. */
function chosenLimits(
  { oracle }: World,
  { entityId, resource, override = 0 }: AcquireStep,
): readonly LimitSpec[] {
  const held = [
    ...(oracle.bucket(entityId, resource)?.balances.map(({ terms }) => terms) ?? []),
    ...(oracle.config.resolve(entityId, resource)?.wanted ?? []),
  ];
  const underOverride = (wanted: LimitSpec): LimitSpec => {
    const terms = held.find(({ name }) => name === wanted.name);
    const isRate = wanted.kind === undefined && terms?.window === undefined;
    return terms === undefined || isRate ? wanted : { ...toSpec(terms), capacity: wanted.capacity };
  };
  return LIMIT_SETS[override % LIMIT_SETS.length]!.map(underOverride);
}

/**
 * Goes to the time at which the last refused call fits, or a millisecond before it, and tries it
 * again.
 */
export async function retry(world: World, early: boolean): Promise<void> {
  const refused = world.lastRefused;
  if (refused === undefined || !Number.isFinite(refused.fitsAtMs)) return;
  const { entityId, wants, override } = refused.call;
  if (wants.some(({ resource }) => isOutdated(world, { entityId, resource, override }))) return;
  const client = world.client(refused.client);
  const wasAlone = refused.stepNumber === world.stepNumber - 1;
  const moveMs = refused.fitsAtMs - (early ? 1 : 0) - client.now();
  if (client.loose && moveMs < 0) return;
  world.moveClock(moveMs);
  const before = world.leases.length;
  const isAtEnd = endsNow(world, refused.call, client.now());
  world.focus = { entityId: refused.request.entityId, resource: refused.request.resource };
  await decideAndDo(world, client, {
    step: undefined,
    call: refused.call,
    request: refused.request,
  });
  if (!wasAlone) return;
  const granted = world.leases.length > before;
  if (granted === early)
    throw new BrokenPromise(
      early
        ? "a call was granted before the promised time"
        : "a call was refused at the promised time",
    );
  world.count(early ? "retry a millisecond early refused" : "retry at the promised time granted");
  if (!early && isAtEnd) world.count("retry at the end of a window granted");
}

function endsNow({ oracle }: World, { entityId, wants }: Call, nowMs: number): boolean {
  return wants.some(({ resource }) =>
    oracle.bucket(entityId, resource)?.balances.some(({ endMs }) => endMs === nowMs),
  );
}

interface Attempt {
  /** Undefined for a repeated call: no faults, and the lease is kept. */
  readonly step: AcquireStep | undefined;
  readonly call: Call;
  readonly request: AcquireRequest;
}

async function decideAndDo(
  world: World,
  client: Client,
  { step, call, request }: Attempt,
): Promise<void> {
  const nowMs = client.now();
  const verdict = world.oracle.decide(call, nowMs);
  const fault = step?.fault;
  world.say(
    () =>
      `client ${client.index} asks at ${nowMs}: ${JSON.stringify(request)}${faultText([fault])}, which must be ${verdict.kind}`,
  );
  client.faults = [fault];
  if (step?.how === "callback" && (fault === undefined || step.onUnavailable === "allow"))
    return during(world, client, { step, call, request }, verdict);
  const outcome = await tryCall(client, request, step?.how ?? "try");
  const held = await arrived(world, client, { step, call, request }, verdict, outcome);
  if (held !== undefined) world.leases.push(held);
  else if (fault !== undefined && outcome.kind === "unavailable" && step?.crashIfLost) {
    world.count("crash after a lost answer");
    await world.crash(client);
  }
}

async function tryCall(
  client: Client,
  request: AcquireRequest,
  how: AcquireStep["how"],
): Promise<Outcome> {
  try {
    if (how === "try") {
      const result = await client.limiter.tryAcquire(request);
      if (!result.granted) return { kind: "refused", refusal: result.refusal };
      return { kind: result.lease.degraded ? "degraded" : "granted", lease: result.lease };
    }
    const lease = await client.limiter.acquire(request);
    return { kind: lease.degraded ? "degraded" : "granted", lease };
  } catch (error) {
    return toOutcome(error);
  }
}

/** The form of `acquire` that ends the lease itself. */
async function during(
  world: World,
  client: Client,
  attempt: Attempt & { readonly step: AcquireStep },
  verdict: Verdict,
): Promise<void> {
  const { step, request } = attempt;
  let held: HeldLease | undefined;
  let crash: () => void;
  const crashed = new Promise<"crashed">((resolve) => {
    crash = () => resolve("crashed");
  });
  const work = async (lease: Lease): Promise<string> => {
    held = await arrived(world, client, attempt, verdict, {
      kind: lease.degraded ? "degraded" : "granted",
      lease,
    });
    for (const action of held === undefined ? [] : step.actions) await act(world, held!, action);
    client.faults = step.endFaults;
    client.failedEnds = 0;
    if (step.ending === "crash") crash();
    if (step.ending === "crash") return new Promise<string>(() => {});
    if (step.ending === "throw") throw new WorkFailed();
    return "done";
  };
  const answer = await Promise.race([client.limiter.acquire(request, work), crashed]).catch(
    (error: unknown) => {
      if (error instanceof WorkFailed) return "thrown";
      if (error instanceof BrokenPromise) throw error;
      return toOutcome(error);
    },
  );
  if (held === undefined) {
    if (typeof answer === "string") return;
    await arrived(world, client, attempt, verdict, answer);
    return;
  }
  world.say(() => `its work ends: ${JSON.stringify(answer)}${faultText(step.endFaults)}`);
  if (answer === "crashed") {
    world.count("crash within the callback");
    world.leases.push(held);
    return world.crash(client);
  }
  if (answer !== (step.ending === "throw" ? "thrown" : "done"))
    throw new BrokenPromise(`acquire answered ${JSON.stringify(answer)}`);
  if (answer === "thrown") world.count("callback that throws");
  const failed = end(
    world,
    held,
    answer === "thrown" ? "rollback" : "commit",
    step.endFaults,
    client.now(),
  );
  if (failed !== (client.failedEnds === 1))
    throw new BrokenPromise("onSettlementFailed was called wrongly");
}

/**
 * Compares what came of a call with what had to, and lets the oracle carry it out. Answers the
 * lease, if there is one to use.
 */
async function arrived(
  world: World,
  client: Client,
  attempt: Attempt,
  verdict: Verdict,
  outcome: Outcome,
): Promise<HeldLease | undefined> {
  const nowMs = client.now();
  const { step, call, request } = attempt;
  const { oracle } = world;
  const fault = step?.fault;
  if (fault !== undefined && !(verdict.kind === "invalid" && fault === "error-after")) {
    const expected = step?.onUnavailable === "allow" ? "degraded" : "unavailable";
    if (outcome.kind !== expected)
      throw new BrokenPromise(
        `a call whose store failed was ${outcome.kind}, and must be ${expected}`,
      );
    world.count(
      fault === "error-before" ? "request lost before a take" : "answer lost after a take",
    );
    if (outcome.kind === "degraded") world.count("lease granted without the store");
    // Charged at most this call's own cost: each bucket shows whether it was reached.
    if (fault === "error-after" && verdict.kind !== "invalid") {
      const left = await leftBuckets(client, verdict, nowMs);
      oracle.carryOut(verdict, nowMs, {
        left,
        reached: await reachedBuckets(client, verdict, nowMs, left),
      });
    }
    return undefined;
  }
  if (outcome.kind !== verdict.kind)
    throw new BrokenPromise(`a call was ${outcome.kind}, and must be ${verdict.kind}`);
  if (verdict.kind === "invalid") {
    world.count("invalid call");
    return undefined;
  }
  countDecision(world, verdict, call, nowMs);
  const oracleLease = oracle.carryOut(verdict, nowMs, {
    left: await leftBuckets(client, verdict, nowMs),
  });
  if (outcome.kind === "refused") {
    const { statuses, retryAfterSeconds } = outcome.refusal;
    compareRefusal(statuses, retryAfterSeconds, verdict, { nowMs, loose: client.loose });
    const fitsAtMs = nowMs + Math.round(retryAfterSeconds * 1000);
    world.lastRefused = {
      client: client.index,
      request,
      call,
      stepNumber: world.stepNumber,
      fitsAtMs,
    };
    return undefined;
  }
  if (!("lease" in outcome)) return undefined;
  for (const { resource, tokens } of call.wants) oracleLease.noteTaken(resource, tokens);
  const held: HeldLease = {
    client,
    lease: outcome.lease,
    oracleLease,
    resources: call.wants.map(({ resource }) => resource),
    override: call.override,
    known: new Map(
      call.wants.map(({ resource }) => [
        resource,
        LIMIT_NAMES.filter((name) => oracle.config.knows(call.entityId, resource, name)),
      ]),
    ),
    tookMore: false,
  };
  compareConsumed(held);
  return held;
}
