import type { ReceiptPart, Refused, Taken } from "./receipt.ts";
import type { WantedCharge } from "./wanted-charge.ts";

/** How one bucket is taken from, and how that is undone. */
interface Steps {
  readonly take: (charge: WantedCharge) => Promise<Taken | Refused>;
  /**
   * Gives a part back. Does not fail when the store is unavailable: the part then stays charged.
   */
  readonly giveBack: (part: ReceiptPart) => Promise<void>;
}

/** Refused as of a time; the charges have the policies that were found meanwhile. */
export interface SeveralRefused {
  readonly kind: "refused";
  readonly atMs: number;
  readonly charges: readonly WantedCharge[];
}

/**
 * Takes from several buckets at the same time, all or none. Two calls may refuse each other; each
 * then looks again after a pause of its own (buckets.ts), which is why no order is kept: takes in
 * one order, one after another, granted the same in as much time.
 */
export async function takeFromSeveral(
  charges: readonly WantedCharge[],
  { take, giveBack }: Steps,
): Promise<Taken | SeveralRefused> {
  const results = await Promise.allSettled(charges.map(async (charge) => take(charge)));
  const taken = results.filter(isTaken);
  const parts = taken.flatMap(({ value }) => value.parts);
  if (taken.length === charges.length) return { kind: "taken", parts };
  await Promise.all(parts.map(giveBack));
  const failed = results.find((result) => result.status === "rejected");
  if (failed !== undefined) throw failed.reason;
  const refusal = results.find((result) => !isTaken(result)) as PromiseFulfilledResult<Refused>;
  return {
    kind: "refused",
    atMs: refusal.value.atMs,
    charges: charges.map((charge, index) => withPolicyOf(charge, results[index]!)),
  };
}

type TakeResult = PromiseSettledResult<Taken | Refused>;

function isTaken(result: TakeResult): result is PromiseFulfilledResult<Taken> {
  return result.status === "fulfilled" && result.value.kind === "taken";
}

/** The charge with the policy that it was last decided with. */
function withPolicyOf(charge: WantedCharge, result: TakeResult): WantedCharge {
  if (result.status === "rejected") return charge;
  if (result.value.kind === "refused") return result.value.charge;
  const policy = result.value.parts[0]?.policy;
  return policy === undefined ? charge : { ...charge, policy };
}
