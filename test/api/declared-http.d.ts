// Made by `npm run declare`.

declare module "declared/zae-limiter/http" {
  export { MaybePromise } from "declared/zae-limiter/backend";
  import { LimitStatus, Amounts, OnUnavailable } from "declared/zae-limiter";
  import { RateLimitExceeded, Lease, RateLimiter } from "zae-limiter";
  import { MaybePromise } from "declared/zae-limiter/backend";
  import { IncomingMessage, ServerResponse } from "node:http";
  export function rateLimitHeaders(
    statuses: readonly LimitStatus[],
    options: HeaderOptions & {
      readonly nowMs: number;
    },
  ): Readonly<Record<string, string>>;
  export interface HeaderOptions {
    readonly style?: HeaderStyle | readonly HeaderStyle[];
    readonly parents?: boolean;
    readonly names?: {
      readonly requests?: string;
      readonly tokens?: string;
      readonly inputTokens?: string;
      readonly outputTokens?: string;
    };
  }
  export type HeaderStyle =
    | "ietf"
    | "ietf-11"
    | "draft-7"
    | "draft-6"
    | "legacy"
    | "openai"
    | "anthropic";
  export function refusalProblem(refusal: RateLimitExceeded): RefusalProblem;
  export interface RefusalProblem {
    readonly type: "https://iana.org/assignments/http-problem-types#quota-exceeded";
    readonly title: string;
    readonly status: 429;
    readonly detail: string;
    readonly "violated-policies": readonly string[];
    readonly retry_after_ms: number | null;
  }
  export function limitHandler<A extends readonly unknown[]>(
    options: HttpLimitOptions<Request> & {
      readonly respond?: (refusal: RateLimitExceeded, request: Request) => MaybePromise<Response>;
    },
    handler: (request: Request, ...rest: A) => MaybePromise<Response>,
  ): (request: Request, ...rest: A) => Promise<Response>;
  export function limitListener<Q extends IncomingMessage = IncomingMessage>(
    options: HttpLimitOptions<Q> & ListenerOptions<Q>,
    listener: (request: Q, response: ServerResponse) => void,
  ): (request: Q, response: ServerResponse) => void;
  export interface ListenerOptions<Q> {
    readonly respond?: (
      refusal: RateLimitExceeded,
      request: Q,
      response: ServerResponse,
    ) => MaybePromise<unknown>;
    readonly onError?: (error: unknown, request: Q) => void;
  }
  export function giveBackFailures(outcome: { readonly status: number }): "give-back" | undefined;
  export function getLease(request: object): Lease | undefined;
  export interface HttpLimitOptions<Q> {
    readonly limiter: RateLimiter;
    readonly entity: (request: Q) => MaybePromise<string | undefined>;
    readonly resource: string | ((request: Q) => MaybePromise<string>);
    readonly consume: Amounts | ((request: Q) => MaybePromise<Amounts>);
    readonly also?: (request: Q) => MaybePromise<Readonly<Record<string, Amounts>> | undefined>;
    readonly waitUpToMs?: number;
    readonly onUnavailable?: OnUnavailable;
    readonly settle?: (
      outcome: HttpOutcome<Q>,
      lease: Lease,
    ) => MaybePromise<Amounts | "give-back" | undefined | void>;
    readonly headers?: HeaderOptions | false;
    readonly onRefused?: (refusal: RateLimitExceeded, request: Q) => void;
    readonly waitUntil?: (settled: Promise<void>) => void;
  }
  export interface HttpOutcome<Q> {
    readonly request: Q;
    readonly status: number;
    readonly completed: boolean;
    readonly error: unknown;
  }
  export function clientAddress(
    request: {
      readonly headers: object;
      readonly socket?:
        | {
            readonly remoteAddress?: string | undefined;
          }
        | undefined;
    },
    options?: AddressOptions,
  ): string;
  export interface AddressOptions {
    readonly trustedProxies?: number | readonly string[];
    readonly ipv6Prefix?: number;
  }
  export function hashedId(prefix: string, secret: string): string;
  export function toId(text: string): string;
}

declare module "declared/zae-limiter/express" {
  import { ErrorRequestHandler, Request, Response, NextFunction } from "express";
  import { HttpLimitOptions } from "declared/zae-limiter/http";
  import { RateLimitExceeded } from "zae-limiter";
  export const answerRefusals: ErrorRequestHandler;
  export function limitRequests(
    options: HttpLimitOptions<Request> & ExpressOptions,
  ): LimitingHandler;
  export interface ExpressOptions {
    readonly respond?: (
      refusal: RateLimitExceeded,
      request: Request,
      response: Response,
      next: NextFunction,
    ) => void;
  }
  export interface LimitingHandler {
    <P, ResBody, ReqBody, ReqQuery, Locals extends Record<string, unknown>>(
      request: Request<P, ResBody, ReqBody, ReqQuery, Locals>,
      response: Response<ResBody, Locals>,
      next: NextFunction,
    ): void;
  }
}

declare module "declared/zae-limiter/fastify" {
  import { FastifyRequest, FastifyReply, FastifyPluginAsync } from "fastify";
  import { HttpLimitOptions } from "declared/zae-limiter/http";
  import { RateLimitExceeded } from "zae-limiter";
  export function answerRefusals(
    error: unknown,
    _request: FastifyRequest,
    reply: FastifyReply,
  ): boolean;
  export const limiterPlugin: FastifyPluginAsync<
    HttpLimitOptions<FastifyRequest> &
      FastifyOptions & {
        readonly hook?: "onRequest" | "preParsing" | "preValidation" | "preHandler";
      }
  >;
  export function limitRequests(
    options: HttpLimitOptions<FastifyRequest> & FastifyOptions,
  ): (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;
  export interface FastifyOptions {
    readonly respond?: (
      refusal: RateLimitExceeded,
      request: FastifyRequest,
      reply: FastifyReply,
    ) => unknown;
  }
}

declare module "declared/zae-limiter/hono" {
  import { ErrorHandler, Env, Context, MiddlewareHandler } from "hono";
  import { HttpLimitOptions } from "declared/zae-limiter/http";
  import { RateLimitExceeded } from "zae-limiter";
  import { MaybePromise } from "declared/zae-limiter/backend";
  export const answerRefusals: ErrorHandler;
  export function limitRequests<E extends Env = Env>(
    options: HttpLimitOptions<Context<E>> & HonoOptions<E>,
  ): MiddlewareHandler<E>;
  export interface HonoOptions<E extends Env = Env> {
    readonly respond?: (refusal: RateLimitExceeded, context: Context<E>) => MaybePromise<Response>;
  }
}
