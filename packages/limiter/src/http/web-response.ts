import { ValidationError } from "../core/errors.ts";
import type { HeaderFields } from "./headers/options.ts";
import { headersWithoutType, LIST_FIELDS, type Reply } from "./reply.ts";

/** Other statuses belong to upgrades and network errors; `new Response` does not take them. */
const FIRST_STATUS = 200;
const LAST_STATUS = 599;

/** "Client closed request", as nginx logs it. */
const CLIENT_GONE_STATUS = 499;

/**
 * Throws if a function of the application returned no response, for example for lack of a `return`.
 */
export function checkResponse(response: unknown, maker: string): void {
  // Checked by shape: platforms and other realms have classes of their own.
  if (typeof Object(response).status !== "number")
    throw new ValidationError("response", response, `${maker} must return a Response`);
}

/** Whether this response can be copied. */
export function isCopyable(response: Response): boolean {
  const { status } = response;
  return status >= FIRST_STATUS && status <= LAST_STATUS && !isSpent(response);
}

/** Whether its body was sent before. Platforms cannot send it again, and say so. */
export function isSpent({ body, bodyUsed }: Response): boolean {
  return bodyUsed || body?.locked === true;
}

/**
 * Copies a response with another body and further header fields; its own fields stay. The original
 * is not changed: it may be a constant, and the headers of one from `fetch` are read-only.
 */
export function copyResponse(
  response: Response,
  body: ReadableStream<Uint8Array> | null,
  fields: HeaderFields,
): Response {
  const { status, statusText } = response;
  const headers = new Headers(response.headers);
  for (const name in fields) {
    const there = headers.get(name);
    if (there === null) headers.set(name, fields[name]!);
    // The existing items are those of an inner middleware: lists begin with the outermost.
    else if (LIST_FIELDS.has(name)) headers.set(name, `${fields[name]!}, ${there}`);
  }
  return new Response(body, { status, statusText, headers });
}

/** The same for a response whose body stays. Returns the response itself if it cannot be copied. */
export function withFields(response: Response, fields: HeaderFields): Response {
  return isCopyable(response) ? copyResponse(response, response.body, fields) : response;
}

/** The reply as a response. */
export function toResponse({ status, headers, body }: Reply): Response {
  return new Response(body, { status, headers });
}

/** A response that the application made for a refusal. What it does not say itself is added. */
export function withMissingFields(response: Response, reply: Reply): Response {
  checkResponse(response, "respond");
  const missing = Object.entries(headersWithoutType(reply)).filter(
    ([name]) => !response.headers.has(name),
  );
  return withFields(response, Object.fromEntries(missing));
}

/** The response to a client that left; it is never read. */
export function buildGoneResponse(): Response {
  return new Response(null, { status: CLIENT_GONE_STATUS });
}
