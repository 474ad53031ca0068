import {
  InfrastructureError,
  PermissionDenied,
  RateLimiterUnavailable,
  StackOperationError,
  ValidationError,
  ZaeLimiterError,
} from "zae-limiter";

/** The errors of AWS for too many requests. The request had no effect. */
const THROTTLED: ReadonlySet<string> = new Set([
  "Throttling",
  "ThrottlingException",
  "ThrottledException",
  "RequestLimitExceeded",
  "TooManyRequestsException",
  "SlowDown",
]);

/** The error of S3 while another process creates the same bucket. */
const CONFLICT = "OperationAborted";

/** The errors of AWS for unknown or expired credentials. */
const REFUSED_CREDENTIALS: ReadonlySet<string> = new Set([
  "ExpiredToken",
  "ExpiredTokenException",
  "RequestExpired",
  "InvalidClientTokenId",
  "UnrecognizedClientException",
  "InvalidAccessKeyId",
  "SignatureDoesNotMatch",
  "InvalidSignatureException",
  "AuthFailure",
  "InvalidToken",
]);

/** The error of the SDK when it finds no credentials. */
const NO_CREDENTIALS: ReadonlySet<string> = new Set([
  "CredentialsProviderError",
  "ProviderError",
  "TokenProviderError",
]);

const DENIED: ReadonlySet<string> = new Set([
  "AccessDenied",
  "AccessDeniedException",
  "UnauthorizedOperation",
  "NotAuthorized",
]);

/**
 * The errors with which DynamoDB engines answer requests to other services, unless the answer is
 * not even JSON or XML.
 */
const NO_SERVICE: ReadonlySet<string> = new Set([
  "NotFound",
  "UnknownOperation",
  "UnknownOperationException",
  "InvalidAction",
  "SyntaxError",
]);

/** The name of an error, as AWS or the SDK gave it. */
export function getErrorName(error: unknown): string {
  return error instanceof Error ? error.name : "";
}

/** What an error says. */
export function getErrorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Whether the same request may succeed a little later. */
export function isTransient(error: unknown): boolean {
  if (THROTTLED.has(getErrorName(error)) || getErrorName(error) === CONFLICT) return true;
  return isUnreachable(error) || (getErrorStatus(error) ?? 0) >= 500;
}

/** AWS has every service; only a custom endpoint may lack one. */
export function hasNoService(error: unknown, endpointUrl: string | undefined): boolean {
  return (
    endpointUrl !== undefined &&
    (NO_SERVICE.has(getErrorName(error)) ||
      getErrorMessage(error).includes("Deserialization error"))
  );
}

/** No answer came: the request may have been carried out, or not. */
export function isUnreachable(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return (
    getErrorName(error) === "TimeoutError" ||
    (typeof code === "string" &&
      /^E(?!RR_)[A-Z_]+$|^UND_ERR/.test(code) &&
      getErrorStatus(error) === undefined)
  );
}

/** The HTTP status of an error of AWS. */
export function getErrorStatus(error: unknown): number | undefined {
  return (error as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode;
}

/** Whether DynamoDB says that there is no such table. */
export function isTableAbsent(error: unknown): boolean {
  return getErrorName(error) === "ResourceNotFoundException";
}

/** CloudFormation has no error of its own for a stack that does not exist. */
export function isStackAbsent(error: unknown): boolean {
  return getErrorName(error) === "ValidationError" && /does not exist/.test(getErrorMessage(error));
}

/** The attempted request. */
export interface Attempted {
  /** As policies name it: `cloudformation:CreateChangeSet`. */
  readonly action: string;
  readonly stack: string;
  readonly region: string | undefined;
  readonly endpointUrl: string | undefined;
}

/**
 * Turns the error of a request into one sentence that says what to do. Returns other errors
 * unchanged.
 */
export function translateError(error: unknown, attempted: Attempted): unknown {
  if (error instanceof ZaeLimiterError || getErrorName(error) === "AbortError") return error;
  const options = { cause: error };
  const said = getErrorMessage(error).replace(/\.$/, "");
  if (NO_CREDENTIALS.has(getErrorName(error)))
    return buildNoCredentialsError(
      `No AWS credentials were found (${said}): set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, ` +
        "choose a profile with AWS_PROFILE, or give the machine a role.",
      options,
    );
  if (REFUSED_CREDENTIALS.has(getErrorName(error)))
    return buildNoCredentialsError(
      `AWS does not accept the credentials, which are wrong or have expired (${said}): renew them, ` +
        "or choose others with AWS_PROFILE, or with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
      options,
    );
  if (DENIED.has(getErrorName(error)) || getErrorStatus(error) === 403) {
    const action =
      /is not authorized to perform: ([\w-]+:\w+)/.exec(getErrorMessage(error))?.[1] ??
      attempted.action;
    return new PermissionDenied(
      `AWS denied ${action}: allow it in the policies of the credentials (${said}).`,
      options,
    );
  }
  if (THROTTLED.has(getErrorName(error)))
    return new RateLimiterUnavailable(
      `AWS refuses ${attempted.action} because of too many requests (${said}): try again later.`,
      options,
    );
  if (isUnreachable(error)) {
    const where = attempted.endpointUrl ?? `AWS in ${attempted.region ?? "this region"}`;
    return new RateLimiterUnavailable(
      `${where} did not answer ${attempted.action} (${said}): check the network, the region and ` +
        "the endpoint, then try again.",
      options,
    );
  }
  const refusal = new StackOperationError(
    attempted.stack,
    hasNoService(error, attempted.endpointUrl)
      ? `${attempted.endpointUrl} does not know ${attempted.action}: a DynamoDB engine has tables and no ` +
          "stacks. For a stack on AWS, leave out the endpoint, also in ZAEL_REPOSITORY."
      : `AWS refused ${attempted.action}: ${getErrorMessage(error)}`,
  );
  refusal.cause = error;
  return refusal;
}

/** The error when nothing names a region. */
export function buildNoRegionError(cause: unknown): ValidationError {
  const error = new ValidationError(
    "region",
    undefined,
    "none was found: set AWS_REGION, pass the option region, or pass --region to the command line",
    "ERR_LIMITER_NO_REGION",
  );
  error.cause = cause;
  return error;
}

/** The error when the credentials belong to another account than the one that is meant. */
export function buildWrongAccountError(
  meant: string,
  actual: string,
  what: string,
): InfrastructureError {
  return new InfrastructureError(
    "ERR_LIMITER_WRONG_ACCOUNT",
    `${what} names account ${meant}, but the credentials are of account ${actual}: use the ` +
      "credentials of that account, for example with AWS_PROFILE, or correct the option.",
  );
}

function buildNoCredentialsError(message: string, options: ErrorOptions): PermissionDenied {
  return new PermissionDenied(message, options, "ERR_LIMITER_NO_CREDENTIALS");
}
