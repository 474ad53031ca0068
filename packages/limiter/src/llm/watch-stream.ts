/*
 * Watches a stream as it passes. Each chunk is passed on unchanged, and read only when the reader
 * asks for one: nothing is delayed, merged, split or buffered. Only the end of the stream waits
 * until the call is settled.
 *
 *   the answer is complete      "complete", also if its reader then cancels: OpenAI's client does
 *   the reader cancels          "abandoned"
 *   the caller aborts           "abandoned", and the stream fails with the signal's reason
 *   it is not read for a while  "abandoned", and the stream fails
 *   it fails or ends too early  "cut"
 *   no more can be taken        "stopped", and the stream fails with the refusal
 *
 * Whichever comes first settles the call. If the stream fails, the provider is stopped at once, and
 * the reader gets the error after the settlement.
 */
import { RateLimitError } from "../core/errors.ts";
import { STREAM } from "../diagnostics/channels.ts";
import type { StreamMessage } from "../diagnostics/messages.ts";
import { listenTo, stopListeningTo, type Endable } from "../limiter/shared-signals.ts";
import { startAlarm, type Clock } from "../repository/system-clock.ts";
import type { AnswerReader } from "./answers/answer-reader.ts";
import { STRIDE_TOKENS, type Overrun } from "./overrun.ts";
import type { MeteredRecord } from "./tokens/metered-record.ts";

/** The parts of a call that its watched stream needs. */
export interface WatchedCall {
  readonly resource: string;
  readonly clock: Clock;
  readonly idleMs: number;
  /** Aborted by the caller. */
  readonly signal: AbortSignal | undefined;
  /** Given if more is taken while the answer streams. */
  readonly overrun: Overrun | undefined;
  /** Settles the call; only the first time counts. Never rejects. */
  end(end: MeteredRecord["end"]): Promise<void>;
}

type Writable<T> = { -readonly [Name in keyof T]: T[Name] };

/** Returns the same stream, watched. */
export function watchStream<Chunk>(
  stream: ReadableStream<Chunk>,
  answer: AnswerReader<Chunk>,
  call: WatchedCall,
): ReadableStream<Chunk> {
  return new ReadableStream(new WatchedStream(stream, answer, call), { highWaterMark: 0 });
}

class WatchedStream<Chunk> {
  readonly #reader: ReadableStreamDefaultReader<Chunk>;
  readonly #answer: AnswerReader<Chunk>;
  readonly #call: WatchedCall;
  /** Published when the stream begins, if there is a subscriber then, and again when it ends. */
  #message: Writable<StreamMessage> | undefined;
  /** Many streams may have one signal: that of a shutdown, for instance. */
  readonly #abortable: Endable = { end: (reason) => this.#stop("abandoned", reason) };
  /** Stops watching for idleness. */
  #stopAlarm: (() => void) | undefined;
  #controller!: ReadableStreamDefaultController<Chunk>;
  /** Resolves when the call is settled; undefined before it has ended. */
  #settled: Promise<void> | undefined;
  /** Whether nothing more is passed on: the reader has cancelled, or the stream was stopped. */
  #isClosed = false;
  /** Whether the reader waits for a chunk. */
  #isRead = false;
  #lastReadMs: number;

  constructor(stream: ReadableStream<Chunk>, answer: AnswerReader<Chunk>, call: WatchedCall) {
    this.#reader = stream.getReader();
    this.#answer = answer;
    this.#call = call;
    this.#lastReadMs = call.clock.now();
  }

