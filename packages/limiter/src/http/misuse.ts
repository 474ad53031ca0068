import { warnAt } from "../warnings/warn-once.ts";

/**
 * A server that makes a middleware for each request is warned at its tenth. A test that makes a
 * handler and calls it at once looks the same, but rarely does so that often.
 */
const MADE_IN_HANDLER_TIMES = 10;

/** A middleware got its first request in the turn of the event loop in which it was made. */
export function warnIfMadeInHandler(): void {
  warnAt(
    MADE_IN_HANDLER_TIMES,
    "WARN_LIMITER_MADE_IN_HANDLER",
    "A new request limit is created for each request. Call limitRequests, limitHandler or " +
      "limitListener once, when the server starts, and create the limiter there too: one that is " +
      "created inside a handler knows nothing of earlier requests.",
  );
}
