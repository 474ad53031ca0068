/*
 * A stream that is watched as it goes by. Chunks are passed on as they are, one for one, and one is
 * read only when one is asked for: nothing is delayed, merged, split or buffered. Only the end of
 * the stream waits until the call is settled.
 *
 *   the answer is complete      "complete", also if its reader then cancels: OpenAI's client does
 *   the reader cancels          "abandoned"
 *   the caller aborts           "abandoned"
 *   nobody reads for a while    "abandoned", and the provider is told to stop
 *   it fails or ends too early  "cut"
 *   nothing is left to take     "stopped", and the provider is told to stop
 */
import type { Clock } from "../repository/system-clock.ts";
import { STREAM } from "../diagnostics/channels.ts";
import type { StreamMessage } from "../diagnostics/messages.ts";
import type { AnswerReader } from "./answers/answer-reader.ts";
import type { Overrun } from "./overrun.ts";
import type { MeteredRecord } from "./tokens/metered-record.ts";

/** What a watched stream needs of its call. */
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

/** The same stream, watched. */
export function watchedStream<Chunk>(
  stream: ReadableStream<Chunk>,
  answer: AnswerReader<Chunk>,
  call: WatchedCall,
): ReadableStream<Chunk> {
  const watched = new WatchedStream(stream, answer, call);
  return new ReadableStream<Chunk>(
    {
      pull: (controller) => watched.pull(controller),
      cancel: (reason) => watched.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}

class WatchedStream<Chunk> {
  readonly #reader: ReadableStreamDefaultReader<Chunk>;
  readonly #answer: AnswerReader<Chunk>;
  readonly #call: WatchedCall;
  /** Aborted at the end, which ends the watch for idleness. */
  readonly #ended = new AbortController();
  readonly #onAbort = (): void => void this.#end("abandoned");
  /** Published when the stream begins, if somebody listens then, and again when it has ended. */
  readonly #message: Writable<StreamMessage> | undefined;
  /** Whether somebody waits for a chunk. */
  #isRead = false;
  #lastReadMs: number;
  #isCancelled = false;
  /** Why nothing more can be read, if the watch ended the stream. */
  #failure: Error | undefined;

  constructor(stream: ReadableStream<Chunk>, answer: AnswerReader<Chunk>, call: WatchedCall) {
    this.#reader = stream.getReader();
    this.#answer = answer;
    this.#call = call;
    this.#lastReadMs = call.clock.now();
    if (STREAM.hasSubscribers) {
      this.#message = { resource: call.resource, state: "open" };
      STREAM.publish(this.#message);
    }
    call.signal?.addEventListener("abort", this.#onAbort, { once: true });
    if (call.signal?.aborted === true) this.#onAbort();
    void this.#watchIdleness();
  }

  async pull(controller: ReadableStreamDefaultController<Chunk>): Promise<void> {
    this.#isRead = true;
    try {
      while (!(await this.#passOne(controller)));
    } catch (error) {
      await this.#end(this.#isOver ? "complete" : "cut");
      if (!this.#isCancelled) throw error;
    } finally {
      this.#isRead = false;
      this.#lastReadMs = this.#call.clock.now();
    }
  }

  async cancel(reason: unknown): Promise<void> {
    this.#isCancelled = true;
    const ended = this.#end(this.#isOver ? "complete" : "abandoned");
    await this.#reader.cancel(reason);
    await ended;
  }

  /** Whether the answer has all that the protocol promises. */
  get #isOver(): boolean {
    return this.#answer.isComplete || this.#answer.isReportFinal;
  }

  /** Passes one chunk on; resolves with false if it was withheld. */
  async #passOne(controller: ReadableStreamDefaultController<Chunk>): Promise<boolean> {
    const { done, value } = await this.#reader.read();
    if (this.#failure !== undefined) throw this.#failure;
    if (done) {
      const rest = this.#answer.end();
      if (rest !== undefined && !this.#isCancelled) controller.enqueue(rest);
      await this.#end(this.#isOver ? "complete" : "cut");
      if (!this.#isCancelled) controller.close();
      return true;
    }
    const passed = this.#answer.read(value);
    await this.#pay("beforeDelivery");
    if (this.#isCancelled) return true;
    if (passed !== undefined) controller.enqueue(passed);
    if (this.#answer.isComplete) await this.#end("complete");
    else await this.#pay("afterDelivery");
    return passed !== undefined;
  }

  /** Throws the refusal if nothing is left, and tells the provider to stop. */
  async #pay(when: "beforeDelivery" | "afterDelivery"): Promise<void> {
    const { overrun } = this.#call;
    if (overrun === undefined) return;
    const refusal = await overrun[when](this.#answer.outputBytes ?? 0);
    if (refusal === undefined) return;
    await this.#end("stopped");
    await this.#reader.cancel(refusal).catch(() => {});
    throw refusal;
  }

  /** Ends once: listener and timer go, and the call is settled. */
  #end(end: MeteredRecord["end"]): Promise<void> {
    if (!this.#ended.signal.aborted) {
      this.#ended.abort();
      this.#call.signal?.removeEventListener("abort", this.#onAbort);
      if (this.#message !== undefined) {
        this.#message.state = "closed";
        STREAM.publish(this.#message);
      }
    }
    return this.#call.end(end);
  }

  /** A slow provider is not idleness: only while nobody waits for a chunk, time counts. */
  async #watchIdleness(): Promise<void> {
    const { clock, idleMs } = this.#call;
    let restMs = idleMs;
    while (restMs > 0) {
      try {
        await clock.sleep(restMs, this.#ended.signal, { holdsProcess: false });
      } catch {
        return; // the stream has ended
      }
      restMs = this.#isRead ? idleMs : this.#lastReadMs + idleMs - clock.now();
    }
    await this.#end("abandoned");
    this.#failure = new Error(
      `Nobody read the stream for ${idleMs} ms, so the call was settled and ended.`,
    );
    await this.#reader.cancel(this.#failure).catch(() => {});
  }
}
