/*
 * Signals arrivals, from a thread of its own. Timers of the event loop are a millisecond
 * apart, and would let those who come within one arrive together; a loop that spins would take the
 * CPU that is to be measured. This thread sleeps until the next one is due, to about 0.1 ms.
 */
import { parentPort } from "node:worker_threads";

/** When to arrive, in milliseconds of `process.hrtime`. */
export interface Schedule {
  readonly dueMs: readonly number[];
}

const neverWoken = new Int32Array(new SharedArrayBuffer(4));

parentPort!.on("message", ({ dueMs }: Schedule) => {
  for (const [index, ms] of dueMs.entries()) {
    const waitMs = ms - Number(process.hrtime.bigint()) / 1e6;
    if (waitMs > 0) Atomics.wait(neverWoken, 0, 0, waitMs);
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- This is not a window.
    parentPort!.postMessage(index);
  }
});
