/*
 * Keeps an account in step with its provider:
 *
 *   answer, no 429, at most once a second ─▶ read the account ─▶ take what it holds in excess
 *   429, all of them, a crowd at a time ───▶ read the account ─▶ take that and what is left of the
 *                                            limits that pause, and charge the debt of their pause
 *
 * The mirror only ever takes. Available tokens are taken as a call takes them, all or nothing: when
 * four processes get the same answer at once, one of them takes, and the others read again. (When
 * each charged what it had read, the debt was three full buckets, which took minutes to heal.) Only
 * the debt of a pause is charged unconditionally.
 *
 * The reported balance is compared with a fresh read, so ten equal answers take once. A 429 that
 * arrives during the pause of an earlier one was in flight before it. It does not cause another
 * pause, unless it asks for a longer one. But its call has just given back what it had reserved,
 * and as much of that is taken again as the pause is short of. Those that wait meanwhile are
 * compared as one, by the strictest values: otherwise a crowd of 429s would wait for as many reads,
 * and while the store is down, for as many time-outs.
 *
 * Tokens that are reserved here and not counted by the provider yet make our balance the lower one,
 * and then nothing is taken. What comes back of them is compared a second later. Headers that are
 * old when they arrive take too much, by what refilled meanwhile. That costs some of the burst, but
 * not of the rate.
 */
import { addAmounts, isRecord, NO_AMOUNTS, type Amounts } from "../../core/amounts.ts";
import { negate, type LimitStatus } from "../../core/bucket/decision.ts";
import { ValidationError } from "../../core/errors.ts";
import { entityId, limitName } from "../../core/identifiers.ts";
import { checkOptions, optionNames } from "../../core/options.ts";
import { runSafely, toText } from "../../warnings/run-safely.ts";
import { warnOnce } from "../../warnings/warn-once.ts";
import type { AcquireRequest } from "../../limiter/call.ts";
import type { RateLimiter } from "../../limiter/rate-limiter.ts";
import { findQueue, type AccountQueue } from "./account-queues.ts";
import {
  cutToAvailable,
  computeAmountsToTake,
  findLimitsWithoutDebt,
  findLimitsToPause,
  computePauseMs,
  type LimitNames,
  type Pause,
} from "./mirror-charges.ts";
import { readUpstreamLimits, type AnswerHeaders, type UpstreamLimits } from "./upstream-limits.ts";

/** The provider's account as an entity. Tokens are only ever taken from it, never credited. */
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
   * Called with the limits that a provider reported, such as to compare them with the stored ones.
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

/** How often an account is compared with answers that are not 429, in one process. */
const COMPARED_EVERY_MS = 1000;

/** How often a take is attempted while others take from the same account. */
const MAX_ATTEMPTS = 3;

/** The account on one resource. */
type Account = Pick<AcquireRequest, "entityId" | "resource">;

/** Keeps an account in step with its provider. */
export class Mirror {
  readonly #limiter: RateLimiter;
  readonly #options: UpstreamMirror;
  readonly #names: LimitNames;
  readonly #resource: (model: string) => string;

  /** `resource` maps a model to the resource of a call, which is also the account's by default. */
  constructor(limiter: RateLimiter, options: UpstreamMirror, resource: (model: string) => string) {
    checkMirror(options);
    this.#limiter = limiter;
    this.#options = options;
    this.#names = resolveNames(options.limits);
    this.#resource = options.resource ?? resource;
  }

