import type { CallEnd } from "./settlement.ts";

/**
 * Codes of errors after which the provider may have done the work: the connection was there, and
 * the request may have been sent.
 */
const LOST_CODES: ReadonlySet<unknown> = new Set([
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "UND_ERR_SOCKET",
  "UND_ERR_HEADERS_TIMEOUT",
  "UND_ERR_BODY_TIMEOUT",
  "UND_ERR_ABORTED",
  "UND_ERR_RES_CONTENT_LENGTH_MISMATCH",
]);

/** The most errors that are followed by their `cause`; a chain may be a circle. */
const MAX_CAUSES = 10;

/** How a call ended that threw instead of answering. */
export function endOfError(error: unknown, signal: AbortSignal | undefined | null): CallEnd {
  if (signal?.aborted === true) return { end: "abandoned" };
  const status = statusOf(error);
  if (status !== undefined) return { end: status >= 400 ? "failed" : "cut" };
  for (const cause of causesOf(error)) {
    const { name, code } = Object(cause) as { readonly name?: unknown; readonly code?: unknown };
    if (name === "AbortError" || name === "TimeoutError") return { end: "abandoned" };
    if (LOST_CODES.has(code)) return { end: "cut" };
  }
  return { end: "failed" };
}

/** The HTTP status that an error of a client carries. */
export function statusOf(error: unknown): number | undefined {
  for (const cause of causesOf(error)) {
    const { statusCode, status } = Object(cause) as Readonly<Record<string, unknown>>;
    for (const value of [statusCode, status]) if (typeof value === "number") return value;
  }
  return undefined;
}

/** The headers of the provider's answer that an error of a client carries. */
export function headersOf(error: unknown): Headers | Readonly<Record<string, string>> | undefined {
  for (const cause of causesOf(error)) {
    const { responseHeaders, headers } = Object(cause) as Readonly<Record<string, unknown>>;
    for (const value of [responseHeaders, headers])
      if (typeof value === "object" && value !== null) return value as Record<string, string>;
  }
  return undefined;
}

function* causesOf(error: unknown): Generator<unknown> {
  let cause = error;
  for (let causes = 0; causes <= MAX_CAUSES && cause !== undefined && cause !== null; causes += 1) {
    yield cause;
    ({ cause } = Object(cause) as { readonly cause?: unknown });
  }
}
