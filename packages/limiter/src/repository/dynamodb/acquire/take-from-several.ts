import type { ReceiptPart, Refused, Taken } from "./receipt.ts";
import type { WantedClaim } from "./wanted-claim.ts";

/** How one bucket is taken from, and how that is undone. */
interface Steps {
  readonly take: (claim: WantedClaim) => Promise<Taken | Refused>;
  /**
   * Gives a part back. Does not fail when the store is unavailable: the part then stays charged.
   */
  readonly giveBack: (part: ReceiptPart) => Promise<void>;
}

/** Refused as of a time; the claims have the policies that were found meanwhile. */
export interface SeveralRefused {
  readonly kind: "refused";
  readonly atMs: number;
  readonly claims: readonly WantedClaim[];
}

/**
 * Takes from several buckets at the same time, all or none. Two calls may refuse each other; each
 * then looks again after a pause of its own (buckets.ts), which is why no order is kept: takes in
 * one order, one after another, granted the same in as much time.
 */
export async function takeFromSeveral(
  claims: readonly WantedClaim[],
  { take, giveBack }: Steps,
): Promise<Taken | SeveralRefused> {
  const results = await Promise.allSettled(claims.map(async (claim) => take(claim)));
  const taken = results.filter(isTaken);
  const parts = taken.flatMap(({ value }) => value.parts);
  if (taken.length === claims.length) return { kind: "taken", parts };
  await Promise.all(parts.map(giveBack));
  const failed = results.find((result) => result.status === "rejected");
  if (failed !== undefined) throw failed.reason;
  const refusal = results.find((result) => !isTaken(result)) as PromiseFulfilledResult<Refused>;
  return {
    kind: "refused",
    atMs: refusal.value.atMs,
    claims: claims.map((claim, index) => withDecidedPolicy(claim, results[index]!)),
  };
}

type TakeResult = PromiseSettledResult<Taken | Refused>;

function isTaken(result: TakeResult): result is PromiseFulfilledResult<Taken> {
  return result.status === "fulfilled" && result.value.kind === "taken";
}

/** The claim with the policy that it was last decided with. */
function withDecidedPolicy(claim: WantedClaim, result: TakeResult): WantedClaim {
  if (result.status === "rejected") return claim;
  if (result.value.kind === "refused") return result.value.claim;
  const policy = result.value.parts[0]?.policy;
  return policy === undefined ? claim : { ...claim, policy };
}
