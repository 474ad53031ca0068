import { LeaseExpiredError } from "../core/errors.ts";
import type { Lease } from "../limiter/lease.ts";
import { warnOnce } from "./misuse.ts";
import type { HttpLimitOptions, HttpOutcome } from "./options.ts";

/** Where the lease of a request is kept: on the request itself, so that both are freed together. */
const LEASE = Symbol("zae-limiter lease");

/** A request that a middleware has taken a lease for. */
interface Leased {
  [LEASE]?: Lease;
}

/**
 * The lease that a middleware took for this request; with several, the innermost.
 * @example leaseOf(request)?.settle({ tpm: answer.usage.total_tokens });
 */
export function leaseOf(request: object): Lease | undefined {
  return (request as Leased)[LEASE];
}

/**
 * A `settle` for "failed requests cost nothing": status 400 and above.
 * @example limitRequests({ ...options, settle: giveBackFailures });
 */
export function giveBackFailures(outcome: { readonly status: number }): "give-back" | undefined {
  return outcome.status >= 400 ? "give-back" : undefined;
}

/** The lease of one request. It is ended once, by whatever happens first. */
export class HeldLease<Q> {
  readonly #options: HttpLimitOptions<Q>;
  readonly #request: Q;
  readonly #lease: Lease;
  #isEnded = false;

  constructor(options: HttpLimitOptions<Q>, request: Q, lease: Lease) {
    this.#options = options;
    this.#request = request;
    this.#lease = lease;
    (request as Leased)[LEASE] = lease;
  }

  /** Settles what the request has cost. Failures of the store are reported, and never thrown. */
  end(outcome: Omit<HttpOutcome<Q>, "request">): void {
    this.#endWith(() => this.#settle(outcome));
  }

  /** Gives everything back: the handler will not run. */
  giveBack(): void {
    this.#endWith(() => this.#lease.finish("rollback"));
  }

  #endWith(write: () => Promise<void>): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    const settled = write();
    this.#options.waitUntil?.(settled);
  }

  async #settle(outcome: Omit<HttpOutcome<Q>, "request">): Promise<void> {
    const lease = this.#lease;
    try {
      const verdict = await this.#options.settle?.({ request: this.#request, ...outcome }, lease);
      if (verdict === "give-back") return await lease.finish("rollback");
      if (verdict !== undefined) lease.settle(verdict);
    } catch (error) {
      // The handler may have ended the lease itself. Then there is nothing left to settle.
      if (!(error instanceof LeaseExpiredError))
        warnOnce(
          "WARN_LIMITER_SETTLE_FAILED",
          `The settle function of a middleware failed, so what was taken stays charged: ${String(error)}`,
        );
    }
    // As after an error: the response was sent, so nobody could catch what this would throw.
    await lease.finish("commit", true);
  }
}
