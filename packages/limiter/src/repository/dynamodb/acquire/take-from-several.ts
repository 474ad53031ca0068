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
 * Takes from several buckets, all or none. It takes from all at the same time first. When one
 * refused after another had granted, it tries once more, one bucket after another, because two such
 * calls could have refused each other.
 */
export async function takeFromSeveral(
  charges: readonly WantedCharge[],
  steps: Steps,
): Promise<Taken | SeveralRefused> {
  const together = await allOrNone(
    charges,
    await Promise.allSettled(charges.map(async (charge) => steps.take(charge))),
    steps,
  );
  if (together.kind === "taken" || !together.isHalfTaken) return together;
  return allOrNone(together.charges, await oneByOne(together.charges, steps), steps);
}

type TakeResult = PromiseSettledResult<Taken | Refused>;

/** Takes from one bucket after another, up to the first that is not taken. */
async function oneByOne(
  charges: readonly WantedCharge[],
  { take }: Steps,
): Promise<readonly TakeResult[]> {
  const results: TakeResult[] = [];
  for (const charge of charges) {
    const [result] = await Promise.allSettled([take(charge)]);
    results.push(result);
    if (!isTaken(result)) break;
  }
  return results;
}

/** Gives back what was taken, unless everything was. */
async function allOrNone(
  charges: readonly WantedCharge[],
  results: readonly TakeResult[],
  { giveBack }: Steps,
): Promise<Taken | (SeveralRefused & { readonly isHalfTaken: boolean })> {
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
    charges: charges.map((charge, index) => withPolicyOf(charge, results[index])),
    isHalfTaken: parts.length > 0,
  };
}

function isTaken(result: TakeResult): result is PromiseFulfilledResult<Taken> {
  return result.status === "fulfilled" && result.value.kind === "taken";
}

/** The charge with the policy that it was last decided with. */
function withPolicyOf(charge: WantedCharge, result: TakeResult | undefined): WantedCharge {
  if (result === undefined || result.status === "rejected") return charge;
  if (result.value.kind === "refused") return result.value.charge;
  const policy = result.value.parts[0]?.policy;
  return policy === undefined ? charge : { ...charge, policy };
}