  /**
   * Reads the headers of an answer. Resolves when the consequences are stored, and never rejects:
   * the call that was answered must not fail because of them. `givenBack` is what the call had
   * reserved, if it was given back.
   */
  async observeProviderLimits(
    headers: AnswerHeaders,
    status: number,
    model: string,
    givenBack: Amounts = NO_AMOUNTS,
  ): Promise<void> {
    try {
      const nowMs = this.#limiter.clock.now();
      const seen = readUpstreamLimits(headers, nowMs);
      if (seen !== undefined)
        runSafely("upstream.onMirror", () => this.#options.onMirror?.(seen, model));
      const isRefused = status === 429;
      if (seen === undefined && !isRefused) return;
      const resource = this.#resource(model);
      const queue = findQueue(this.#limiter, this.#options.entityId, resource);
      const reported = seen ?? {};
      if (isRefused)
        await queue.enterRefused(nowMs, { seen: reported, givenBack }, (all) =>
          this.#compare(queue, resource, all.seen, all.givenBack),
        );
      else if (!queue.wasEnteredWithin(COMPARED_EVERY_MS, nowMs))
        await queue.enter(nowMs, () => this.#compare(queue, resource, reported));
    } catch (error) {
      this.#warn(error);
    }
  }

  /** `givenBack` is undefined for an answer that is not a 429. */
  async #compare(
    queue: AccountQueue,
    resource: string,
    seen: UpstreamLimits,
    givenBack?: Amounts,
  ): Promise<void> {
    try {
      const request: Account = { entityId: this.#options.entityId, resource };
      const statuses = await this.#read(request);
      const pause = givenBack && { givenBack, ...this.#computePause(queue, seen, statuses) };
      await this.#take(request, seen, statuses, pause);
      if (pause !== undefined) queue.startPause(pause, this.#limiter.clock.now());
    } catch (error) {
      this.#warn(error);
    }
  }

  async #take(
    request: Account,
    seen: UpstreamLimits,
    read: readonly LimitStatus[],
    pause: Pause | undefined,
  ): Promise<void> {
    let statuses = read;
    let amounts = computeAmountsToTake(seen, this.#names, statuses, pause);
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
      const consume = cutToAvailable(amounts, statuses);
      if (Object.keys(consume).length === 0) break;
      const verdict = await this.#limiter.tryAcquire({
        ...request,
        consume,
        ...findLimitsWithoutDebt(statuses),
        onUnavailable: "block",
      });
      if (verdict.granted) {
        await verdict.lease.commit();
        amounts = addAmounts(amounts, negate(consume));
        break;
      }
      statuses = await this.#read(request);
      amounts = computeAmountsToTake(seen, this.#names, statuses, pause);
    }
    const pausing = new Set([...(pause?.begins ?? []), ...(pause?.lasts.keys() ?? [])]);
    const debts = Object.entries(amounts).filter(
      ([name, amount]) => amount > 0 && pausing.has(name),
    );
    if (debts.length > 0)
      await this.#limiter.charge({ ...request, amounts: Object.fromEntries(debts) });
  }

  /** Computes the pause of a 429. Limits whose pause is as long already keep it. */
  #computePause(
    queue: AccountQueue,
    seen: UpstreamLimits,
    statuses: readonly LimitStatus[],
  ): Omit<Pause, "givenBack"> {
    const pauseMs = computePauseMs(seen, this.#options.maxPauseMs ?? MAX_PAUSE_MS);
    const nowMs = this.#limiter.clock.now();
    const begins: string[] = [];
    const lasts = new Map<string, number>();
    for (const name of findLimitsToPause(seen, this.#names, statuses)) {
      const remainingMs = queue.getRemainingPauseMs(name, pauseMs, nowMs);
      if (remainingMs > 0) lasts.set(name, remainingMs);
      else begins.push(name);
    }
    return { begins, pauseMs, lasts };
  }

  /** Reads the account's own limits, without those of a parent. */
  async #read(request: Account): Promise<readonly LimitStatus[]> {
    const { statuses } = await this.#limiter.check({ ...request, consume: {} });
    return statuses.filter(({ entityId: owner }) => owner === request.entityId);
  }

  #warn(error: unknown): void {
    warnOnce(
      "WARN_LIMITER_MIRROR_FAILED",
      `The account ${this.#options.entityId} could not be kept in step with its provider: ${toText(error)}`,
    );
  }
}

/** Throws for options that are missing or invalid. */
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

function resolveNames(limits: UpstreamMirror["limits"] = {}): LimitNames {
  const named = Object.entries(limits).filter(([, name]) => name !== undefined);
  return { ...DEFAULT_NAMES, ...Object.fromEntries(named) };
}
