/*
 * The life of a request, the same for every framework. An adapter calls `admit`, does what the
 * verdict says, and ends the lease with the outcome of the request:
 *
 *   admit ─▶ not limited            the handler runs, without headers
 *         ─▶ granted                headers; the handler runs; lease.end() when the response is
 *                                   finished, the client goes away, or the handler throws
 *         ─▶ refused, unavailable   the reply (429, 503) is sent; the handler does not run
 *         ─▶ gone                   the client went away before its handler ran; nothing is sent
 *   admit throws                    a mistake of the application, which is never a 429
 */
import type { LimitStatus } from "../core/bucket/decision.ts";
import type { RateLimitExceeded } from "../core/bucket/refusal.ts";
import { RateLimiterUnavailable } from "../core/errors.ts";
import { hasMethod } from "../core/options.ts";
import type { AcquireRequest } from "../limiter/call.ts";
import type { Lease } from "../limiter/lease.ts";
import type { AcquireResult } from "../limiter/rate-limiter.ts";
import type { MaybePromise } from "../repository/port.ts";
import type { HeaderFields, HeaderOptions } from "./headers/options.ts";
import { toHeaders } from "./headers/rate-limit-headers.ts";
import { RequestLease } from "./request-lease.ts";
import { warnOfSecret } from "../warnings/warn-of-secret.ts";
import { warnIfMadeInHandler } from "./misuse.ts";
import type { HttpLimitOptions } from "./options.ts";
import { buildRefusalReply, unavailableReply, type Reply } from "./reply.ts";

/** What becomes of a request. */
export type RequestVerdict<Q> =
  | { readonly verdict: "not limited" }
  | { readonly verdict: "granted"; readonly lease: RequestLease<Q>; readonly headers: HeaderFields }
  | { readonly verdict: "refused"; readonly refusal: RateLimitExceeded; readonly reply: Reply }
  | {
      readonly verdict: "unavailable";
      readonly error: RateLimiterUnavailable;
      readonly reply: Reply;
    }
  | { readonly verdict: "gone" };

/** The client of a request, as far as the platform knows it. */
export interface Client {
  /** Whether it has gone away, or was answered: then no handler should begin. */
  readonly isGone: boolean;
  /** Aborts when it goes away. Only used if the request may wait. */
  readonly signal: AbortSignal;
  /** Called when the request no longer waits, but only if the signal was used. */
  stopWaiting(): void;
}

const NOT_LIMITED = { verdict: "not limited" } as const;
const GONE = { verdict: "gone" } as const;
const NO_HEADERS: HeaderFields = {};
const DEFAULT_HEADERS: HeaderOptions = {};

/** How many entity ids of a middleware are checked for secrets; they all have the same form. */
const MAX_SECRET_CHECKS = 20;

/** One middleware. Its options were checked. */
export class RequestLimit<Q> {
  readonly #options: HttpLimitOptions<Q>;
  /** True until the end of the event loop turn in which the middleware was made. */
  #isNew = true;
  #secretChecks = 0;

  constructor(options: HttpLimitOptions<Q>) {
    this.#options = options;
    queueMicrotask(() => {
      this.#isNew = false;
    });
  }

