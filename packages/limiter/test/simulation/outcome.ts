import { RateLimiterUnavailable, RateLimitExceeded, ValidationError, type Lease } from "zae-limiter";
import type { Client } from "./client.ts";
import { differenceOf } from "./compare.ts";
import { BrokenPromise, bucketAfter, type Charge, type Decision } from "./oracle/oracle.ts";
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

/** Reads which buckets a call reached whose answer was lost: each is as after the decision, or untouched, and nothing in between. */
export async function reachedBuckets({ repository }: Client, verdict: Decision, nowMs: number): Promise<(charge: Charge) => boolean> {
  const reached = new Map<Charge, boolean>();
  for (const charge of verdict.charges) {
    const states = await repository.getBuckets(charge.entityId, { resource: charge.resource });
    const after = bucketAfter(verdict.kind, charge, nowMs);
    const wrong = after === undefined ? "a refusal made a bucket" : differenceOf(states, after, nowMs);
    reached.set(charge, after === undefined ? false : wrong === undefined);
    const untouched = charge.stored === undefined ? states.length === 0 : differenceOf(states, charge.stored, nowMs) === undefined;
    if (wrong !== undefined && !untouched) throw new BrokenPromise(`a lost answer left ${charge.key} in between: ${wrong}`);
  }
  return (charge) => reached.get(charge)!;
}

/** Faults as they stand in a story. */
export function faultText(faults: readonly FaultChoice[]): string {
  const named = faults.filter((fault) => fault !== undefined);
  return named.length === 0 ? "" : ` [${named.join(", ")}]`;
}
