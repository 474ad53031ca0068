/* HTTP servers (ADR 022): `zae-limiter/http` and one subpath for each framework. Classes have private parts, so those of the library itself are the built ones. */

declare module "declared/zae-limiter/http" {
  import type { IncomingMessage, ServerResponse } from "node:http";
  import type {
    Amounts,
    Lease,
    LimitStatus,
    OnUnavailable,
    RateLimitExceeded,
    RateLimiter,
  } from "zae-limiter";
  export type MaybePromise<T> = T | Promise<T>;

  // ---- headers and bodies: pure --------------------------------------------------------------------------------------------
  export type HeaderStyle =
    | "ietf" // the newest draft that this release knows: today "ietf-11"
    | "ietf-11"
    | "draft-7"
    | "draft-6" // pinned
    | "legacy" // X-RateLimit-Limit, -Remaining, -Reset (epoch seconds): the tightest limit
    | "openai"
    | "anthropic"; // see `names`
  export interface HeaderOptions {
    readonly style?: HeaderStyle | readonly HeaderStyle[]; // "ietf"; Retry-After is always sent on a refusal that can fit
    readonly parents?: boolean; // false: a parent's balance is other tenants' business
    readonly names?: {
      readonly requests?: string;
      readonly tokens?: string;
      readonly inputTokens?: string;
      readonly outputTokens?: string;
    }; // rpm, tpm, itpm, otpm
  }
  export function rateLimitHeaders(
    statuses: readonly LimitStatus[],
    options: HeaderOptions & { readonly nowMs: number },
  ): Readonly<Record<string, string>>;
  export interface RefusalProblem {
    // RFC 9457, without ids of entities
    readonly type: "https://iana.org/assignments/http-problem-types#quota-exceeded";
    readonly title: string;
    readonly status: 429;
    readonly detail: string;
    readonly "violated-policies": readonly string[];
    readonly retry_after_ms: number | null;
  }
  export function refusalProblem(refusal: RateLimitExceeded): RefusalProblem;

  // ---- limiting requests ---------------------------------------------------------------------------------------------------
  export interface HttpOutcome<Q> {
    readonly request: Q;
    readonly status: number;
    readonly completed: boolean; // false: the client went away before the end
    readonly error: unknown; // what the handler threw, where the framework tells
  }
  export interface HttpLimitOptions<Q> {
    readonly limiter: RateLimiter;
    readonly entity: (request: Q) => MaybePromise<string | undefined>; // undefined: this request is not limited
    readonly resource: string | ((request: Q) => MaybePromise<string>);
    readonly consume: Amounts | ((request: Q) => MaybePromise<Amounts>);
    readonly also?: (request: Q) => MaybePromise<Readonly<Record<string, Amounts>> | undefined>;
    readonly waitUpToMs?: number; // 0; the request's own abort ends the waiting
    readonly onUnavailable?: OnUnavailable;
    readonly settle?: (
      outcome: HttpOutcome<Q>,
      lease: Lease,
    ) => MaybePromise<Amounts | "give-back" | undefined | void>; // nothing: keep what was taken
    readonly headers?: HeaderOptions | false;
    readonly onRefused?: (refusal: RateLimitExceeded, request: Q) => void; // to log; answering is `respond`
    readonly waitUntil?: (settled: Promise<void>) => void; // serverless: what keeps the function alive
  }
  /** Web standard: Next.js route handlers, Bun, Deno. */
  export function limitHandler<A extends readonly unknown[]>(
    options: HttpLimitOptions<Request> & {
      readonly respond?: (refusal: RateLimitExceeded, request: Request) => MaybePromise<Response>;
    },
    handler: (request: Request, ...rest: A) => MaybePromise<Response>,
  ): (request: Request, ...rest: A) => Promise<Response>;
  /** Plain node:http. */
  export interface ListenerOptions<Q> {
    readonly respond?: (
      refusal: RateLimitExceeded,
      request: Q,
      response: ServerResponse,
    ) => MaybePromise<unknown>;
    readonly onError?: (error: unknown, request: Q) => void; // to log; the answer is 500
  }
  export function limitListener<Q extends IncomingMessage = IncomingMessage>(
    options: HttpLimitOptions<Q> & ListenerOptions<Q>,
    listener: (request: Q, response: ServerResponse) => void,
  ): (request: Q, response: ServerResponse) => void;
  /** The lease that a middleware took for this request; with several, the innermost. */
  export function leaseOf(request: object): Lease | undefined;
  /** A `settle` for "failed requests cost nothing": status 400 and above. */
  export function giveBackFailures(outcome: { readonly status: number }): "give-back" | undefined;