  /**
   * Takes tokens for one request. If its client went away meanwhile, everything is given back.
   *
   * It awaits only what is a promise, so requests reach the limiter in their order of arrival if
   * the functions of the options are synchronous.
   */
  async admit(request: Q, client: Client): Promise<RequestVerdict<Q>> {
    if (this.#isNew) this.#noteImmediateRequest();
    const {
      limiter,
      resource,
      consume,
      also,
      waitUpToMs = 0,
      onUnavailable,
      onRefused,
      headers,
    } = this.#options;
    const sender = this.#options.entity(request);
    const entityId = isPromise(sender) ? await sender : sender;
    if (entityId === undefined) return NOT_LIMITED;
    if (this.#secretChecks < MAX_SECRET_CHECKS) this.#warnIfSecret(entityId);
    // One after the other: a promise that rejects before it is awaited ends the process.
    const used = typeof resource === "function" ? resource(request) : resource;
    const name = isPromise(used) ? await used : used;
    const amounts = typeof consume === "function" ? consume(request) : consume;
    const wanted = isPromise(amounts) ? await amounts : amounts;
    // Most calls have only these three fields, and the limiter checks each field of a call.
    const call: Writable<AcquireRequest> = { entityId, resource: name, consume: wanted };
    if (also !== undefined) {
      const further = await also(request);
      if (further !== undefined) call.also = further;
    }
    if (onUnavailable !== undefined) call.onUnavailable = onUnavailable;
    if (waitUpToMs > 0) {
      call.waitUpToMs = waitUpToMs;
      call.signal = client.signal;
    }
    let result: AcquireResult;
    try {
      result = await limiter.tryAcquire(call);
    } catch (error) {
      if (call.signal?.aborted === true && error === call.signal.reason) return GONE;
      if (!(error instanceof RateLimiterUnavailable)) throw error;
      return client.isGone ? GONE : { verdict: "unavailable", error, reply: unavailableReply() };
    } finally {
      if (call.signal !== undefined) client.stopWaiting();
    }
    if (!result.granted) {
      // It may be asynchronous all the same. A rejection that is not awaited ends the process.
      if (onRefused !== undefined) await (onRefused(result.refusal, request) as unknown);
      return client.isGone ? GONE : this.#refuse(result.refusal);
    }
    const lease = new RequestLease(this.#options, request, result.lease);
    let fields = NO_HEADERS;
    try {
      // A function of its own for this would cost one more promise.
      const remembered = headers === false ? [] : result.lease.remembered();
      const statuses = remembered instanceof Promise ? await remembered : remembered;
      fields = this.#toHeaders(statuses, result.lease);
    } catch (error) {
      // The request was granted. Unknown balances are not a reason to refuse it.
      if (!(error instanceof RateLimiterUnavailable)) {
        lease.giveBack();
        throw error;
      }
    }
    if (!client.isGone) return { verdict: "granted", lease, headers: fields };
    lease.giveBack();
    return GONE;
  }

  /** Headers for a granted request; none without statuses. */
  #toHeaders(statuses: readonly LimitStatus[], { entityId }: Lease): HeaderFields {
    const { headers = DEFAULT_HEADERS, limiter } = this.#options;
    if (headers === false || statuses.length === 0) return NO_HEADERS;
    const nowMs = limiter.clock.now();
    const fields = toHeaders(statuses, headers, nowMs);
    if (!("Retry-After" in fields) && !("x-should-retry" in fields)) return fields;
    // Other calls have since brought a limit into debt, which does not mean that a parent refused
    // this one.
    const own = statuses.filter((status) => status.entityId === entityId);
    return withoutRetry(toHeaders(headers.parents === true ? statuses : own, headers, nowMs));
  }

  #refuse(refusal: RateLimitExceeded): RequestVerdict<Q> {
    const { headers = DEFAULT_HEADERS, limiter } = this.#options;
    return {
      verdict: "refused",
      refusal,
      reply: buildRefusalReply(refusal, headers, limiter.clock.now()),
    };
  }

  #noteImmediateRequest(): void {
    this.#isNew = false;
    warnIfMadeInHandler();
  }

  #warnIfSecret(entityId: string): void {
    this.#secretChecks += 1;
    warnOfSecret(entityId);
  }
}

/**
 * Also true for promises of libraries and other realms, which are not instances of our `Promise`.
 */
function isPromise<T>(value: MaybePromise<T>): value is Promise<T> {
  return hasMethod(value, "then");
}

type Writable<T> = { -readonly [Name in keyof T]: T[Name] };

/** Removes what tells a client to retry: this request was granted. */
function withoutRetry(fields: HeaderFields): HeaderFields {
  const { "Retry-After": _, "x-should-retry": __, ...others } = fields;
  return others;
}
