import { Cancelled } from "../../exit.ts";
import type { Session } from "../support/session.ts";

/**
 * Works until it is done, or until Ctrl-C: then AWS finishes what it has started, and the message
 * says how to continue.
 */
export async function interruptible<Result>(
  { environment }: Session,
  { stack, rerun }: { readonly stack: string; readonly rerun: string },
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const interruption = new AbortController();
  const stopListening = environment.onInterrupt(() => interruption.abort());
  try {
    return await work(interruption.signal);
  } catch (error) {
    if (!interruption.signal.aborted) throw error;
    throw new Cancelled(
      `Interrupted. AWS finishes what it has started on stack ${stack}; to continue: ${rerun}`,
    );
  } finally {
    stopListening();
  }
}
