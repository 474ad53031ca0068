import { warnAt } from "../warnings/warn-once.ts";

/**
 * A server that makes a middleware for each request gets here with its tenth one. A test that makes
 * a handler and calls it at once does the same thing, but hardly so often.
 */
const MADE_IN_HANDLER_TIMES = 10;

/** A middleware got its first request in the turn of the event loop in which it was made. */
export function warnIfMadeInHandler(): void {
  warnAt(
    MADE_IN_HANDLER_TIMES,
    "WARN_LIMITER_MADE_IN_HANDLER",
    "Limits of requests are made again for each request. Make limitRequests, limitHandler or " +
      "limitListener once, when the server starts, and the limiter with it: one that is made " +
      "inside a handler remembers nothing of the requests before.",
  );
}
