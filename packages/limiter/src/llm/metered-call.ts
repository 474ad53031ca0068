import type { Amounts } from "../core/amounts.ts";
import { METERED } from "../diagnostics/channels.ts";
import { warnOnce } from "../warnings/warn-once.ts";
import { endSafely } from "../limiter/end-safely.ts";
import type { Lease } from "../limiter/lease.ts";
import type { Clock } from "../repository/system-clock.ts";
import { runSafely, warnOfFailure } from "../warnings/run-safely.ts";
import type { AnswerReader, AnswerSoFar } from "./answers/answer-reader.ts";
import type { CheckedEstimator } from "./checked-estimator.ts";
import { classifyError, findHeaders, findStatus } from "./failures.ts";
import type { MeteredOptions } from "./options.ts";
import { Overrun } from "./overrun.ts";
import { computeSettlement, type CallEnd } from "./settlement.ts";
import type { Estimate, LlmCall } from "./tokens/llm-call.ts";
import type { MeteredRecord } from "./tokens/metered-record.ts";
import type { AnswerHeaders } from "./upstream/upstream-limits.ts";
import type { Mirror } from "./upstream/upstream-mirror.ts";
import { watchStream } from "./watch-stream.ts";

/** A call's reservation. */
export interface Reserved {
  readonly estimate: Estimate;
  /** The cost of the estimate, which has been taken. */
  readonly consume: Amounts;
  readonly lease: Lease;
}

/** Shared by all calls of one meter. */
export interface MeterParts {
  readonly options: Omit<MeteredOptions<never>, "entity">;
  readonly estimator: CheckedEstimator;
  readonly mirror: Mirror | undefined;
}

/** Tools and people may pause for minutes while they read a stream. */
const IDLE_MS = 300_000;

/** A call that was granted. It is settled once, by whatever ends it first. */
export class MeteredCall {
  readonly #meter: MeterParts;
  readonly #call: LlmCall;
  readonly #reserved: Reserved;
  readonly #startedAtMs: number;
  /** Resolves when the call is settled; undefined before it has ended. */
  #settled: Promise<void> | undefined;

  constructor(meter: MeterParts, call: LlmCall, reserved: Reserved) {
    this.#meter = meter;
    this.#call = call;
    this.#reserved = reserved;
    this.#startedAtMs = this.clock.now();
  }

  get clock(): Clock {
    return this.#meter.options.limiter.clock;
  }

  /** The resource that the call is charged to. */
  get resource(): string {
    return this.#reserved.lease.resource;
  }

  /**
   * Settles a call that threw instead of answering. After that, the mirror sees the status and
   * headers that the error carries. Never rejects.
   */
  async settleThrown(error: unknown, signal?: AbortSignal | null): Promise<void> {
    await this.end(classifyError(error, signal));
    await this.observeProviderLimits(findHeaders(error) ?? {}, findStatus(error) ?? 0);
  }

  /** Gives everything back: no model has answered, and none will. Never rejects. */
  settleFailed(): Promise<void> {
    return this.end({ end: "failed" });
  }

  /** Settles a call whose answer is complete. Never rejects. */
  settleAnswered(answer: AnswerSoFar): Promise<void> {
    return this.end({ ...this.#soFar(answer), end: "complete" });
  }

  /**
   * Returns the provider's stream, watched: the call is settled when the stream ends, however that
   * happens. `signal` is the one that aborts the call.
   */
  watch<Chunk>(
    stream: ReadableStream<Chunk>,
    answer: AnswerReader<Chunk>,
    signal?: AbortSignal | null,
  ): ReadableStream<Chunk> {
    return watchStream(stream, answer, {
      resource: this.resource,
      clock: this.clock,
      idleMs: this.#meter.options.idleMs ?? IDLE_MS,
      signal: signal ?? undefined,
      overrun: this.#meter.options.overrun === "stop" ? this.#overrun() : undefined,
      end: (end) => this.end({ ...this.#soFar(answer), end }),
    });
  }

  /**
   * Passes the headers of the provider's answer to the mirror. Waits only after a 429: a client
   * that retries then must find the account paused. Never rejects.
   */
  async observeProviderLimits(headers: AnswerHeaders, status: number): Promise<void> {
    const { consume } = this.#reserved;
    const seen = this.#meter.mirror?.observeProviderLimits(
      headers,
      status,
      this.#call.model,
      consume,
    );
    if (status === 429) await seen;
  }

  /** Settles the call, unless it has ended before. Never rejects. */
  end(end: CallEnd): Promise<void> {
    this.#settled ??= this.#settle(end);
    return this.#settled;
  }

  async #settle(end: CallEnd): Promise<void> {
    const { metering, abandoned = "counted" } = this.#meter.options;
    const { estimate, lease } = this.#reserved;
    const { usage, source, cost } = computeSettlement(end, { metering, estimate, abandoned });
    if (source === "reported") this.#meter.estimator.learn(this.#call, estimate, usage);
    await endSafely(
      lease,
      () => cost,
      (error) => warnOfFailure("The settlement", error),
    );
    this.#publish({
      entityId: lease.entityId,
      resource: lease.resource,
      model: this.#call.model,
      estimate,
      usage,
      source,
      end: end.end,
      durationMs: this.clock.now() - this.#startedAtMs,
    });
  }

  #publish(record: MeteredRecord): void {
    if (METERED.hasSubscribers) METERED.publish(record);
    runSafely("onSettled", () => this.#meter.options.onSettled?.(record));
  }

  #soFar(answer: AnswerSoFar): Omit<CallEnd, "end"> {
    if (answer.hasUnreadableUsage)
      warnOnce(
        "WARN_LIMITER_USAGE_UNREADABLE",
        `A provider reported a usage for ${this.resource} whose numbers cannot be read. The call was settled as if nothing had been reported.`,
      );
    const { reported, isReportFinal, outputBytes } = answer;
    const counted = outputBytes === undefined ? undefined : this.#count(outputBytes);
    return { reported, isReportFinal, counted };
  }

  #count(outputBytes: number): number {
    return this.#meter.estimator.tokensOf(this.#call, outputBytes);
  }

  #overrun(): Overrun {
    const { limiter, metering, onUnavailable } = this.#meter.options;
    const { lease, estimate } = this.#reserved;
    return new Overrun({
      lease,
      metering,
      estimate,
      goesOnWithoutStore: limiter.letsThrough(onUnavailable),
      count: (bytes) => this.#count(bytes),
    });
  }
}
