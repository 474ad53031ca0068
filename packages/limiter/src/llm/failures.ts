/*
 * Decides from an error whether the provider may have done the work of a call:
 *
 *   the caller aborted                             perhaps: "abandoned", kept as estimated
 *   the provider answered with 300 or more         no: "failed", given back
 *   the provider answered with 200, and no more    perhaps: "cut", kept as estimated
 *   an open connection was lost                    perhaps: "cut", kept as estimated
 *   no connection, or anything else                no: "failed", given back
 */
import type { CallEnd } from "./settlement.ts";
import type { AnswerHeaders } from "./upstream/upstream-limits.ts";

/**
 * Codes of errors after which the provider may have done the work: the connection was open, and the
 * request may have been sent.
 */
const LOST_CODES: ReadonlySet<unknown> = new Set([
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ETIMEDOUT",
  "ERR_STREAM_PREMATURE_CLOSE",
  "ERR_HTTP2_STREAM_ERROR",
  "ERR_HTTP2_SESSION_ERROR",
  "UND_ERR_SOCKET",
  "UND_ERR_HEADERS_TIMEOUT",
  "UND_ERR_HEADERS_OVERFLOW",
  "UND_ERR_BODY_TIMEOUT",
  "UND_ERR_ABORTED",
  "UND_ERR_RES_CONTENT_LENGTH_MISMATCH",
  "UND_ERR_RES_EXCEEDED_MAX_SIZE",
  "ConnectionClosed", // Bun
]);

/**
 * How the codes of Node's HTTP parser begin: a request was sent, and the answer was not HTTP. In
 * Node 24, such an error of fetch has only a name, and no code.
 */
const PARSER_CODES = "HPE_";
const PARSER_ERROR = "HTTPParserError";

/** Names of the errors that clients throw for a call that was aborted or took too long. */
const ABORTS: ReadonlySet<unknown> = new Set([
  "AbortError",
  "TimeoutError",
  "ResponseAborted", // Next.js
  "APIUserAbortError", // the SDKs of OpenAI and Anthropic
  "APIConnectionTimeoutError",
]);

/** How many causes of an error are followed. A chain of causes may be circular. */
const MAX_CAUSES = 10;

/** Decides how a call ended that threw instead of answering. */
export function classifyError(error: unknown, signal: AbortSignal | undefined | null): CallEnd {
  const isAborted = signal?.aborted === true;
  // The reason of a signal may be anything, including an error with a status.
  if (isAborted && includesReason(error, signal.reason)) return { end: "abandoned" };
  const status = findStatus(error);
  if (status !== undefined) return { end: status >= 300 ? "failed" : "cut" };
  if (isAborted) return { end: "abandoned" };
  for (const cause of listCauses(error)) {
    if (isAbort(cause)) return { end: "abandoned" };
    if (isLostConnection(cause)) return { end: "cut" };
  }
  return { end: "failed" };
}

/** Finds the HTTP status that a client's error carries. */
export function findStatus(error: unknown): number | undefined {
  for (const cause of listCauses(error)) {
    const { statusCode, status } = Object(cause) as Readonly<Record<string, unknown>>;
    for (const value of [statusCode, status])
      if (typeof value === "number" && value >= 200 && value < 600) return value;
  }
  return undefined;
}

/** Finds the headers of the provider's answer that a client's error carries. */
export function findHeaders(error: unknown): AnswerHeaders | undefined {
  for (const cause of listCauses(error)) {
    const { responseHeaders, headers } = Object(cause) as Readonly<Record<string, unknown>>;
    for (const value of [responseHeaders, headers])
      if (typeof value === "object" && value !== null) return value as AnswerHeaders;
  }
  return undefined;
}

function includesReason(error: unknown, reason: unknown): boolean {
  for (const cause of listCauses(error)) if (cause === reason) return true;
  return false;
}

/** Some clients set no `name`, so the class counts too. */
function isAbort(error: unknown): boolean {
  const { name, constructor } = Object(error) as { readonly name?: unknown } & object;
  return ABORTS.has(name) || ABORTS.has(constructor?.name);
}

function isLostConnection(error: unknown): boolean {
  const { name, code, syscall, errors } = Object(error) as Readonly<Record<string, unknown>>;
  // Nothing was sent if connecting failed, to one address or to all addresses of a host.
  if (syscall === "connect" || Array.isArray(errors)) return false;
  if (LOST_CODES.has(code) || name === PARSER_ERROR) return true;
  return typeof code === "string" && code.startsWith(PARSER_CODES);
}

function* listCauses(error: unknown): Generator {
  let cause = error;
  for (let causes = 0; causes <= MAX_CAUSES && cause !== undefined && cause !== null; causes += 1) {
    yield cause;
    ({ cause } = Object(cause) as { readonly cause?: unknown });
  }
}
