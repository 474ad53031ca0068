/*
 * The end of a request of the web standard. A `Response` is a value, and there is no event when it
 * was sent. So its body is watched:
 *
 *   granted ─▶ the handler threw              ended, with status 500
 *           ─▶ the client went away           ended, not completed, response or not
 *           ─▶ a response without a body      ended
 *           ─▶ a response with a body ─▶ read to its end        ended
 *                                     ─▶ failed or cancelled    ended, not completed
 *
 * The first of these ends the lease, and the rest is ignored: after a cancel, a pending read still
 * reports the end of the body. If the body is neither read nor cancelled, and the client stays, the
 * lease stays open, and so does the charge.
 */
import type { RequestLease } from "./request-lease.ts";
import type { HeaderFields } from "./headers/options.ts";
import type { Client } from "./request-limit.ts";
import { isCopyable, isSpent, copyResponse } from "./web-response.ts";

/** The client of a request, by its signal. */
export class WebClient implements Client {
  readonly signal: AbortSignal;

  constructor({ signal }: Request) {
    this.signal = signal;
  }

  get isGone(): boolean {
    return this.signal.aborted;
  }

  /** The limiter removes its own listener. */
  stopWaiting(): void {}
}

/** A request that was granted. Its lease ends once. */
export class WebRequest<Q> {
  readonly #lease: RequestLease<Q>;
  readonly #request: Request;
  readonly #signal: AbortSignal;
  readonly #onAbort = (): void => this.#end(false, undefined);
  /** As on Node before there is a response: leaving early must not look like a failure. */
  #status = 200;

  constructor(lease: RequestLease<Q>, request: Request) {
    this.#lease = lease;
    this.#request = request;
    this.#signal = request.signal;
    this.#signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  /** The handler threw, so the platform responds. */
  onThrown(error: unknown): void {
    this.#status = 500;
    this.#end(true, error);
  }

  /**
   * The handler returned this response. Returns the one to send, with further header fields and a
   * body that is watched. `error` is what the handler threw if its framework made the response.
   */
  onResponse(response: Response, fields: HeaderFields, error?: unknown): Response {
    const { status } = response;
    // A network error, which platforms answer with 500.
    this.#status = status === 0 ? 500 : status;
    if (!isCopyable(response)) {
      this.#end(!isSpent(response), error);
      return response;
    }
    const { body } = response;
    // The body of a response to HEAD is not sent, and not every platform cancels it.
    if (body === null || this.#request.method === "HEAD") {
      this.#end(true, error);
      return copyResponse(response, body, fields);
    }
    return copyResponse(response, this.#watch(body, error), fields);
  }

  /**
   * Passes chunks on as they are, and reads one only when one is asked for: a slow client slows the
   * handler, as without us. A byte stream would refuse chunks that platforms accept, such as empty
   * ones.
   */
  #watch(body: ReadableStream<Uint8Array>, handlerError: unknown): ReadableStream<Uint8Array> {
    const reader = body.getReader();
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          try {
            const { done, value } = await reader.read();
            if (!done) return controller.enqueue(value);
          } catch (error) {
            this.#end(false, error);
            throw error;
          }
          this.#end(true, handlerError);
          controller.close();
        },
        cancel: (reason) => {
          this.#end(false, handlerError);
          return reader.cancel(reason);
        },
      },
      { highWaterMark: 0 },
    );
  }

  #end(completed: boolean, error: unknown): void {
    this.#signal.removeEventListener("abort", this.#onAbort);
    this.#lease.end({ status: this.#status, completed, error });
  }
}
