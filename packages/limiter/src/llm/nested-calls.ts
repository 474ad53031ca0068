import { AsyncLocalStorage } from "node:async_hooks";
import { warnOnce } from "../warnings/warn-once.ts";

/** A metered call, until it has answered. */
interface RunningCall {
  isRunning: boolean;
}

/** The metered call that the running code is part of. */
const WITHIN = new AsyncLocalStorage<RunningCall>();

/**
 * Runs a call that is metered. What meters further in steps aside, until the call has answered or
 * thrown. The stream that it answers with does not count: its source runs in the context of this
 * call for as long as it is read, and models that are called there, such as by tools of a provider
 * that is a program itself, are other calls.
 */
export async function runMetered<T>(work: () => T | PromiseLike<T>): Promise<T> {
  const call: RunningCall = { isRunning: true };
  try {
    // A promise that begins its work late does so within, too.
    return await WITHIN.run(call, () => Promise.resolve(work()));
  } finally {
    call.isRunning = false;
  }
}

/**
 * Whether a call is part of one that is metered already, such as the fetch of a model that has a
 * middleware. Then it must not be charged again, and there is one warning.
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
