import { ZaeLimiterError } from "zae-limiter";

/** A load test cannot begin: the message says what to change. No load was put on the target. */
export class LoadTestError extends ZaeLimiterError {
  constructor(message: string, options?: ErrorOptions) {
    super("ERR_LIMITER_LOADTEST", message, options);
  }
}
