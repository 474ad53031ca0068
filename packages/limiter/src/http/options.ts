import { copyAmounts, type Amounts } from "../core/amounts.ts";
import { checkOnUnavailable, type OnUnavailable } from "../core/bucket/policy.ts";
import type { RateLimitExceeded } from "../core/bucket/refusal.ts";
import { ValidationError } from "../core/errors.ts";
import { limitName, resourceName } from "../core/identifiers.ts";
import { checkOptions, optionNames } from "../core/options.ts";
import { checkWait } from "../limiter/call.ts";
import type { Lease } from "../limiter/lease.ts";
import { checkLimiter } from "../limiter/mistakes.ts";
import type { RateLimiter } from "../limiter/rate-limiter.ts";
import type { MaybePromise } from "../repository/port.ts";
import { checkHeaderOptions, type HeaderOptions } from "./headers/options.ts";

/** How a request ended. */
export interface HttpOutcome<Q> {
  /** The request, as its framework has it. */
  readonly request: Q;
  /** The status of the response, as far as it was set: 200 if a client left before that. */
  readonly status: number;
  /** Whether the response was sent to its end; false if the client went away before. */
  readonly completed: boolean;
  /** What the handler threw, if the framework reports it. */
  readonly error: unknown;
}

/** How requests are limited. Every function gets the request as its framework has it. */
export interface HttpLimitOptions<Q> {
  /** The limiter that decides. The caller closes it. */
  readonly limiter: RateLimiter;
  /**
   * Who sends the request; undefined if it is not limited. See `clientAddress` and `hashedId`.
   * @example limitRequests({ ...options, entity: (request) => clientAddress(request) });
   */
  readonly entity: (request: Q) => MaybePromise<string | undefined>;
  /** The resource that is used, such as a route or a model. */
  readonly resource: string | ((request: Q) => MaybePromise<string>);
  /** What a request takes, in whole tokens by limit. */
  readonly consume: Amounts | ((request: Q) => MaybePromise<Amounts>);
  /**
   * Further resources to take from: all of them or none.
   * @example limitRequests({ ...options, also: () => ({ search: { queries: 1 } }) });
   */
  readonly also?: (request: Q) => MaybePromise<Readonly<Record<string, Amounts>> | undefined>;
  /** How long a request may wait for tokens. It stops when its client goes away. @default 0 */
  readonly waitUpToMs?: number;
  /** What to do when the store is unavailable. @default the limiter's choice */
  readonly onUnavailable?: OnUnavailable;
  /**
   * The real cost, once the request has ended: totals by limit, or "give-back" to give everything
   * back. If it returns undefined, the charge stays as taken. @default keeps the charge as taken
   * @example limitRequests({ ...options, settle: giveBackFailures });
   */
  readonly settle?: (
    outcome: HttpOutcome<Q>,
    lease: Lease,
  ) => MaybePromise<Amounts | "give-back" | undefined | void>;
  /** Which headers say what is left; false for none. @default { style: "ietf" } */
  readonly headers?: HeaderOptions | false;
  /**
   * Called for each refusal, to log it. `respond` makes the response.
   * @example limitRequests({ ...options, onRefused: (refusal) => log.info(refusal.message) });
   */
  readonly onRefused?: (refusal: RateLimitExceeded, request: Q) => void;
  /**
   * Gets a promise of the end of each lease, for platforms that stop a function once it has
   * responded. It is called before the handler runs, and the promise never rejects.
   * @example limitHandler({ ...options, waitUntil: (settled) => after(settled) }, handler);
   */
  readonly waitUntil?: (settled: Promise<void>) => void;
}

const OPTION_NAMES = optionNames<HttpLimitOptions<never>>({
  limiter: true,
  entity: true,
  resource: true,
  consume: true,
  also: true,
  waitUpToMs: true,
  onUnavailable: true,
  settle: true,
  headers: true,
  onRefused: true,
  waitUntil: true,
});

/** The options that are functions, where they are given. */
const CALLBACKS = ["also", "settle", "onRefused", "waitUntil"] as const;

/**
 * Throws for options that are missing or wrong, so that the mistake shows when the middleware is
 * made. `owner` is the function that makes it, and `ownCallbacks` are those that only it has.
 */
export function checkHttpOptions<Q>(
  options: HttpLimitOptions<Q>,
  owner: string,
  ownCallbacks: readonly string[] = [],
): void {
  const callbacks: readonly string[] = [...CALLBACKS, ...ownCallbacks];
  checkNoRequest(options, owner);
  checkOptions(options, new Set([...OPTION_NAMES, ...callbacks]), owner);
  const { limiter, resource, consume, waitUpToMs, onUnavailable, headers } = options;
  checkLimiter(limiter);
  checkCallback("entity", options.entity, "that says who sends a request");
  if (typeof resource !== "function") resourceName(resource);
  if (typeof consume !== "function") checkConsume(consume);
  for (const [name, value] of Object.entries(options))
    if (value !== undefined && callbacks.includes(name)) checkCallback(name, value);
  if (waitUpToMs !== undefined) checkWait(waitUpToMs);
  if (onUnavailable !== undefined) checkOnUnavailable(onUnavailable);
  if (headers !== undefined && headers !== false) checkHeaderOptions(headers);
}

/** Throws if a framework calls this with a request: the middleware was not created first. */
function checkNoRequest(options: unknown, owner: string): void {
  const { method, headers, req } = Object(options) as Readonly<Record<string, unknown>>;
  if (typeof req === "object" || (typeof method === "string" && typeof headers === "object"))
    throw new ValidationError(
      "options",
      "a request",
      `must be options: ${owner} makes a middleware, so call it, as in app.use(${owner}({ limiter, … }))`,
    );
}

/** Whether the limits exist is known only when the first request is decided. */
function checkConsume(consume: unknown): void {
  for (const name in copyAmounts(consume, "consume")) limitName(name, `consume.${name}`);
}

function checkCallback(name: string, value: unknown, purpose = ""): void {
  if (typeof value !== "function")
    throw new ValidationError(name, value, `must be a function ${purpose}`.trimEnd());
}
