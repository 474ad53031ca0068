import { endSafely, type EndCost } from "../limiter/end-safely.ts";
import type { Lease } from "../limiter/lease.ts";
import type { RateLimiter } from "../limiter/rate-limiter.ts";
import type { MaybePromise } from "../repository/port.ts";
import { warnOnce } from "../warnings/warn-once.ts";
import type { HttpLimitOptions, HttpOutcome } from "./options.ts";

/** Where the lease of a request is kept: on the request itself, so that both are freed together. */
const HELD = Symbol("zae-limiter lease");

/** A request that a middleware has taken a lease for. */
interface Leased {
  [HELD]?: { readonly lease: Lease; readonly limiter: RateLimiter };
}

/**
 * The lease that a middleware took for this request; with several, the innermost.
 * @example getLease(request)?.settle({ tpm: answer.usage.total_tokens });
 */
export function getLease(request: object): Lease | undefined {
  return (request as Leased)[HELD]?.lease;
}

/**
 * A `settle` for "failed requests cost nothing": status 400 and above.
 * @example limitRequests({ ...options, settle: giveBackFailures });
 */
export function giveBackFailures(outcome: {
  /** The status of the response. */
  readonly status: number;
}): "give-back" | undefined {
  return outcome.status >= 400 ? "give-back" : undefined;
}

/** How a request ended, as its adapter reports it. */
export type RequestEnd = Omit<HttpOutcome<unknown>, "request">;

/** The lease of one request. It ends once, with whatever happens first. */
export class RequestLease<Q> {
  readonly lease: Lease;
  readonly #options: HttpLimitOptions<Q>;
  readonly #request: Q;
  /** Resolves the promise that `waitUntil` got. */
  #resolveSettled: ((settled: Promise<void>) => void) | undefined;
  #isEnded = false;

  constructor(options: HttpLimitOptions<Q>, request: Q, lease: Lease) {
    this.lease = lease;
    this.#options = options;
    this.#request = request;
    const leased = request as Leased;
    const outer = leased[HELD];
    if (outer?.limiter === this.limiter) warnIfTwice(outer.lease, lease);
    leased[HELD] = this;
    if (options.waitUntil !== undefined) this.#announceEnd(options.waitUntil);
  }

  /** Lets `getLease` find the lease by another object that stands for the request. */
  alsoFor(request: object): void {
    (request as Leased)[HELD] = this;
  }

  get limiter(): RateLimiter {
    return this.#options.limiter;
  }

  /** Settles the cost of the request. Failures are reported, and never thrown. */
  end(end: RequestEnd): void {
    const { settle } = this.#options;
    this.#endOnce(() => (settle === undefined ? "as taken" : this.#findCost(settle, end)));
  }

  /** Gives everything back: the handler will not run. */
  giveBack(): void {
    this.#endOnce(() => "give-back");
  }

  #endOnce(findCost: () => MaybePromise<EndCost>): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    const settled = endSafely(this.lease, findCost, warnOfFailure);
    this.#resolveSettled?.(settled);
  }

  /**
   * Before the handler runs: after the last byte of a response, a platform may not run anything.
   */
  #announceEnd(waitUntil: (settled: Promise<void>) => void): void {
    const settled = new Promise<void>((resolve) => {
      this.#resolveSettled = resolve;
    });
    // It may throw, and reject if it is asynchronous.
    (async () => waitUntil(settled))().catch(warnOfFailure);
  }

  async #findCost(
    settle: NonNullable<HttpLimitOptions<Q>["settle"]>,
    end: RequestEnd,
  ): Promise<EndCost> {
    return (await settle({ request: this.#request, ...end }, this.lease)) ?? "as taken";
  }
}

function warnIfTwice(outer: Lease, inner: Lease): void {
  if (outer.entityId === inner.entityId && outer.resource === inner.resource)
    warnOnce(
      "WARN_LIMITER_LIMITED_TWICE",
      `Two middlewares of one limiter took from ${inner.resource} of one entity for one request. It ` +
        "counts as two. Is one of them for all routes, and the other for this one? Take everything " +
        "in one of them, or use different resources.",
    );
}

/** The charge stays: a mistake of the application must not lift the limits. */
function warnOfFailure(error: unknown): void {
  warnOnce(
    "WARN_LIMITER_SETTLE_FAILED",
    `A function of the application failed at the end of a request: ${String(error)}. The ` +
      "request stays charged as taken, unless the handler has settled it.",
  );
}
