import type { AttributeMap } from "./attribute-values.ts";

/** Why one item of a transaction was not written; `None` when another item was the reason. */
export interface CancellationReason {
  readonly code: "None" | "ConditionalCheckFailed" | "TransactionConflict" | (string & {});
  /** The item as it was, when the condition asked for it. */
  readonly item: AttributeMap | undefined;
}

/** What an error of a call means. */
export type Failure =
  | { readonly kind: "condition"; readonly item: AttributeMap | undefined }
  | { readonly kind: "cancelled"; readonly reasons: readonly CancellationReason[] }
  | ({ readonly kind: "unavailable" } & UnavailableFacts)
  | { readonly kind: "denied" }
  | { readonly kind: "credentials"; readonly found: boolean }
  | { readonly kind: "missing" }
  | { readonly kind: "rejected" };

/** What is known about a call that the table could not answer. */
export interface UnavailableFacts {
  /** It is unknown whether a write was applied. */
  readonly ambiguous: boolean;
  /** The table rejected the request because of its load; it could be reached. */
  readonly throttled: boolean;
  /** DynamoDB reports that the table or the account is throttled, not the key. */
  readonly tableWide: boolean;
  /** DynamoDB reports that a range of keys is throttled; false also when it gives no reason. */
  readonly keysThrottled: boolean;
  /** The whole request time-out has passed. */
  readonly timedOut: boolean;
}

/** Nothing is known but that the table could not answer. */
export const NO_FACTS: UnavailableFacts = {
  ambiguous: false,
  throttled: false,
  tableWide: false,
  keysThrottled: false,
  timedOut: false,
};

/** What an error means, by its name first: every transport names errors as DynamoDB does. */
export function classifyError(error: unknown): Failure {
  const { name, code, syscall, status, message, item, reasons, throttling } = readError(error);
  if (name === "ConditionalCheckFailedException") return { kind: "condition", item };
  if (name === "TransactionCanceledException") return { kind: "cancelled", reasons };
  if (THROTTLED.has(name))
    return unavailable({
      throttled: true,
      tableWide: throttling.length > 0 && !throttling.some(isOfKeys),
      keysThrottled: throttling.some(isOfKeys),
    });
  if (CONTENDED.has(name)) return unavailable({});
  // The transaction with this token may yet be applied.
  if (name === "TransactionInProgressException") return unavailable({ ambiguous: true });
  if (isClockSkew({ name, message })) return unavailable({});
  if (DENIED.has(name)) return { kind: "denied" };
  if (REFUSED.has(name)) return { kind: "credentials", found: true };
  if (NOT_FOUND.has(name)) return { kind: "credentials", found: false };
  if (name === "ResourceNotFoundException" || name === "TableNotFoundException")
    return { kind: "missing" };
  if (UNSENT.has(code)) return unavailable({ ambiguous: IN_USE.has(syscall) });
  // Node's HTTP parser begins its error codes like this.
  if (BROKEN.has(code) || code.startsWith("HPE_")) return unavailable({ ambiguous: true });
  if (TIMED_OUT.has(name)) return unavailable({ ambiguous: true, timedOut: true });
  if (
    status >= 500 ||
    status === 408 ||
    name === "InternalServerError" ||
    name === "ServiceUnavailable"
  )
    return unavailable({ ambiguous: true });
  if (status === 429) return unavailable({ throttled: true });
  // The status reports success, but the body is not what DynamoDB sends.
  if (status >= 200 && status < 300) return unavailable({ ambiguous: true });
  return { kind: "rejected" };
}

/** Whether a signature was refused because the clocks differ. */
export function isClockSkew({
  name,
  message,
}: {
  readonly name: string;
  readonly message: string;
}): boolean {
  return (
    SKEWED.has(name) ||
    (name === "InvalidSignatureException" && /expired|not yet current/i.test(message))
  );
}

/** The table is throttled: nothing was applied, and a later retry helps. */
const THROTTLED: ReadonlySet<string> = new Set([
  "ProvisionedThroughputExceededException",
  "ThrottlingException",
  "Throttling",
  "RequestLimitExceeded",
  "RequestThrottled",
  "RequestThrottledException",
  "TooManyRequestsException",
  "SlowDown",
  "LimitExceededException",
]);

/** Another transaction holds the item, or the same one still runs. A retry is safe and helps. */
const CONTENDED: ReadonlySet<string> = new Set([
  "TransactionConflictException",
  "ReplicatedWriteConflictException",
]);

/** The credentials are valid, and may not do this. */
const DENIED: ReadonlySet<string> = new Set([
  "AccessDenied",
  "AccessDeniedException",
  "UnauthorizedException",
  "NotAuthorized",
  "OptInRequired",
  "KMSAccessDeniedException",
]);

