/** Which stack, and how AWS is reached. */
export interface StackPlace {
  /** The name of the stack. @default `ZAEL_STACK`, or "zae-limiter" */
  readonly stack?: string;
  /** Its region. @default what the SDK finds */
  readonly region?: string;
  /** An address other than AWS's, for every service. */
  readonly endpointUrl?: string;
  /** The id of the account that is meant; any other one is refused. */
  readonly account?: string;
  /** Ends waiting. What AWS has begun goes on. */
  readonly signal?: AbortSignal;
}
