import { hasMethod } from "../core/options.ts";
import { warnOnce } from "./warn-once.ts";

/**
 * Runs a callback of the application. Errors become one warning: they must neither break the
 * caller's response nor lift the limits.
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

/** Warns about a failed side task of a call, once for each name. */
export function warnOfFailure(name: string, error: unknown): void {
  warnOnce(
    "WARN_LIMITER_METERING_FAILED",
    `${name} failed: ${toText(error)}. The model call went on without it.`,
    name,
  );
}

/** The text of a thrown value, which may be anything, even a value without a text. */
export function toText(error: unknown): string {
  try {
    return String(error);
  } catch {
    return typeof error;
  }
}
