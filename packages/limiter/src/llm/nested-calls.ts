import { AsyncLocalStorage } from "node:async_hooks";
import { warnOnce } from "../warnings/warn-once.ts";

/** A metered call, until it has answered. */
interface RunningCall {
  isRunning: boolean;
}

/** The metered call that the running code belongs to. */
const WITHIN = new AsyncLocalStorage<RunningCall>();

/**
 * Runs a call that is metered. Meters inside of it do nothing until the call has answered or
 * thrown. The stream of an answer is not part of the call: although its source runs in the same
 * async context while it is read, model calls made there, such as by tools, are calls of their own.
 */
export async function runMetered<T>(work: () => T | PromiseLike<T>): Promise<T> {
  const call: RunningCall = { isRunning: true };
  try {
    // Some promises start their work only when they are awaited, so `work` is awaited inside.
    return await WITHIN.run(call, () => Promise.resolve(work()));
  } finally {
    call.isRunning = false;
  }
}

/**
 * Whether a call is part of one that is metered already, such as the fetch of a model that has a
 * middleware. If so, it must not be charged again, and the process warns once.
 */
export function isMeteredAlready(): boolean {
  if (WITHIN.getStore()?.isRunning !== true) return false;
  warnOnce(
    "WARN_LIMITER_METERED_TWICE",
    "A call passed two meters, such as a middleware of the AI SDK and limitFetch of the same model. " +
      "It is charged once, by the outer one. Remove one of them.",
  );
  return true;
}
