import {
  RateLimiterUnavailable,
  RateLimitExceeded,
  ValidationError,
  type Lease,
} from "zae-limiter";
import type { Client } from "./client.ts";
import { differenceOf } from "./compare.ts";
import { charged, type OracleBucket } from "../oracle/oracle-bucket.ts";
import { BrokenPromise, bucketAfter, type Charge, type Decision } from "../oracle/oracle.ts";
import type { FaultChoice } from "./steps.ts";

/** What came of a call. */
export type Outcome =
  | { readonly kind: "granted" | "degraded"; readonly lease: Lease }
  | { readonly kind: "refused"; readonly refusal: RateLimitExceeded }
  | { readonly kind: "invalid" | "unavailable" };

/** The outcome that an error stands for. */
export function outcomeOf(error: unknown): Outcome {
  if (error instanceof RateLimitExceeded) return { kind: "refused", refusal: error };
  if (error instanceof RateLimiterUnavailable) return { kind: "unavailable" };
  if (error instanceof ValidationError) return { kind: "invalid" };
  throw error;
}

/**
 * What a call left behind in each bucket. A refusal on a loose backend may have been a grant in one
 * bucket before another refused: what was taken is back, but the bucket is under the call's limits,
 * and exists.
 */
export async function leftBuckets(
  client: Client,
  verdict: Decision,
  nowMs: number,
): Promise<(charge: Charge) => OracleBucket | undefined> {
  const left = new Map<Charge, OracleBucket | undefined>();
  for (const charge of verdict.charges) {
    const after = bucketAfter(verdict.kind, charge, nowMs);
    left.set(charge, after);
    if (!client.loose || verdict.kind === "granted" || verdict.charges.length === 1) continue;
    const states = await client.repository.getBuckets(charge.entityId, {
      resource: charge.resource,
    });
    const isAfter =
      after === undefined
        ? states.length === 0
        : differenceOf(states, after, { nowMs, loose: true }) === undefined;
    if (!isAfter) left.set(charge, charged(charge.view, {}, nowMs));
  }
  return (charge) => left.get(charge);
}

/**
 * Reads which buckets a call reached whose answer was lost: each is as after the decision, or
 * untouched, and nothing in between.
 */
export async function reachedBuckets(
  { repository, loose }: Client,
  verdict: Decision,
  nowMs: number,
  left: (charge: Charge) => OracleBucket | undefined,
): Promise<(charge: Charge) => boolean> {
  const reached = new Map<Charge, boolean>();
  for (const charge of verdict.charges) {
    const states = await repository.getBuckets(charge.entityId, { resource: charge.resource });
    const after = left(charge);
    const wrong =
      after === undefined
        ? "a refusal made a bucket"
        : differenceOf(states, after, { nowMs, loose });
    reached.set(charge, after === undefined ? false : wrong === undefined);
    const untouched =
      charge.stored === undefined
        ? states.length === 0
        : differenceOf(states, charge.stored, { nowMs, loose }) === undefined;
    if (wrong !== undefined && !untouched)
      throw new BrokenPromise(`a lost answer left ${charge.key} in between: ${wrong}`);
  }
  return (charge) => reached.get(charge)!;
}

/** Faults as they stand in a story. */
export function faultText(faults: readonly FaultChoice[]): string {
  const named = faults.filter((fault) => fault !== undefined);
  return named.length === 0 ? "" : ` [${named.join(", ")}]`;
}
