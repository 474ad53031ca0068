/*
 * One metered call:
 *
 *   estimate ─▶ acquire ─▶ run ─▶ threw                       settled by the error
 *                  │           ─▶ answered in one piece       settled
 *                  │           ─▶ streams, watched ─▶ settled once, by whatever ends it first
 *                  └─▶ refused: nothing is charged
 *
 * Adapters translate: what they are asked for into an `LlmCall`, and what comes back into what an
 * `AnswerReader` reads. `settlement.ts` says what each end costs.
 */
import { RateLimitExceeded } from "../core/bucket/refusal.ts";
import type { AcquireRequest } from "../limiter/call.ts";
import { learningEstimator } from "./estimating/learning-estimator.ts";
import { MeteredCall, type Reserved } from "./metered-call.ts";
import { modelResource } from "./model-resource.ts";
import { checkMeteredOptions, type MeteredOptions } from "./options.ts";
import type { Estimate, Estimator, LlmCall } from "./tokens/llm-call.ts";
import { costOf } from "./tokens/metering.ts";
import { NO_TOKENS } from "./tokens/token-usage.ts";
import { Mirror } from "./upstream/upstream-mirror.ts";

/** Whom a call is charged to. */
type Taker = Pick<AcquireRequest, "entityId" | "resource">;

/** Meters the calls of one client. */
export class Meter<C> {
  readonly #options: MeteredOptions<C>;
  readonly #estimator: Estimator;
  readonly #mirror: Mirror | undefined;

  /** `owner` is the function of the adapter, and `ownNames` are options that only it has. */
  constructor(options: MeteredOptions<C>, owner: string, ownNames: readonly string[] = []) {
    checkMeteredOptions(options, owner, ownNames);
    this.#options = options;
    this.#estimator = options.estimator ?? learningEstimator();
    this.#mirror =
      options.upstream === undefined
        ? undefined
        : new Mirror(options.limiter, options.upstream, options.resource ?? modelResource);
  }

  /**
   * Estimates a call and takes for it. Rejects with `RateLimitExceeded` if it does not fit, and
   * with the signal's reason if that aborts while the call waits: then nothing is charged.
   */
  async begin(call: LlmCall, context: C, signal?: AbortSignal | null): Promise<MeteredCall> {
    const { entity, resource = modelResource } = this.#options;
    const entityId = typeof entity === "function" ? await entity(context) : entity;
    const estimate = this.#estimator.estimate(call);
    const taker: Taker = { entityId, resource: resource(call.model) };
    const reserved = await this.#reserve(taker, call, estimate, signal ?? undefined);
    return new MeteredCall(this.#options, this.#estimator, this.#mirror, call, reserved);
  }

  /**
   * A guess never makes a call impossible: if it is above what a limit can hold, as much is
   * reserved as fits. What the caller named as the maximum is no guess.
   */
  async #reserve(
    taker: Taker,
    call: LlmCall,
    estimate: Estimate,
    signal: AbortSignal | undefined,
  ): Promise<Reserved> {
    try {
      return await this.#take(taker, estimate, signal);
    } catch (error) {
      if (!(error instanceof RateLimitExceeded) || error.retryAfterSeconds !== Infinity)
        throw error;
      const isNamed = estimate.output >= (call.maxOutputTokens ?? Infinity) * call.choices;
      const output = isNamed ? 0 : this.#mostOutput(error, estimate);
      if (output === 0) throw error;
      return this.#take(taker, { ...estimate, output }, signal);
    }
  }

  async #take(
    taker: Taker,
    estimate: Estimate,
    signal: AbortSignal | undefined,
  ): Promise<Reserved> {
    const { limiter, metering, waitUpToMs, onUnavailable } = this.#options;
    const consume = costOf(metering, { ...NO_TOKENS, ...estimate });
    const request: AcquireRequest = {
      ...taker,
      consume,
      ...(waitUpToMs === undefined ? {} : { waitUpToMs }),
      ...(onUnavailable === undefined ? {} : { onUnavailable }),
      ...(signal === undefined ? {} : { signal }),
    };
    return { estimate, taken: consume, lease: await limiter.acquire(request) };
  }

  /** The most output tokens that every limit of a call can hold besides its input; 0 if none. */
  #mostOutput({ statuses }: RateLimitExceeded, estimate: Estimate): number {
    const { metering } = this.#options;
    const input = costOf(metering, { ...NO_TOKENS, input: estimate.input });
    let most = estimate.output;
    for (const { limitName, limit } of statuses) {
      const weight = metering[limitName]?.output ?? 0;
      if (weight === 0) continue;
      most = Math.min(most, Math.floor((limit.capacity - (input[limitName] ?? 0)) / weight));
    }
    return Math.max(0, most);
  }
}
