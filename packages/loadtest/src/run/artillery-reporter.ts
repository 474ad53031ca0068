import type { Metrics } from "./metrics.ts";

/** The part of Artillery's events that is used. */
interface Events {
  on(event: "stats" | "done", listener: (metrics: Metrics) => void): unknown;
}

/** What Artillery's process sends to the one that started it. */
export interface ReporterMessage {
  readonly event: "stats" | "done";
  readonly metrics: Metrics;
}

/**
 * A reporter that Artillery loads into its own process (`CUSTOM_REPORTERS`). It passes on every
 * period as it ends, so there is something to report even if the run is interrupted. A command that
 * was killed cannot end the load, so its end does.
 */
export default function reportToParent(events: Events): object {
  if (!process.connected) process.exit(1);
  process.once("disconnect", () => process.exit(1));
  // The listener alone would keep this process alive.
  process.channel?.unref();
  for (const event of ["stats", "done"] as const)
    events.on(event, ({ counters, summaries, period, firstCounterAt, lastCounterAt }) => {
      const metrics = { counters, summaries, period, firstCounterAt, lastCounterAt };
      process.send?.({ event, metrics } satisfies ReporterMessage);
    });
  return {};
}