  // ---- who is it -----------------------------------------------------------------------------------------------------------
  export interface AddressOptions {
    readonly trustedProxies?: number | readonly string[];
    readonly ipv6Prefix?: number;
  } // 0 and 56
  /** An entity id for a client's address: "ip:203.0.113.7", "ip6:20010db8000012.56". Throws when nothing says who it is. */
  export function clientAddress(
    request: {
      readonly headers: object;
      readonly socket?: { readonly remoteAddress?: string | undefined } | undefined;
    },
    options?: AddressOptions,
  ): string;
  /** An entity id for a secret: the prefix, a dash and 32 hex digits of its SHA-256. Secrets never become ids. */
  export function hashedId(prefix: string, secret: string): string;
  /** A valid entity id for any text: unchanged when valid, else encoded reversibly, else (too long) cut and hashed. */
  export function idOf(text: string): string;
}

declare module "declared/zae-limiter/express" {
  // Express 4 and 5
  import type { ErrorRequestHandler, NextFunction, Request, Response } from "express";
  import type { RateLimitExceeded } from "zae-limiter";
  import type { HttpLimitOptions } from "declared/zae-limiter/http";
  export interface ExpressOptions {
    readonly respond?: (
      refusal: RateLimitExceeded,
      request: Request,
      response: Response,
      next: NextFunction,
    ) => void;
  }
  export interface LimitingHandler {
    // a RequestHandler that leaves the types of the handlers behind it alone
    <P, ResBody, ReqBody, ReqQuery, Locals extends Record<string, unknown>>(
      request: Request<P, ResBody, ReqBody, ReqQuery, Locals>,
      response: Response<ResBody, Locals>,
      next: NextFunction,
    ): void;
  }
  export function limitRequests(
    options: HttpLimitOptions<Request> & ExpressOptions,
  ): LimitingHandler;
  export const answerRefusals: ErrorRequestHandler; // 429 and 503 for refusals thrown by handlers
}

declare module "declared/zae-limiter/fastify" {
  import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from "fastify";
  import type { RateLimitExceeded } from "zae-limiter";
  import type { HttpLimitOptions } from "declared/zae-limiter/http";
  export interface FastifyOptions {
    readonly respond?: (
      refusal: RateLimitExceeded,
      request: FastifyRequest,
      reply: FastifyReply,
    ) => unknown; // as a handler: what it returns is sent
  }
  export const limiterPlugin: FastifyPluginAsync<
    HttpLimitOptions<FastifyRequest> &
      FastifyOptions & {
        readonly hook?: "onRequest" | "preParsing" | "preValidation" | "preHandler";
      }
  >; // "onRequest"
  export function limitRequests(
    options: HttpLimitOptions<FastifyRequest> & FastifyOptions,
  ): (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>; // for one route
  export function answerRefusals(
    error: unknown,
    request: FastifyRequest,
    reply: FastifyReply,
  ): boolean; // false: not ours
}

declare module "declared/zae-limiter/hono" {
  import type { Context, Env, ErrorHandler, MiddlewareHandler } from "hono";
  import type { RateLimitExceeded } from "zae-limiter";
  import type { HttpLimitOptions, MaybePromise } from "declared/zae-limiter/http";
  export interface HonoOptions<E extends Env = Env> {
    readonly respond?: (refusal: RateLimitExceeded, context: Context<E>) => MaybePromise<Response>;
  }
  export function limitRequests<E extends Env = Env>(
    options: HttpLimitOptions<Context<E>> & HonoOptions<E>,
  ): MiddlewareHandler<E>; // limitRequests<AppEnv>({ … })
  export const answerRefusals: ErrorHandler;
}
