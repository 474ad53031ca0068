import { AsyncLocalStorage } from "node:async_hooks";
import { warnOnce } from "../http/identity/warn-once.ts";

/** Whether the code that runs is part of a call that is metered. */
const WITHIN = new AsyncLocalStorage<true>();

/** Runs a call that is metered. What meters further in steps aside. */
export function runMetered<T>(work: () => T): T {
  return WITHIN.run(true, work);
}

/**
 * Whether a call is part of one that is metered already, such as the fetch of a model that has a
 * middleware. Then it must not be charged again; that is told once.
 */
export function isMeteredAlready(): boolean {
  if (WITHIN.getStore() === undefined) return false;
  warnOnce(
    "WARN_LIMITER_METERED_TWICE",
    "A call passed two meters, such as a middleware of the AI SDK and limitFetch of the same model. " +
      "It is charged once, by the outer one. Remove one of them.",
  );
  return true;
}
