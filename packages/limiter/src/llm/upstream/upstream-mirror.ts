/*
 * Keeps an account in step with its provider:
 *
 *   answer, no 429, at most once a second ─▶ read the account ─▶ take what it holds too much
 *   429, each of them, one after another ──▶ read the account ─▶ take that and what is left of the
 *                                            limits that pause, and charge the debt of their pause
 *
 * It only ever takes. What is there is taken as a call takes it, all or nothing: when four
 * processes hear the same at once, one of them takes it and the others look again. (Each of them
 * charging what it had read made a debt of three full buckets, which took minutes to heal.) Only
 * the debt of a pause is charged without a condition.
 *
 * What is left is compared with a fresh read, so ten answers that say the same take once. A 429
 * that arrives while the pause of an earlier one lasts was under way before it, and changes nothing
 * unless it asks for a longer pause.
 *
 * What is reserved here and not counted by the provider yet makes our balance the lower one, and
 * then nothing is taken; what comes back of it is compared a second later. Headers that are old by
 * the time they arrive take too much, by what was earned meanwhile: that costs some of the burst,
 * not of the rate.
 */
import { addAmounts, isRecord } from "../../core/amounts.ts";
import { negated, type LimitStatus } from "../../core/bucket/decision.ts";
import { ValidationError } from "../../core/errors.ts";
import { entityId, limitName } from "../../core/identifiers.ts";
import { checkOptions, optionNames } from "../../core/options.ts";
import { runSafely, textOf } from "../../warnings/run-safely.ts";
import { warnOnce } from "../../warnings/warn-once.ts";
import type { AcquireRequest } from "../../limiter/call.ts";
import type { RateLimiter } from "../../limiter/rate-limiter.ts";
import { laneOf, type AccountLane } from "./account-lanes.ts";
import {
  amountsThere,
  amountsToTake,
  limitsToPause,
  pauseMsOf,
  type LimitNames,
  type Pause,
} from "./mirror-charges.ts";
import { readUpstreamLimits, type AnswerHeaders, type UpstreamLimits } from "./upstream-limits.ts";

/** The provider's account as an entity. Learning only ever takes: nothing is credited. */
export interface UpstreamMirror {
  /** The account: a parent of the keys, or an entity of its own, with the provider's limits. */
  readonly entityId: string;
  /**
   * The resource of a model.
   * @default the resource of the call
   * @example
   * const upstream = { entityId: "openai", resource: () => "all-models" };
   */
  readonly resource?: (model: string) => string;
  /** The names of the account's limits. */
  readonly limits?: {
    /** Requests. @default "rpm" */
    readonly requests?: string;
    /** Tokens of all kinds. @default "tpm" */
    readonly tokens?: string;
    /** Tokens of prompts. @default "itpm" */
    readonly inputTokens?: string;
    /** Tokens of answers. @default "otpm" */
    readonly outputTokens?: string;
  };
  /** The longest that a 429 pauses the account. @default 60000 */
  readonly maxPauseMs?: number;
  /**
   * Called with what a provider said of its limits, such as to compare them with the stored ones.
   * @example
   * limitFetch({
   *   ...metered,
   *   upstream: { entityId: "openai", onMirror: (seen, model) => log(model, seen.tokens?.limit) },
   * });
   */
  readonly onMirror?: (seen: UpstreamLimits, model: string) => void;
}

const OPTION_NAMES = optionNames<UpstreamMirror>({
  entityId: true,
  resource: true,
  limits: true,
  maxPauseMs: true,
  onMirror: true,
});

const DEFAULT_NAMES: LimitNames = {
  requests: "rpm",
  tokens: "tpm",
  inputTokens: "itpm",
  outputTokens: "otpm",
};

const MAX_PAUSE_MS = 60_000;

/** How often an account is compared with answers that are no 429, in one process. */
const COMPARED_EVERY_MS = 1000;

/** How often what is there is tried to be taken, when others take it meanwhile. */
const MAX_ATTEMPTS = 3;

/** Keeps an account in step with its provider. */
export class Mirror {
  readonly #limiter: RateLimiter;
  readonly #options: UpstreamMirror;
  readonly #names: LimitNames;
  readonly #resource: (model: string) => string;

  /** `resource` is the resource of a call, which the account's is unless the options say more. */
  constructor(limiter: RateLimiter, options: UpstreamMirror, resource: (model: string) => string) {
    checkMirror(options);
    this.#limiter = limiter;
    this.#options = options;
    this.#names = namesOf(options.limits);
    this.#resource = options.resource ?? resource;
  }

