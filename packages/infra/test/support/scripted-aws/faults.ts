import { AwsError, type AwsCall } from "./aws-call.ts";

/**
 * The fault of a request:
 * - `throttle`: the service does nothing, and says that the rate is exceeded;
 * - `drop`: the service does nothing, and the connection dies;
 * - `hang`: the service does nothing, and never answers;
 * - `drop-reply`: the service does it, and the connection dies before the answer;
 * - `deny`: the service does nothing, and says that the caller may not;
 * - `unavailable`: the service does nothing, and answers 503;
 * - `expired`, `invalid-token`: the credentials are expired or unknown;
 * - any error of a service.
 */
export type Fault =
  | "throttle"
  | "drop"
  | "drop-reply"
  | "hang"
  | "deny"
  | "unavailable"
  | "expired"
  | "invalid-token"
  | AwsError;

/** The planned faults of requests; a request without one takes its normal course. */
export class Faults {
  readonly #planned = new Map<string, Fault[]>();
  readonly #always = new Map<string, Fault>();
  /** Decides about each request that has no other fault. */
  decide: (call: AwsCall) => Fault | undefined = () => undefined;

  /** Lets the next requests of an action suffer these faults, one each. */
  next(action: string, ...faults: readonly Fault[]): void {
    this.#planned.set(action, [...(this.#planned.get(action) ?? []), ...faults]);
  }

  /** Lets the next requests of an action be throttled. */
  throttle(action: string, times: number): void {
    this.next(action, ...Array.from({ length: times }, () => "throttle" as const));
  }

  /** Lets every request of an action suffer a fault, until `clear`; "*" means every action. */
  always(action: string, fault: Fault): void {
    this.#always.set(action, fault);
  }

  /** Denies an action of a service, forever: `s3:CreateBucket`. */
  deny(action: string): void {
    this.always(action.split(":").at(-1)!, "deny");
  }

  clear(): void {
    this.#planned.clear();
    this.#always.clear();
    this.decide = () => undefined;
  }

  /** The fault of a request; called once for each. */
  get(call: AwsCall): Fault | undefined {
    return (
      this.#planned.get(call.action)?.shift() ??
      this.#always.get(call.action) ??
      this.#always.get("*") ??
      this.decide(call)
    );
  }
}

/** The error of a fault that is one, in the words of the service. */
export function faultError(fault: Fault, { service, action }: AwsCall, account: string): AwsError {
  if (fault instanceof AwsError) return fault;
  const isJson = service !== "cloudformation" && service !== "sts" && service !== "s3";
  switch (fault) {
    case "throttle":
      return isJson
        ? new AwsError("ThrottlingException", "Rate exceeded")
        : new AwsError("Throttling", "Rate exceeded");
    case "expired":
      return isJson
        ? new AwsError(
            "ExpiredTokenException",
            "The security token included in the request is expired",
            403,
          )
        : new AwsError(
            "ExpiredToken",
            "The security token included in the request is expired",
            403,
          );
    case "invalid-token":
      return new AwsError(
        isJson ? "UnrecognizedClientException" : "InvalidClientTokenId",
        "The security token included in the request is invalid.",
        403,
      );
    case "deny":
      return new AwsError(
        isJson ? "AccessDeniedException" : "AccessDenied",
        `User: arn:aws:iam::${account}:user/developer is not authorized to perform: ` +
          `${service}:${IAM_ACTION[action] ?? action} on resource: *`,
        403,
      );
    default:
      return new AwsError("ServiceUnavailable", "Service is unavailable", 503);
  }
}

/** Where the permission has another name than the action. */
const IAM_ACTION: Readonly<Record<string, string>> = {
  HeadBucket: "ListBucket",
  HeadObject: "GetObject",
  PutPublicAccessBlock: "PutBucketPublicAccessBlock",
  PutBucketEncryption: "PutEncryptionConfiguration",
};
