import type { InterruptOptions } from "./environment.ts";

/** The part of `process` that is used. */
type Interruptible = Pick<NodeJS.Process, "on" | "off" | "exit" | "stdout" | "stderr">;

const SIGNALS = ["SIGINT", "SIGTERM"] as const;

/** The exit code that shells use for a program ended by Ctrl-C. */
const ENDED_BY_SIGNAL = 130;

/**
 * Calls the listener at the first Ctrl-C or SIGTERM, and ends the process at the second. On
 * request, a closed output counts as the first. Returns a function that stops listening.
 */
export function onInterrupt(
  target: Interruptible,
  listener: () => void,
  { orUnread = false }: InterruptOptions = {},
): () => void {
  let isInterrupted = false;
  const actOnce = (): void => {
    if (isInterrupted) return;
    isInterrupted = true;
    listener();
  };
  const act = (): void => {
    if (isInterrupted) target.exit(ENDED_BY_SIGNAL);
    actOnce();
  };
  const outputs = orUnread ? [target.stdout, target.stderr] : [];
  for (const signal of SIGNALS) target.on(signal, act);
  for (const output of outputs) output.on("error", actOnce);
  return () => {
    for (const signal of SIGNALS) target.off(signal, act);
    for (const output of outputs) output.off("error", actOnce);
  };
}