  /**
   * Reads the headers of an answer. Resolves when what follows from them is written, and never
   * rejects: the call that was answered must not fail because of it.
   */
  async saw(headers: AnswerHeaders, status: number, model: string): Promise<void> {
    try {
      const nowMs = this.#limiter.clock.now();
      const seen = readUpstreamLimits(headers, nowMs);
      if (seen !== undefined)
        runSafely("upstream.onMirror", () => this.#options.onMirror?.(seen, model));
      const isRefused = status === 429;
      if (seen === undefined && !isRefused) return;
      const resource = this.#resource(model);
      const lane = laneOf(this.#limiter, this.#options.entityId, resource);
      if (!isRefused && lane.wasEnteredWithin(COMPARED_EVERY_MS, nowMs)) return;
      await lane.enter(nowMs, () => this.#compare(lane, resource, seen ?? {}, isRefused));
    } catch (error) {
      this.#warn(error);
    }
  }

  async #compare(
    lane: AccountLane,
    resource: string,
    seen: UpstreamLimits,
    isRefused: boolean,
  ): Promise<void> {
    try {
      const request = { entityId: this.#options.entityId, resource };
      const statuses = this.#own(await this.#limiter.check({ ...request, consume: {} }));
      const pause = isRefused ? this.#pauseOf(lane, seen, statuses) : undefined;
      await this.#take(request, seen, statuses, pause);
      if (pause !== undefined) lane.paused(pause, this.#limiter.clock.now());
    } catch (error) {
      this.#warn(error);
    }
  }

  async #take(
    request: Pick<AcquireRequest, "entityId" | "resource">,
    seen: UpstreamLimits,
    read: readonly LimitStatus[],
    pause: Pause | undefined,
  ): Promise<void> {
    let statuses = read;
    let amounts = amountsToTake(seen, this.#names, statuses, pause);
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
      const consume = amountsThere(amounts, statuses);
      if (Object.keys(consume).length === 0) break;
      const verdict = await this.#limiter.tryAcquire({
        ...request,
        consume,
        onUnavailable: "block",
      });
      if (verdict.granted) {
        await verdict.lease.commit();
        amounts = addAmounts(amounts, negated(consume));
        break;
      }
      statuses = this.#own(verdict.refusal);
      amounts = amountsToTake(seen, this.#names, statuses, pause);
    }
    if (pause !== undefined && Object.values(amounts).some((amount) => amount > 0))
      await this.#limiter.charge({ ...request, amounts });
  }

  /** What a 429 pauses, without the limits that pause already for as long. */
  #pauseOf(lane: AccountLane, seen: UpstreamLimits, statuses: readonly LimitStatus[]): Pause {
    const pauseMs = pauseMsOf(seen, this.#options.maxPauseMs ?? MAX_PAUSE_MS);
    const nowMs = this.#limiter.clock.now();
    const limitNames = limitsToPause(seen, this.#names, statuses).filter(
      (name) => !lane.isPausedFor(name, pauseMs, nowMs),
    );
    return { limitNames, pauseMs };
  }

  /** The account's own limits, without those of a parent. */
  #own({ statuses }: { readonly statuses: readonly LimitStatus[] }): readonly LimitStatus[] {
    return statuses.filter(({ entityId: owner }) => owner === this.#options.entityId);
  }

  #warn(error: unknown): void {
    warnOnce(
      "WARN_LIMITER_MIRROR_FAILED",
      `The account ${this.#options.entityId} could not be kept in step with its provider: ${textOf(error)}`,
    );
  }
}

/** Throws for options that are missing or wrong. */
function checkMirror(options: UpstreamMirror): void {
  if (!isRecord(options))
    throw new ValidationError(
      "upstream",
      options,
      'must be an object, such as { entityId: "openai" }',
    );
  checkOptions(options, OPTION_NAMES, "upstream");
  entityId(options.entityId, "upstream.entityId");
  const { resource, limits = {}, maxPauseMs, onMirror } = options;
  for (const [name, value] of Object.entries({ resource, onMirror }))
    if (value !== undefined && typeof value !== "function")
      throw new ValidationError(`upstream.${name}`, value, "must be a function");
  checkOptions(limits, new Set(Object.keys(DEFAULT_NAMES)), "upstream.limits");
  for (const [kind, name] of Object.entries(limits))
    if (name !== undefined) limitName(name, `upstream.limits.${kind}`);
  if (maxPauseMs !== undefined && !(Number.isFinite(maxPauseMs) && maxPauseMs >= 0))
    throw new ValidationError(
      "upstream.maxPauseMs",
      maxPauseMs,
      "must be 0 or more milliseconds, and finite",
    );
}

function namesOf(limits: UpstreamMirror["limits"] = {}): LimitNames {
  const named = Object.entries(limits).filter(([, name]) => name !== undefined);
  return { ...DEFAULT_NAMES, ...Object.fromEntries(named) };
}
