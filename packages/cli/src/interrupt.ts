/** The part of `process` that is used. */
type Interruptible = Pick<NodeJS.Process, "on" | "off" | "exit">;

const SIGNALS = ["SIGINT", "SIGTERM"] as const;

/** What a shell shows for a program that Ctrl-C has ended. */
const ENDED_BY_SIGNAL = 130;

/**
 * Calls the listener at the first Ctrl-C or SIGTERM, and ends the process at the second. Returns
 * what stops listening.
 */
export function onInterrupt(target: Interruptible, listener: () => void): () => void {
  let isInterrupted = false;
  const act = (): void => {
    if (isInterrupted) target.exit(ENDED_BY_SIGNAL);
    isInterrupted = true;
    listener();
  };
  for (const signal of SIGNALS) target.on(signal, act);
  return () => {
    for (const signal of SIGNALS) target.off(signal, act);
  };
}
