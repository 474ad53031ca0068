import { computeWorkTimeMs, type LambdaContext } from "../runtime/lambda-context.ts";

/**
 * The time kept for the end: half of it for the change that is under way, of which each request may
 * take 7 s, and half for the answer, which may take 10 s.
 */
const RESERVED_MS = 20_000;

/** Waits; a signal ends the wait early, by an error. */
export type Sleep = (ms: number, options?: { readonly signal?: AbortSignal }) => Promise<unknown>;

/**
 * Does some work while there is time. Shortly before its end, the signal stops the work between two
 * changes. If it has not ended after a while, which happens only if the table does not answer, it
 * is abandoned.
 */
export async function withinTime<Result>(
  lambda: LambdaContext,
  sleep: Sleep,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const workMs = computeWorkTimeMs(lambda, RESERVED_MS);
  const [stop, ended] = [new AbortController(), new AbortController()];
  const working = work(stop.signal);
  if (workMs === undefined) return working;
  const endMs = (lambda.getRemainingTimeInMillis!() - workMs) / 2;
  const watching = (async (): Promise<never> => {
    await sleep(workMs, ended);
    stop.abort(new Error("The time of the function was over."));
    await sleep(endMs, ended);
    throw new Error(
      "The time of the function was over, and what was under way did not end. Updating again goes on with what is left.",
    );
  })();
  try {
    return await Promise.race([working, watching]);
  } finally {
    // The rejection of the one that lost must not be unhandled.
    ended.abort();
    watching.catch(() => {});
    working.catch(() => {});
  }
}
