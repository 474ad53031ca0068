/*
 * The life of a request, the same for every framework. An adapter asks `admit`, does what the
 * verdict says, and tells the held lease how the request ended:
 *
 *   admit ─▶ not limited            the handler runs, without headers
 *         ─▶ granted                headers; the handler runs; held.end() when the response is
 *                                   finished, the client goes away, or the handler throws
 *         ─▶ refused, unavailable   the reply (429, 503) is sent; the handler does not run
 *         ─▶ gone                   the client went away while the request waited
 *   admit throws                    a mistake of the application, which is never a 429
 */
import { RateLimitExceeded } from "../core/bucket/refusal.ts";
import { RateLimiterUnavailable } from "../core/errors.ts";
import type { AcquireRequest } from "../limiter/call.ts";
import type { Lease } from "../limiter/lease.ts";
import { rateLimitHeaders } from "./headers/rate-limit-headers.ts";
import { HeldLease } from "./held-lease.ts";
import type { HttpLimitOptions } from "./options.ts";
import { refusedReply, unavailableReply, type HeaderFields, type Reply } from "./reply.ts";

/** What becomes of a request. */
export type Admission<Q> =
  | { readonly verdict: "not limited" }
  | { readonly verdict: "granted"; readonly held: HeldLease<Q>; readonly headers: HeaderFields }
  | { readonly verdict: "refused"; readonly refusal: RateLimitExceeded; readonly reply: Reply }
  | { readonly verdict: "unavailable"; readonly reply: Reply }
  | { readonly verdict: "gone" };

const NOT_LIMITED = { verdict: "not limited" } as const;
const GONE = { verdict: "gone" } as const;
const NO_HEADERS: HeaderFields = {};

/** One middleware. Its options were checked. */
export class RequestLimit<Q> {
  readonly #options: HttpLimitOptions<Q>;

  constructor(options: HttpLimitOptions<Q>) {
    this.#options = options;
  }

  /**
   * Takes for one request. `signalOf` makes the signal that aborts when the client goes away; it is
   * called only if the request may wait.
   *
   * It awaits only what is a promise, so requests reach the limiter in their order of arrival if
   * the functions of the options are synchronous.
   */
  async admit(request: Q, signalOf: () => AbortSignal): Promise<Admission<Q>> {
    const options = this.#options;
    const entity = options.entity(request);
    const entityId = entity instanceof Promise ? await entity : entity;
    if (entityId === undefined) return NOT_LIMITED;
    const { resource, consume, also, waitUpToMs = 0 } = options;
    const named = typeof resource === "function" ? resource(request) : resource;
    const amounts = typeof consume === "function" ? consume(request) : consume;
    const further = also?.(request);
    const signal = waitUpToMs > 0 ? signalOf() : undefined;
    const call: AcquireRequest = {
      entityId,
      resource: named instanceof Promise ? await named : named,
      consume: amounts instanceof Promise ? await amounts : amounts,
      ...withDefined("also", further instanceof Promise ? await further : further),
      ...withDefined("onUnavailable", options.onUnavailable),
      ...(signal !== undefined && { waitUpToMs, signal }),
    };
    try {
      const result = await options.limiter.tryAcquire(call);
      return result.granted
        ? await this.#granted(request, result.lease)
        : this.#refused(request, result.refusal);
    } catch (error) {
      if (signal?.aborted === true && error === signal.reason) return GONE;
      if (error instanceof RateLimiterUnavailable)
        return { verdict: "unavailable", reply: unavailableReply() };
      throw error;
    }
  }

  async #granted(request: Q, lease: Lease): Promise<Admission<Q>> {
    const held = new HeldLease(this.#options, request, lease);
    return { verdict: "granted", held, headers: await this.#headersOf(lease) };
  }

  async #headersOf(lease: Lease): Promise<HeaderFields> {
    const { headers = {}, limiter } = this.#options;
    if (headers === false) return NO_HEADERS;
    const statuses = await lease.statuses();
    const fields = rateLimitHeaders(statuses, { ...headers, nowMs: limiter.clock.now() });
    // A grant is not asked to come back later, even if other calls brought a limit into debt.
    return withoutRetry(fields);
  }

  #refused(request: Q, refusal: RateLimitExceeded): Admission<Q> {
    const { headers = {}, limiter, onRefused } = this.#options;
    onRefused?.(refusal, request);
    const nowMs = limiter.clock.now();
    return {
      verdict: "refused",
      refusal,
      reply: refusedReply(refusal, headers, nowMs),
    };
  }
}

function withoutRetry(fields: HeaderFields): HeaderFields {
  const { "Retry-After": _, "x-should-retry": __, ...others } = fields;
  return others;
}

function withDefined<Name extends string, T>(
  name: Name,
  value: T | undefined,
): Partial<Record<Name, T>> {
  return value === undefined ? {} : ({ [name]: value } as Partial<Record<Name, T>>);
}
