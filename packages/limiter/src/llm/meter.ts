/*
 * One metered call:
 *
 *   estimate ─▶ acquire ─▶ run ─▶ threw                       settled by the error
 *                  │           ─▶ answered in one piece       settled
 *                  │           ─▶ streams, watched ─▶ settled once, by whatever ends it first
 *                  └─▶ refused: nothing is charged
 *
 * Adapters translate a client's request into an `LlmCall`, and its answer into what an
 * `AnswerReader` reads. `settlement.ts` defines what each end costs.
 *
 *   tokens/       the kinds of tokens, and their weights
 *   estimating/   finds the text of a request, and estimates its tokens
 *   answers/      reads answers, with one file for each protocol
 *   upstream/     reads a provider's rate limit headers, and keeps its account in step with them
 *   fetch/ ai-sdk/ openai/ anthropic/ langchain/   one adapter for each client
 */
import { getAmount, MAX_AMOUNT, type Amounts } from "../core/amounts.ts";
import { RateLimitExceeded } from "../core/bucket/refusal.ts";
import { ValidationError } from "../core/errors.ts";
import { entityId as checkEntityId } from "../core/identifiers.ts";
import { computeMostHeld } from "../core/limit-kinds.ts";
import { warnOfSecret } from "../warnings/warn-of-secret.ts";
import type { AcquireRequest } from "../limiter/call.ts";
import { checkEstimate, CheckedEstimator } from "./checked-estimator.ts";
import { learningEstimator } from "./estimating/learning-estimator.ts";
import { MeteredCall, type MeterParts, type Reserved } from "./metered-call.ts";
import { modelResource } from "./model-resource.ts";
import { checkMeteredOptions, type MeteredOptions } from "./options.ts";
import type { Estimate, LlmCall } from "./tokens/llm-call.ts";
import { computeCost, computeMostTokens } from "./tokens/metering.ts";
import { BYTES_PER_TOKEN, NO_TOKENS } from "./tokens/token-usage.ts";
import { Mirror } from "./upstream/upstream-mirror.ts";

/** The entity and resource that pay for a call, and the signal that ends its wait for tokens. */
type Taker = Pick<AcquireRequest, "entityId" | "resource" | "signal">;

/** What the functions of the application returned for a call. Not validated yet. */
export interface Terms {
  readonly call: LlmCall;
  readonly entityId: unknown;
  readonly resource: string;
  readonly estimate: unknown;
}

/** Meters the calls of one client. */
export class Meter<C> {
  readonly #options: MeteredOptions<C>;
  readonly #parts: MeterParts;