/** The credentials are unknown, wrong or expired. */
const REFUSED: ReadonlySet<string> = new Set([
  "UnrecognizedClientException",
  "InvalidClientTokenId",
  "InvalidAccessKeyId",
  "IncompleteSignature",
  "IncompleteSignatureException",
  "InvalidSignatureException",
  "SignatureDoesNotMatch",
  "MissingAuthenticationToken",
  "MissingAuthenticationTokenException",
  "ExpiredToken",
  "ExpiredTokenException",
]);

/** The SDK found no credentials, or could not renew them; it does not say which. */
const NOT_FOUND: ReadonlySet<string> = new Set([
  "CredentialsProviderError",
  "ProviderError",
  "TokenProviderError",
]);

/**
 * The clocks differ: the client corrects its clock by the date of the reply, and the next attempt
 * succeeds.
 */
const SKEWED: ReadonlySet<string> = new Set([
  "RequestTimeTooSkewed",
  "RequestExpired",
  "RequestInTheFuture",
]);

/**
 * The request was never sent, unless it was already being sent: nothing listens there, the host
 * does not exist, or the lean transport knows that it was not.
 */
const UNSENT: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "EADDRNOTAVAIL",
  "ERR_LIMITER_UNSENT",
]);

/** The connection failed after the request may have been sent, or the reply is not valid. */
const BROKEN: ReadonlySet<string> = new Set([
  "ECONNRESET",
  "EPIPE",
  "ECONNABORTED",
  "ETIMEDOUT",
  "ERR_STREAM_PREMATURE_CLOSE",
  "ERR_SOCKET_CLOSED",
  "ERR_LIMITER_UNREADABLE_ANSWER",
]);

/** A connection that fails in one of these was open. */
const IN_USE: ReadonlySet<string> = new Set(["read", "write"]);

const TIMED_OUT: ReadonlySet<string> = new Set([
  "TimeoutError",
  "AbortError",
  "RequestTimeout",
  "RequestTimeoutException",
]);

function unavailable(facts: Partial<UnavailableFacts>): Failure {
  return { kind: "unavailable", ...NO_FACTS, ...facts };
}

/**
 * Whether a reason for throttling, such as `TableWriteKeyRangeThroughputExceeded`, is about a range
 * of keys.
 */
function isOfKeys(reason: string): boolean {
  return reason.includes("KeyRange");
}

/** The parts of an error that show what it means. */
export interface ErrorParts {
  readonly name: string;
  readonly code: string;
  readonly syscall: string;
  readonly status: number;
  readonly message: string;
  readonly item: AttributeMap | undefined;
  readonly reasons: readonly CancellationReason[];
  readonly throttling: readonly string[];
}

/** DynamoDB's longest error name has 40 letters. */
const MAX_NAME_LENGTH = 100;

/** DynamoDB's longest messages, about policies and expressions, have a few hundred letters. */
const MAX_MESSAGE_LENGTH = 1000;

/**
 * What a server sent as the name of an error and as its message, in lengths that fit a log: what
 * answers may not be DynamoDB.
 */
export function shortenError(
  name: string,
  message: string,
): { readonly name: string; readonly message: string } {
  return {
    name: shorten(name, MAX_NAME_LENGTH),
    message: shorten(message, MAX_MESSAGE_LENGTH),
  };
}

function shorten(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length)}…` : text;
}

/** Reads an error, which may come from the SDK, from another transport, or from Node itself. */
export function readError(error: unknown): ErrorParts {
  const raw = (typeof error === "object" && error !== null ? error : {}) as {
    readonly name?: string;
    readonly code?: unknown;
    readonly syscall?: string;
    readonly message?: string;
    readonly cause?: { readonly code?: string };
    readonly $metadata?: { readonly httpStatusCode?: number };
    readonly Item?: AttributeMap;
    readonly CancellationReasons?: readonly {
      readonly Code?: string;
      readonly Item?: AttributeMap;
    }[];
    readonly ThrottlingReasons?: readonly ThrottlingReason[];
    readonly throttlingReasons?: readonly ThrottlingReason[];
  };
  return {
    ...shortenError(raw.name ?? "Error", raw.message ?? String(error)),
    // The code of a DOMException is a number.
    code: typeof raw.code === "string" ? raw.code : (raw.cause?.code ?? ""),
    syscall: raw.syscall ?? "",
    status: raw.$metadata?.httpStatusCode ?? 0,
    item: raw.Item,
    reasons: (raw.CancellationReasons ?? []).map(({ Code, Item }) => ({
      code: shorten(Code ?? "None", MAX_NAME_LENGTH),
      item: Item,
    })),
    // One kind of exception spells it with a lowercase letter.
    throttling: (raw.ThrottlingReasons ?? raw.throttlingReasons ?? []).map(
      ({ reason }) => reason ?? "",
    ),
  };
}

interface ThrottlingReason {
  readonly reason?: string;
}
