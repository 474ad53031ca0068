import { hasMethod } from "../core/options.ts";
import { warnOnce } from "../http/identity/warn-once.ts";

/**
 * Runs a function of the application at the end of a call. What it throws or rejects with is told
 * once: it must not break the call, which has ended, and not open the limits.
 */
export function runSafely<T>(name: string, work: () => T): T | undefined {
  try {
    const result = work();
    if (hasMethod(result, "then"))
      void Promise.resolve(result).catch((error: unknown) => warnOfFailure(name, error));
    return result;
  } catch (error) {
    warnOfFailure(name, error);
    return undefined;
  }
}

/** Warns of something that failed at the end of a call. */
export function warnOfFailure(name: string, error: unknown): void {
  warnOnce(
    "WARN_LIMITER_METERING_FAILED",
    `${name} failed at the end of a call of a model: ${textOf(error)}. The call itself went on.`,
  );
}

/** Programs throw anything, also what has no text. */
function textOf(error: unknown): string {
  try {
    return String(error);
  } catch {
    return typeof error;
  }
}
