import { isRecord } from "../core/amounts.ts";
import { checkOnUnavailable, type OnUnavailable } from "../core/bucket/policy.ts";
import { ValidationError } from "../core/errors.ts";
import { entityId, limitName } from "../core/identifiers.ts";
import { checkOptions, hasMethod, optionNames } from "../core/options.ts";
import { checkWait } from "../limiter/call.ts";
import { checkLimiter } from "../limiter/mistakes.ts";
import type { RateLimiter } from "../limiter/rate-limiter.ts";
import type { MaybePromise } from "../repository/port.ts";
import type { Estimator } from "./tokens/llm-call.ts";
import type { MeteredRecord } from "./tokens/metered-record.ts";
import { checkMetering, type Metering } from "./tokens/metering.ts";
import type { UpstreamMirror } from "./upstream/upstream-mirror.ts";

/** How calls are metered. `C` is what an adapter passes to `entity`. */
export interface MeteredOptions<C> {
  /** The limiter that decides. The caller closes it. */
  readonly limiter: RateLimiter;
  /**
   * The entity that makes the call: an id, or a function that receives the call and returns one.
   */
  readonly entity: string | ((call: C) => MaybePromise<string>);
  /**
   * The resource of a model. @default modelResource
   * @example limitFetch({ ...metered, resource: () => "models" }); // one bucket for all of them
   */
  readonly resource?: (model: string) => string;
  /** What each limit counts, such as `METERING.openai`. */
  readonly metering: Metering;
  /** Estimates what to reserve before a call. @default learningEstimator() */
  readonly estimator?: Estimator;
  /** How long a call may wait for tokens. @default 0 */
  readonly waitUpToMs?: number;
  /** The class of the calls: they leave what the limits reserve from it. @default none */
  readonly priority?: string;
  /** What to do when the store is unavailable. @default the limiter's choice */
  readonly onUnavailable?: OnUnavailable;
  /**
   * What happens to a streamed answer that is longer than was reserved. "debt": it goes on, and the
   * rest is charged at its end. "stop": more is taken while it streams, and it ends with
   * `RateLimitExceeded` when nothing is left. @default "debt"
   */
  readonly overrun?: "debt" | "stop";
  /**
   * What a stream costs that was not read to its end. "counted": what was delivered. "kept": not
   * less than was reserved. @default "counted"
   */
  readonly abandoned?: "counted" | "kept";
  /**
   * After how long a stream that is not read is settled as abandoned, and ends with an error whose
   * code is `ERR_LIMITER_STREAM_IDLE`. Waiting for a slow provider does not count. No effect on
   * `limitCallbacks`. @default 300000
   */
  readonly idleMs?: number;
  /** The provider's account, to keep in step with its limits. @default none */
  readonly upstream?: UpstreamMirror;
  /**
   * Called with what became of each call.
   * @example limitFetch({ ...metered, onSettled: ({ model, usage }) => log(model, usage) });
   */
  readonly onSettled?: (record: MeteredRecord) => void;
}

const OPTION_NAMES = optionNames<MeteredOptions<never>>({
  limiter: true,
  entity: true,
  resource: true,
  metering: true,
  estimator: true,
  waitUpToMs: true,
  priority: true,
  onUnavailable: true,
  overrun: true,
  abandoned: true,
  idleMs: true,
  upstream: true,
  onSettled: true,
});

/**
 * Throws for options that are missing or invalid, so that a mistake shows when the client is made.
 * `owner` is the function that takes them, and `ownNames` are options that only it has.
 */
export function checkMeteredOptions<C>(
  options: MeteredOptions<C>,
  owner: string,
  ownNames: readonly string[] = [],
): void {
  if (isLimiterItself(options) || isCalledByClient(options)) throw buildNotCalledError(owner);
  checkOptions(options, new Set([...OPTION_NAMES, ...ownNames]), owner);
  const { limiter, entity, resource, metering, estimator, waitUpToMs, onUnavailable } = options;
  const { idleMs, onSettled, priority } = options;
  checkLimiter(limiter);
  if (entity === undefined)
    throw new ValidationError(
      "entity",
      entity,
      "must be the id of who makes the calls, or a function that returns it",
    );
  if (typeof entity !== "function") entityId(entity, "entity");
  checkMetering(metering);
  if (estimator !== undefined) checkEstimator(estimator);
  if (resource !== undefined)
    checkFunction("resource", resource, 'must be a function of the model, such as () => "models"');
  if (onSettled !== undefined) checkFunction("onSettled", onSettled);
  if (waitUpToMs !== undefined) checkWait(waitUpToMs);
  if (priority !== undefined) limitName(priority, "priority");
  if (onUnavailable !== undefined) checkOnUnavailable(onUnavailable);
  checkOneOf("overrun", options.overrun, ["debt", "stop"]);
  checkOneOf("abandoned", options.abandoned, ["counted", "kept"]);
  if (idleMs !== undefined && !(typeof idleMs === "number" && idleMs > 0))
    throw new ValidationError("idleMs", idleMs, "must be more than 0 milliseconds");
}

/** Builds the error for passing `owner` itself to a client, instead of what it returns. */
export function buildNotCalledError(owner: string): ValidationError {
  const advice = `give the client ${owner}({ limiter, entity, metering })`;
  return new ValidationError("options", undefined, `must be an object; ${advice}`);
}

function isLimiterItself(options: unknown): boolean {
  return hasMethod(options, "tryAcquire");
}

/** `new OpenAI({ fetch: limitFetch })`: the client calls it with a URL, or with a request. */
function isCalledByClient(options: unknown): boolean {
  if (typeof options === "string") return URL.canParse(options);
  return options instanceof URL || (isRecord(options) && "url" in options);
}

/** Throws for a value that is not one of these words. Undefined is allowed. */
export function checkOneOf(name: string, value: unknown, words: readonly string[]): void {
  if (value !== undefined && !words.includes(value as string))
    throw new ValidationError(
      name,
      value,
      `must be ${words.map((word) => `"${word}"`).join(" or ")}`,
    );
}

function checkEstimator(estimator: unknown): void {
  if (!hasMethod(estimator, "estimate"))
    throw new ValidationError(
      "estimator",
      estimator,
      "must be an estimator, such as learningEstimator() or { estimate: (call) => ({ input, output }) }",
    );
  const { learn, tokensOf } = estimator as Partial<Estimator>;
  if (learn !== undefined) checkFunction("estimator.learn", learn);
  if (tokensOf !== undefined) checkFunction("estimator.tokensOf", tokensOf);
}

function checkFunction(name: string, value: unknown, reason = "must be a function"): void {
  if (typeof value !== "function") throw new ValidationError(name, value, reason);
}
