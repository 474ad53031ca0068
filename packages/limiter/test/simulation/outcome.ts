import {
  RateLimiterUnavailable,
  RateLimitExceeded,
  ValidationError,
  type Lease,
} from "zae-limiter";
import type { Client } from "./client.ts";
import { findDifference } from "./compare.ts";
import {
  listTokens,
  readCharged,
  type LimitBalance,
  type OracleBucket,
} from "../oracle/oracle-bucket.ts";
import { isOpen, windowUnitsAt } from "../oracle/window-balance.ts";
import { BrokenPromise, bucketAfter, type Charge, type Decision } from "../oracle/oracle.ts";
import type { FaultChoice } from "./steps.ts";

/** The outcome of a call. */
export type Outcome =
  | { readonly kind: "granted" | "degraded"; readonly lease: Lease }
  | { readonly kind: "refused"; readonly refusal: RateLimitExceeded }
  | { readonly kind: "invalid" | "unavailable" };

/** The outcome that an error stands for. */
export function toOutcome(error: unknown): Outcome {
  if (error instanceof RateLimitExceeded) return { kind: "refused", refusal: error };
  if (error instanceof RateLimiterUnavailable) return { kind: "unavailable" };
  if (error instanceof ValidationError) return { kind: "invalid" };
  throw error;
}

/**
 * What a call left behind in each bucket. A refusal on a loose backend may have been a grant in one
 * bucket before another refused: the tokens are back, but the bucket is under the call's limits,
 * and exists.
 */
export async function leftBuckets(
  client: Client,
  verdict: Decision,
  nowMs: number,
): Promise<(claim: Charge) => OracleBucket | undefined> {
  const left = new Map<Charge, OracleBucket | undefined>();
  for (const claim of verdict.claims) {
    const after = bucketAfter(verdict.kind, claim, nowMs);
    left.set(claim, after);
    if (!client.loose || verdict.kind === "granted" || verdict.claims.length === 1) continue;
    const states = await client.repository.getBuckets(claim.entityId, {
      resource: claim.resource,
    });
    const isAfter =
      after === undefined
        ? states.length === 0
        : findDifference(states, after, { nowMs, loose: true }) === undefined;
    const bucket = isAfter ? after : readCharged(claim.view, {}, nowMs);
    left.set(claim, bucket && (await withOpened(client, claim, bucket, nowMs)));
  }
  return (claim) => left.get(claim);
}

/**
 * A bucket that a refused call has taken from, and given back to, may have a window that the take
 * opened: it stays open, as after a rollback.
 */
async function withOpened(
  client: Client,
  { entityId, resource, tokens }: Charge,
  bucket: OracleBucket,
  nowMs: number,
): Promise<OracleBucket> {
  const mayOpen = (balance: LimitBalance): boolean =>
    balance.terms.window !== undefined &&
    !isOpen(balance, nowMs) &&
    listTokens(tokens, balance.terms.name) > 0;
  if (!bucket.balances.some(mayOpen)) return bucket;
  const { statuses } = await client.limiter
    .check({ entityId, resource, consume: {} })
    .catch(() => ({ statuses: [] }));
  const balances = bucket.balances.map((balance): LimitBalance => {
    const { name } = balance.terms;
    const status = statuses.find((of) => of.entityId === entityId && of.limitName === name);
    return mayOpen(balance) && status?.resetsAt !== undefined
      ? openUntil(balance, status.resetsAt.getTime(), nowMs)
      : balance;
  });
  return { ...bucket, balances };
}

function openUntil(balance: LimitBalance, endMs: number, nowMs: number): LimitBalance {
  const opened = (balance.opened ?? 0) + 1;
  return { ...balance, units: windowUnitsAt(balance, nowMs), endMs, opened };
}

/**
 * Reads which buckets a call reached whose answer was lost: each is as after the decision, or
 * untouched, and nothing in between.
 */
export async function reachedBuckets(
  { repository, loose }: Client,
  verdict: Decision,
  nowMs: number,
  left: (claim: Charge) => OracleBucket | undefined,
): Promise<(claim: Charge) => boolean> {
  const reached = new Map<Charge, boolean>();
  for (const claim of verdict.claims) {
    const states = await repository.getBuckets(claim.entityId, { resource: claim.resource });
    const after = left(claim);
    const wrong =
      after === undefined
        ? "a refusal made a bucket"
        : findDifference(states, after, { nowMs, loose });
    reached.set(claim, after === undefined ? false : wrong === undefined);
    const untouched =
      claim.stored === undefined
        ? states.length === 0
        : findDifference(states, claim.stored, { nowMs, loose }) === undefined;
    if (wrong !== undefined && !untouched)
      throw new BrokenPromise(`a lost answer left ${claim.key} in between: ${wrong}`);
  }
  return (claim) => reached.get(claim)!;
}

/** Faults as they stand in a story. */
export function faultText(faults: readonly FaultChoice[]): string {
  const named = faults.filter((fault) => fault !== undefined);
  return named.length === 0 ? "" : ` [${named.join(", ")}]`;
}
