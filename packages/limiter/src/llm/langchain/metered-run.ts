import { classifyError } from "../failures.ts";
import type { MeteredCall } from "../metered-call.ts";
import { RunAnswer, type Piece } from "./run-answer.ts";

/**
 * A granted run of LangChain. Its pieces pass through a watched stream, as if they came from the
 * provider, so a run stops if its caller aborts it or if it is too long.
 *
 * Callbacks cannot distinguish a slow provider from a caller who does not read. So a read is always
 * pending here, and no time counts as idle.
 */
export class MeteredRun {
  readonly #call: MeteredCall;
  readonly #signal: AbortSignal | undefined;
  readonly #answer = new RunAnswer();
  readonly #pieces: ReadableStreamDefaultReader<Piece>;
  /** The pending read. */
  #next: Promise<unknown> = Promise.resolve();
  #source!: ReadableStreamDefaultController<Piece>;
  #isOver = false;

  /** `onStop` is called with the reason when the run is settled before LangChain has ended it. */
  constructor(
    call: MeteredCall,
    signal: AbortSignal | undefined,
    onStop: (reason: unknown) => void,
  ) {
    this.#call = call;
    this.#signal = signal;
    const source = new ReadableStream<Piece>(
      {
        start: (controller) => void (this.#source = controller),
        cancel: (reason) => {
          if (!this.#isOver) onStop(reason);
          this.#isOver = true;
        },
      },
      { highWaterMark: 0 },
    );
    this.#pieces = call.watch(source, this.#answer, signal).getReader();
    void this.#read();
  }

  /** Adds a piece of the answer. */
  async addPiece(piece: Piece): Promise<void> {
    if (this.#isOver) return;
    this.#source.enqueue(piece);
    await this.#read();
  }

  /** Settles a run that has its answer. */
  async complete(output: unknown): Promise<void> {
    if (this.#isOver) return;
    this.#answer.complete(output);
    this.#source.close();
    await this.#read();
  }

  /** Settles a run that was answered from a cache, without a provider. */
  async cancelCached(): Promise<void> {
    this.#isOver = true;
    await this.#call.settleFailed();
    await this.#pieces.cancel();
  }

  /** Settles a run that LangChain dropped without ending it. */
  async abandon(): Promise<void> {
    this.#isOver = true;
    await this.#pieces.cancel();
  }

  /** Settles a run that failed, after all attempts. */
  async fail(error: unknown): Promise<void> {
    this.#isOver = true;
    const { end } = classifyError(error, this.#signal);
    if (this.#answer.outputBytes === undefined) await this.#call.end({ end });
    // Output before the failure is counted.
    if (end === "abandoned") await this.#pieces.cancel(error).catch(() => {});
    else {
      this.#source.error(error);
      await this.#read().catch(() => {});
    }
    await this.#call.settleThrown(error, this.#signal); // it is settled, and the mirror sees the error
  }

  /** Waits for the pending read, and begins another one. */
  #read(): Promise<unknown> {
    const next = this.#next;
    this.#next = this.#pieces.read();
    this.#next.catch(() => {}); // its caller sees how it failed
    return next;
  }
}