  start(controller: ReadableStreamDefaultController<Chunk>): void {
    this.#controller = controller;
    const { resource, signal } = this.#call;
    if (STREAM.hasSubscribers) STREAM.publish((this.#message = { resource, state: "open" }));
    if (signal?.aborted === true) return this.#stop("abandoned", signal.reason);
    if (signal !== undefined) listenTo(signal, this.#abortable);
    this.#watchIdleness(this.#call.idleMs);
  }

  async pull(): Promise<void> {
    this.#isRead = true;
    try {
      let isPassed = false;
      while (!isPassed && !this.#isClosed) {
        const { done, value } = await this.#reader.read();
        if (this.#isClosed) return;
        if (done) return await this.#close();
        const passed = this.#answer.read(value);
        // What was read is passed on before it is taken, except if that were more than a stride.
        if (this.#unpaid > STRIDE_TOKENS) await this.#takeMore();
        isPassed = this.#passOn(passed);
        if (this.#unpaid > 0 && !this.#answer.isReportFinal) await this.#takeMore();
      }
    } catch (error) {
      await this.#fail(error);
    } finally {
      this.#isRead = false;
      this.#lastReadMs = this.#call.clock.now();
    }
  }

  async cancel(reason: unknown): Promise<void> {
    this.#isClosed = true;
    const settled = this.#end("abandoned");
    try {
      await this.#reader.cancel(reason);
    } finally {
      await settled;
    }
  }

  /** Passes a chunk on, unless it is withheld or the reader is gone. */
  #passOn(passed: Chunk | undefined): boolean {
    const isPassed = passed !== undefined && !this.#isClosed;
    if (isPassed) this.#controller.enqueue(passed);
    // This is not awaited: if anything comes after it, that is not delayed.
    if (this.#answer.isComplete) void this.#end("complete");
    return isPassed;
  }

  /** The provider has ended the stream. */
  async #close(): Promise<void> {
    const rest = this.#answer.end();
    if (rest !== undefined) this.#controller.enqueue(rest);
    await this.#end("cut");
    if (!this.#isClosed) this.#controller.close();
  }

  /** Ends a stream that failed. Rejects with the error, unless the reader is gone. */
  async #fail(error: unknown): Promise<void> {
    this.#reader.cancel(error).catch(() => {});
    await this.#end(this.#call.signal?.aborted === true ? "abandoned" : "cut");
    if (!this.#isClosed) throw error;
  }

  /** Output tokens that were passed on but not taken. Nothing is taken after the end. */
  get #unpaid(): number {
    const { overrun } = this.#call;
    if (overrun === undefined || this.#settled !== undefined) return 0;
    return overrun.unpaid(this.#answer.outputBytes ?? 0);
  }

  async #takeMore(): Promise<void> {
    try {
      await this.#call.overrun?.take(this.#answer.outputBytes ?? 0);
    } catch (error) {
      this.#stop("stopped", error);
    }
  }

  /** Ends the stream before the provider does. */
  #stop(end: MeteredRecord["end"], failure: unknown): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const settled = this.#end(end);
    this.#reader.cancel(failure).catch(() => {});
    void settled.then(() => this.#controller.error(failure));
  }

  /** Settles the call and removes listener and timer, the first time only. */
  #end(end: MeteredRecord["end"]): Promise<void> {
    if (this.#settled !== undefined) return this.#settled;
    const { signal } = this.#call;
    const isOver = this.#answer.isComplete || this.#answer.isReportFinal;
    // Clients cancel or abort a stream after the provider reported an error in it.
    const left = end === "abandoned" && this.#answer.hasFailed === true ? "cut" : end;
    this.#settled = this.#call.end(isOver && end !== "stopped" ? "complete" : left);
    this.#stopAlarm?.();
    if (signal !== undefined) stopListeningTo(signal, this.#abortable);
    if (this.#message !== undefined) {
      this.#message.state = "closed";
      STREAM.publish(this.#message);
    }
    return this.#settled;
  }

  #watchIdleness(restMs: number): void {
    this.#stopAlarm = startAlarm(this.#call.clock, restMs, () => this.#checkIdleness());
  }

  /** Only time in which the reader does not wait for a chunk counts: a provider may be slow. */
  #checkIdleness(): void {
    if (this.#settled !== undefined) return;
    const { clock, idleMs } = this.#call;
    const idleForMs = this.#isRead ? 0 : clock.now() - this.#lastReadMs;
    // Setting the clock back does not make the wait longer.
    if (idleForMs < idleMs) this.#watchIdleness(Math.min(idleMs, idleMs - idleForMs));
    else this.#stop("abandoned", buildIdleError(idleMs));
  }
}

function buildIdleError(idleMs: number): RateLimitError {
  return new RateLimitError(
    "ERR_LIMITER_STREAM_IDLE",
    `This stream was not read for ${idleMs} ms, so it was closed and its call was settled. Read streams to their end or cancel them, or raise idleMs.`,
  );
}
