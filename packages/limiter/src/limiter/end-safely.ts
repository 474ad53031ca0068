import type { Amounts } from "../core/amounts.ts";
import { LeaseExpiredError } from "../core/errors.ts";
import type { MaybePromise } from "../repository/port.ts";
import type { Lease } from "./lease.ts";

/** The cost of a call that ends without a caller: totals by limit, the estimate, or nothing. */
export type EndCost = Amounts | "as taken" | "give-back";

/**
 * Ends a lease for an adapter, beside a response or a stream that must not break. Never rejects:
 * `warn` gets the errors of callbacks and of invalid totals, and what was charged stays charged.
 */
export async function endSafely(
  lease: Lease,
  findCost: () => MaybePromise<EndCost>,
  warn: (error: unknown) => void,
): Promise<void> {
  let how: "commit" | "rollback" = "commit";
  try {
    const found = findCost();
    // A cost that is known at once ends the lease in this step.
    const cost = found instanceof Promise ? await found : found;
    if (cost === "give-back") how = "rollback";
    else if (cost !== "as taken") lease.settle(cost);
  } catch (error) {
    // The application may have ended the lease itself. Then there is nothing left to settle.
    if (!(error instanceof LeaseExpiredError)) warn(error);
  }
  await lease.finish(how, true).catch(warn);
}