  /** `owner` is the function of the adapter, and `ownNames` are options that only it has. */
  constructor(options: MeteredOptions<C>, owner: string, ownNames: readonly string[] = []) {
    checkMeteredOptions(options, owner, ownNames);
    const { limiter, upstream, resource = modelResource } = options;
    this.#options = options;
    this.#parts = {
      options,
      estimator: new CheckedEstimator(options.estimator ?? learningEstimator()),
      mirror: upstream === undefined ? undefined : new Mirror(limiter, upstream, resource),
    };
  }

  /**
   * Estimates a call and takes its tokens. Rejects with `RateLimitExceeded` if it does not fit, and
   * with the signal's reason if that aborts first. In both cases nothing is charged.
   */
  async begin(call: LlmCall, context: C, signal?: AbortSignal | null): Promise<MeteredCall> {
    return this.beginWith(await this.ask(call, context), signal);
  }

  /** Calls the functions of the application. Rejects only with what they throw. */
  async ask(call: LlmCall, context: C): Promise<Terms> {
    const { entity, resource = modelResource } = this.#options;
    return {
      call,
      entityId: typeof entity === "function" ? await entity(context) : entity,
      resource: resource(call.model),
      estimate: this.#parts.estimator.estimate(call),
    };
  }

  /** Begins a call with these terms, as `begin` does. */
  async beginWith(terms: Terms, signal?: AbortSignal | null): Promise<MeteredCall> {
    const { call, entityId, resource } = terms;
    const taker: Taker = {
      entityId: checkEntity(entityId),
      resource,
      // A signal of another class may abort the request, but it does not end the wait for tokens.
      ...(signal instanceof AbortSignal && { signal }),
    };
    const estimate = checkEstimate(terms.estimate);
    const metered = new MeteredCall(this.#parts, call, await this.#reserve(taker, call, estimate));
    if (signal?.aborted !== true) return metered;
    await metered.settleFailed(); // the caller aborted before anything was sent
    throw signal.reason;
  }

  async #reserve(taker: Taker, call: LlmCall, estimate: Estimate): Promise<Reserved> {
    try {
      return await this.#take(taker, estimate);
    } catch (error) {
      if (!(error instanceof RateLimitExceeded) || error.retryAfterSeconds !== Infinity)
        throw error;
      const fitting = this.#fitEstimate(error, call, estimate);
      if (fitting === undefined) throw error;
      return this.#take(taker, fitting);
    }
  }

  async #take(taker: Taker, estimate: Estimate): Promise<Reserved> {
    const { limiter, metering, waitUpToMs, onUnavailable, priority } = this.#options;
    const consume = computeCost(metering, { ...NO_TOKENS, ...estimate });
    try {
      const lease = await limiter.acquire({
        ...taker,
        consume,
        ...(waitUpToMs !== undefined && { waitUpToMs }),
        ...(onUnavailable !== undefined && { onUnavailable }),
        ...(priority !== undefined && { priority }),
      });
      return { estimate, consume, lease };
    } catch (error) {
      throw toMeteringError(error, consume);
    }
  }

  /**
   * A guess never makes a call impossible: if it is above what a limit can hold, what fits is
   * reserved. A maximum that the caller named is not a guess, and neither is a text whose bytes
   * alone are too many. This is undefined for them, and if reserving less would not help.
   */
  #fitEstimate(
    refusal: RateLimitExceeded,
    call: LlmCall,
    estimate: Estimate,
  ): Estimate | undefined {
    const isNamed = estimate.output >= (call.maxOutputTokens ?? Infinity) * call.choices;
    const named = isNamed ? estimate.output : 0;
    const input = this.#computeMost(refusal, "input", estimate, { input: 0, output: named });
    if (input < Math.min(estimate.input, Math.ceil(call.textBytes / BYTES_PER_TOKEN)))
      return undefined;
    const output = isNamed
      ? named
      : this.#computeMost(refusal, "output", estimate, { input, output: 0 });
    const isLess = input < estimate.input || output < estimate.output;
    return isLess ? { input, output } : undefined;
  }

  /** The most tokens of a kind that fit into every limit beside the others; negative if none do. */
  #computeMost(
    { statuses }: RateLimitExceeded,
    kind: keyof Estimate,
    wanted: Estimate,
    others: Estimate,
  ): number {
    const { metering } = this.#options;
    const without = computeCost(metering, { ...NO_TOKENS, ...others });
    let most = wanted[kind];
    for (const { limitName, limit, leaves } of statuses) {
      const name = Object.hasOwn(metering, limitName) ? limitName : (limit.counts ?? limitName);
      const room = computeMostHeld(limit) - leaves - getAmount(without, name);
      if (room < 0) return room;
      most = Math.min(most, computeMostTokens(metering[name]?.[kind], room));
    }
    return most;
  }
}

function checkEntity(id: unknown): string {
  if (id === undefined || id === null)
    throw new ValidationError("entity", id, `must return an id for every call, not ${id}`);
  const checked = checkEntityId(id, "entity");
  warnOfSecret(checked);
  return checked;
}

/** Describes a mistake in the amounts by the metering, which is what the application wrote. */
function toMeteringError(error: unknown, consume: Amounts): unknown {
  if (!(error instanceof ValidationError)) return error;
  const names = Object.keys(consume);
  if (error.field === "limits")
    return new ValidationError(
      "metering",
      undefined,
      `no limits are configured that it could count; set ${names.join(", ")} with setSystemDefaults, setResourceDefaults or setLimits`,
    );
  const name = names.find((each) => error.field === `consume.${each}`);
  if (name === undefined) return error;
  const advice =
    consume[name]! > MAX_AMOUNT
      ? "lower its weights, or the estimate"
      : "set a limit of this name with setSystemDefaults, setResourceDefaults or setLimits, or name another one in metering";
  return new ValidationError(`metering.${name}`, name, `${error.reason}; ${advice}`);
}
