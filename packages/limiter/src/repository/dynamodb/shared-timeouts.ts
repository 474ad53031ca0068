import { setMaxListeners } from "node:events";
import { monotonicMs, startTimeout, type Timeout } from "../system-clock.ts";

/** How many signals follow each other within one time-out. */
const SHARES = 32;

/** What a time-out is made of; tests bring their own. */
export interface TimeoutParts {
  readonly nowMs: () => number;
  readonly start: (ms: number) => Timeout;
}

/**
 * Time-outs for many short pieces of I/O. Those that begin within a 32nd of the time-out share one
 * signal and one timer: a signal for each costs 18 µs of CPU until it is collected, which is more
 * than to sign a request. A piece of work has its whole time but for that 32nd, and never more.
 */
export class SharedTimeouts {
  readonly #ms: number;
  readonly #parts: TimeoutParts;
  #current: SharedTimeout | undefined;
  #nextAtMs = 0;

  constructor(ms: number, parts: TimeoutParts = { nowMs: monotonicMs, start: startTimeout }) {
    this.#ms = ms;
    this.#parts = parts;
  }

  /** A time-out for work that begins now; `end` it when the work has ended. */
  begin(): SharedTimeout {
    const nowMs = this.#parts.nowMs();
    if (this.#current === undefined || nowMs >= this.#nextAtMs) {
      this.#current = new SharedTimeout(this.#parts.start(this.#ms));
      this.#nextAtMs = nowMs + this.#ms / SHARES;
    }
    this.#current.begin();
    return this.#current;
  }
}

/** One signal for all work of a short while. It keeps the process alive while it has work. */
class SharedTimeout {
  readonly signal: AbortSignal;
  readonly #timeout: Timeout;
  #working = 0;

  constructor(timeout: Timeout) {
    this.signal = timeout.signal;
    this.#timeout = timeout;
    // Node warns of an eleventh listener, which is no leak here.
    setMaxListeners(0, timeout.signal);
    timeout.release();
  }

  begin(): void {
    if (this.#working === 0) this.#timeout.hold();
    this.#working += 1;
  }

  end(): void {
    this.#working -= 1;
    if (this.#working === 0) this.#timeout.release();
  }
}
