import { Limit } from "zae-limiter";
import type { Fault } from "./fault-proxy.ts";

/** How long a client waits for a reply in tests of faults. */
export const REQUEST_TIMEOUT_MS = 250;

/**
 * Faults of a write after which the client continues within its time-out. The last one is late
 * enough that the client has given up and repeated, and the repeated request has been answered.
 */
export const WRITE_FAULTS: readonly Fault[] = [
  "lost-request",
  "lost-reply",
  "throttle",
  "throughput",
  "internal",
  "unavailable",
  "conflict",
  { delayMs: 2 * REQUEST_TIMEOUT_MS },
];

/** Earns one token a day, so balances change only by calls. */
export const SLOW_LIMIT = Limit.custom({
  name: "tpm",
  capacity: 100_000,
  refillAmount: 1,
  refillPeriodSeconds: 86_400,
});
