import type { Amounts } from "../core/amounts.ts";
import { METERED } from "../diagnostics/channels.ts";
import { warnOnce } from "../http/identity/warn-once.ts";
import type { Lease } from "../limiter/lease.ts";
import type { Clock } from "../repository/system-clock.ts";
import type { AnswerReader, AnswerSoFar } from "./answers/answer-reader.ts";
import { endOfError } from "./failures.ts";
import type { MeteredOptions } from "./options.ts";
import { Overrun } from "./overrun.ts";
import { settlementOf, type CallEnd } from "./settlement.ts";
import type { Estimate, Estimator, LlmCall } from "./tokens/llm-call.ts";
import type { MeteredRecord } from "./tokens/metered-record.ts";
import type { Mirror } from "./upstream/upstream-mirror.ts";
import { watchedStream } from "./watched-stream.ts";

/** What was reserved for a call. */
export interface Reserved {
  readonly estimate: Estimate;
  readonly taken: Amounts;
  readonly lease: Lease;
}

/** What a call needs of the options of its meter. */
type CallOptions = Omit<MeteredOptions<never>, "entity">;

const IDLE_MS = 300_000;

/** UTF-8 bytes in a token, where the estimator does not say. */
const BYTES_PER_TOKEN = 4;

/** A call that was granted. It is settled once, by whatever ends it first. */
export class MeteredCall {
  readonly #options: CallOptions;
  readonly #estimator: Estimator;
  readonly #mirror: Mirror | undefined;
  readonly #call: LlmCall;
  readonly #reserved: Reserved;
  readonly #startedAtMs: number;
  /** Resolves when the call is settled; undefined before it has ended. */
  #settled: Promise<void> | undefined;

  constructor(
    options: CallOptions,
    estimator: Estimator,
    mirror: Mirror | undefined,
    call: LlmCall,
    reserved: Reserved,
  ) {
    this.#options = options;
    this.#estimator = estimator;
    this.#mirror = mirror;
    this.#call = call;
    this.#reserved = reserved;
    this.#startedAtMs = this.clock.now();
  }

  get clock(): Clock {
    return this.#options.limiter.clock;
  }

  /** The resource that the call is charged to. */
  get resource(): string {
    return this.#reserved.lease.resource;
  }

  /** The call threw instead of answering. Resolves when it is settled; never rejects. */
  threw(error: unknown, signal?: AbortSignal | null): Promise<void> {
    return this.end(endOfError(error, signal));
  }

  /** The provider answered with an error: 400 and above. Never rejects. */
  failed(): Promise<void> {
    return this.end({ end: "failed" });
  }

  /** The provider has answered, and this is all of it. Never rejects. */
  answered(answer: AnswerSoFar): Promise<void> {
    return this.end({ ...this.#soFar(answer), end: "complete" });
  }

  /**
   * The provider answers with a stream. Returns the same stream, watched: the call is settled when
   * the stream ends, however it does. `signal` is the one that the caller aborts the call with.
   */
  watch<Chunk>(
    stream: ReadableStream<Chunk>,
    answer: AnswerReader<Chunk>,
    signal?: AbortSignal | null,
  ): ReadableStream<Chunk> {
    return watchedStream(stream, answer, {
      resource: this.resource,
      clock: this.clock,
      idleMs: this.#options.idleMs ?? IDLE_MS,
      signal: signal ?? undefined,
      overrun: this.#options.overrun === "stop" ? this.#overrun() : undefined,
      end: (end) => this.end({ ...this.#soFar(answer), end }),
    });
  }

  /** Headers of the provider's answer, for the mirror. Never rejects. */
  async saw(headers: Headers | Readonly<Record<string, string>>, status: number): Promise<void> {
    await this.#mirror?.saw(headers, status, this.#call.model);
  }

  /** Settles the call, unless it has ended before. Never rejects. */
  end(end: CallEnd): Promise<void> {
    this.#settled ??= this.#settle(end);
    return this.#settled;
  }

  async #settle(end: CallEnd): Promise<void> {
    const { metering, abandoned = "counted" } = this.#options;
    const { estimate, lease, taken } = this.#reserved;
    const settlement = settlementOf(end, {
      metering,
      estimate,
      taken: { ...taken, ...lease.consumed },
      abandoned,
    });
    const { usage, source, totals } = settlement;
    if (source === "reported") this.#learn(usage);
    try {
      if (totals !== undefined) lease.settle(totals);
      await lease.finish(totals === undefined ? "rollback" : "commit", true);
    } catch (error) {
      warnOfFailure(error);
    }
    this.#tell({
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

  #learn(usage: MeteredRecord["usage"]): void {
    try {
      this.#estimator.learn?.(this.#call, this.#reserved.estimate, usage);
    } catch (error) {
      warnOfFailure(error);
    }
  }

  #tell(record: MeteredRecord): void {
    if (METERED.hasSubscribers) METERED.publish(record);
    try {
      this.#options.onSettled?.(record);
    } catch (error) {
      warnOfFailure(error);
    }
  }

  #soFar(answer: AnswerSoFar): Omit<CallEnd, "end"> {
    if (answer.hasUnreadableUsage)
      warnOnce(
        "WARN_LIMITER_USAGE_UNREADABLE",
        `A provider reported a usage for ${this.#call.model} whose numbers cannot be read. The call was settled as if nothing had been reported.`,
      );
    const { reported, isReportFinal, outputBytes } = answer;
    return { reported, isReportFinal, counted: this.#count(outputBytes) };
  }

  #count(outputBytes: number | undefined): number | undefined {
    if (outputBytes === undefined) return undefined;
    return (
      this.#estimator.tokensOf?.(this.#call, outputBytes) ??
      Math.ceil(outputBytes / BYTES_PER_TOKEN)
    );
  }

  #overrun(): Overrun {
    const { limiter, metering, onUnavailable } = this.#options;
    const { lease, estimate } = this.#reserved;
    return new Overrun({
      lease,
      metering,
      estimate,
      goesOnWithoutStore: limiter.letsThrough(onUnavailable),
      count: (bytes) => this.#count(bytes)!,
    });
  }
}

/** What was taken stays charged: a mistake of the application must not open the limits. */
function warnOfFailure(error: unknown): void {
  warnOnce(
    "WARN_LIMITER_METERING_FAILED",
    `A function of the application failed at the end of a call: ${String(error)}.`,
  );
}
