/*
 * What becomes of the members of a batch whose write got no answer. Each shares the fate of its
 * writes (unanswered-writes.ts):
 *
 *   applied      ──▶ done. A take that was rejected meanwhile is given back
 *   not applied  ──▶ decided again
 *   pending      ──▶ decided again, by a write that rules the earlier ones out
 *   unknown      ──▶ the side that charges more is assumed: a take is not granted, a give-back is
 *                    not repeated, and of an overrun only what it charges is. A charge is neither:
 *                    it is rejected, and its caller decides
 */
import { addAmounts, NO_AMOUNTS } from "../../../core/amounts.ts";
import { countAmounts } from "../../../core/bucket/counted-amounts.ts";
import { divideByNames, negate } from "../../../core/bucket/decision.ts";
import { RateLimiterUnavailable } from "../../../core/errors.ts";
import type { Policy } from "../../../core/bucket/policy.ts";
import { Member } from "../../group-commit.ts";
import { ENDS_LEASE, onlyCharged, positiveCosts, UNDER_POLICY } from "./batch-decision.ts";
import type { BucketImage } from "../items/bucket-item.ts";
import type { BucketKey } from "../items/bucket-key.ts";
import { OperationHistory, UnansweredWrite } from "./unanswered-writes.ts";
import type { RepeatableOperation, WriteIntent, WriteOutcome } from "./write-intent.ts";
import { buildAppliedOutcome, type PlannedWrite } from "./write-plan.ts";

/** An intent that is queued or being written. */
export interface Work {
  readonly intent: WriteIntent;
  readonly operation: RepeatableOperation;
  /** The policy that it was last decided with; only the writer sets it. */
  policy: Policy | undefined;
}

/** One intent of a batch. */
export type BatchMember = Member<Work, WriteOutcome>;

/** Concludes a member that was sent before, if its fate is known. */
export function concludeIfKnown(
  key: BucketKey,
  member: BatchMember,
  image: BucketImage | undefined,
): void {
  const { intent, operation, policy } = member.work;
  const { history } = operation;
  if (history === undefined || !history.isUnanswered) return;
  const { applied, fate } = history;
  if (applied !== undefined) {
    // The limits may have changed since, and with them what is charged and what is only counted.
    const decided = UNDER_POLICY.has(intent.kind) ? applied.policy : undefined;
    member.resolve(buildAppliedOutcome(applied.incarnation, image, decided ?? policy!));
  }
  if (fate !== "unknown") return;
  if (UNDER_POLICY.has(intent.kind)) member.reject(outcomeUnknown(key));
  else if (intent.kind !== "overrun" || Object.keys(positiveCosts(intent.costs)).length === 0)
    member.resolve(buildAppliedOutcome(undefined, image, policy!));
  else history.keepOnlyCharges();
}

/** A write without an answer, in the histories of the members that it carried. */
export function buildUnansweredWrite(
  { mark, incarnation, requires }: PlannedWrite,
  members: readonly BatchMember[],
): UnansweredWrite {
  const takes = members.filter(({ work }) => work.intent.kind === "take");
  const policy = members.find(({ work }) => UNDER_POLICY.has(work.intent.kind))?.work.policy;
  const write = new UnansweredWrite({ mark, incarnation, requires, takes, policy });
  for (const { work } of members) (work.operation.history ??= new OperationHistory()).add(write);
  return write;
}

/**
 * Rejects members whose writes were overtaken too often. What ends a lease stays open, and goes
 * with the next batch: finished work is never forgotten because other processes were faster.
 */
export function rejectContended(
  key: BucketKey,
  members: readonly BatchMember[],
  overtaken: number,
): void {
  for (const member of members)
    if (member.isOpen && !ENDS_LEASE.has(member.work.intent.kind))
      member.reject(
        unavailable(key, `too much contention, ${overtaken} writes were overtaken by others`),
      );
}

/** Whether a write of a take among the members may still arrive. */
export function hasPendingTake(members: readonly BatchMember[]): boolean {
  return members.some((member) => member.work.intent.kind === "take" && isPending(member));
}

/** Whether a write of the member may still arrive. */
function isPending({ work }: BatchMember): boolean {
  return work.operation.history?.fate === "pending";
}

/**
 * What gives back what writes took for calls that have been rejected since, now that they are known
 * to have been applied. It goes to the shard that was taken from, or nowhere, and happens at most
 * once: it has a history like any other member.
 */
export function buildGiveBacks(applied: readonly UnansweredWrite[]): readonly BatchMember[] {
  const takes = applied.flatMap(({ incarnation, rejectedTakes }) =>
    [false, true].map((isCascaded) => ({
      incarnation,
      isCascaded,
      rejected: rejectedTakes.filter(({ work }) => work.intent.isCascaded === isCascaded),
    })),
  );
  return takes.flatMap(({ incarnation, isCascaded, rejected }) => {
    const [first] = rejected;
    const costs = rejected.reduce(
      (sum, { work }) => addAmounts(sum, countAmounts(work.policy!, work.intent.costs)),
      NO_AMOUNTS,
    );
    // No batch carries more than a number holds exactly: such calls stay charged.
    const isExact = Object.values(costs).every((cost) => Number.isSafeInteger(cost));
    if (first === undefined || !isExact) return [];
    // All of them were decided with one policy.
    const policy = first.work.policy!;
    const { amounts, unlimited } = divideByNames(policy, costs);
    const intent: WriteIntent = {
      kind: "giveBack",
      costs: negate(amounts),
      unlimited: unlimited && negate(unlimited),
      isCascaded,
      requests: -rejected.reduce((sum, { work }) => sum + work.intent.requests, 0),
      policy,
      incarnation: { ...incarnation, expiredBySeconds: undefined },
    };
    return [new Member({ intent, operation: { history: undefined }, policy })];
  });
}

/** Refuses a member; while a write of it may still arrive, its outcome is unknown instead. */
export function refuse(
  key: BucketKey,
  member: BatchMember,
  refusal: Extract<WriteOutcome, { readonly kind: "refused" }>,
): void {
  if (isPending(member)) member.reject(outcomeUnknown(key));
  else member.resolve(refusal);
}

/** The error of a take that may have been applied, or not. */
function outcomeUnknown(key: BucketKey): RateLimiterUnavailable {
  return unavailable(key, "the outcome is unknown, so the call is not granted");
}

/** The error of a bucket that could not be written. */
function unavailable({ entityId, resource }: BucketKey, reason: string): RateLimiterUnavailable {
  return new RateLimiterUnavailable(`The bucket could not be written: ${reason}. Try again.`, {
    entityId,
    resource,
  });
}

/**
 * What is left to write of an operation whose give-back may have been applied. One that was sent
 * before goes to the same shard again, even if that puts it into debt: only that shard can show
 * whether the first attempt was applied.
 */
export function selectUnwritten({ intent, operation: { history } }: Work): WriteIntent {
  if (history?.onlyCharges === true) return { ...onlyCharged(intent), mayOwe: true };
  return history?.isUnanswered === true ? { ...intent, mayOwe: true } : intent;
}
