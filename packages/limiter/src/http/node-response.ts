/*
 * What every framework on node:http needs of the raw response. The end of a request is the `close`
 * of its response and nothing else: it comes once, after a finished response, a thrown handler and
 * a client that went away alike, and frameworks have hooks for only some of these. One kind of
 * response is not closed by Node, so it is here: see `closeWithConnection`.
 */
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { RateLimitExceeded } from "../core/bucket/refusal.ts";
import type { HeaderFields } from "./headers/options.ts";
import type { HeldLease } from "./held-lease.ts";
import { LIST_FIELDS, markTold, type Reply } from "./reply.ts";
import { GONE, type Admission, type RequestLimit } from "./request-limit.ts";

/**
 * Takes for a request, answers it if it may not go on, and returns whether its handler should run.
 * `respond` answers a refusal in place of the usual reply. Throws mistakes of the application, and
 * what should have been answered if headers were sent before.
 */
export async function letThrough<Q>(
  response: ServerResponse,
  limit: RequestLimit<Q>,
  request: Q,
  respond?: (refusal: RateLimitExceeded) => unknown,
): Promise<boolean> {
  const admission = await admitTo(response, limit, request);
  if (admission.verdict === "not limited") return true;
  if (admission.verdict === "gone") return false;
  if (admission.verdict === "granted") {
    addHeaders(response, admission.headers);
    return true;
  }
  const isRefused = admission.verdict === "refused";
  if (response.headersSent) throw isRefused ? admission.refusal : admission.error;
  if (isRefused && respond !== undefined) {
    prepareReply(response, admission.reply);
    markTold(admission.refusal);
    try {
      await respond(admission.refusal);
    } catch (error) {
      // Express answers an error with the status that is set, if that is one of errors.
      if (!response.headersSent) response.statusCode = 500;
      throw error;
    }
  } else sendReply(response, admission.reply);
  return false;
}

/**
 * Takes for a request. If it is granted, the response will settle the lease when it closes; if its
 * client has gone away meanwhile, everything went back. `errorOf` is asked then what the handler
 * threw. The caller adds the headers.
 */
export async function admitTo<Q>(
  response: ServerResponse,
  limit: RequestLimit<Q>,
  request: Q,
  errorOf?: (request: Q) => unknown,
): Promise<Admission<Q>> {
  if (response.socket === null) closeWithConnection(response);
  let waiting: ClosedSignal | undefined;
  let admission: Admission<Q>;
  try {
    admission = await limit.admit(request, () => (waiting = new ClosedSignal(response)).signal);
  } finally {
    waiting?.stop();
  }
  if (admission.verdict === "not limited" || admission.verdict === "gone") return admission;
  if (isOver(response)) {
    if (admission.verdict === "granted") admission.held.giveBack();
    return GONE;
  }
  if (admission.verdict === "granted") endWhenClosed(response, admission.held, request, errorOf);
  return admission;
}

/** Sends a reply. No headers were sent before. */
export function sendReply(response: ServerResponse, { status, headers, body }: Reply): void {
  response.statusCode = status;
  addHeaders(response, headers);
  // A handler that failed may have described the body that it did not send.
  response.removeHeader("Content-Encoding");
  response.setHeader("Content-Length", Buffer.byteLength(body));
  response.end(body);
}

/** Sets what a reply consists of, except its body and the type of that. */
export function prepareReply(response: ServerResponse, { status, headers }: Reply): void {
  response.statusCode = status;
  const { "Content-Type": _, ...others } = headers;
  addHeaders(response, others);
}

/**
 * Whether the response was answered or its client has gone away: no handler should begin. Of
 * node:http2, only `writableFinished` says that the client has gone.
 */
function isOver(response: ServerResponse): boolean {
  return response.destroyed || response.writableEnded || response.writableFinished;
}

/**
 * Sets header fields, unless they were sent. Of fields with a single value the last one stays: the
 * innermost middleware's, which is the one that refuses if any does.
 */
export function addHeaders(response: ServerResponse, fields: HeaderFields): void {
  if (response.headersSent) return;
  for (const name in fields) {
    const there = LIST_FIELDS.has(name) ? response.getHeader(name) : undefined;
    response.setHeader(name, listWith(there, fields[name]!));
  }
}

/** A list with further items; `there` is what it holds, if anything. */
export function listWith(
  there: number | string | readonly string[] | undefined,
  items: string,
): string {
  return there === undefined ? items : `${String(there)}, ${items}`;
}

/** Settles the lease when the response closes. */
function endWhenClosed<Q>(
  response: ServerResponse,
  held: HeldLease<Q>,
  request: Q,
  errorOf: ((request: Q) => unknown) | undefined,
): void {
  // Not `once`, which needs two more functions: a lease ends once, whoever ends it again.
  response.on("close", () =>
    held.end({
      status: response.statusCode,
      // A response of node:http2 counts as finished when its client has gone away.
      completed: response.writableFinished && response.writableEnded,
      error: errorOf?.(request),
    }),
  );
}

/** The responses of a connection that wait for their turn to be sent. */
const QUEUED = Symbol("zae-limiter queued responses");

/**
 * A client may send requests without waiting for responses (pipelining). The responses that are
 * not yet on the connection are not closed when it is: they would never end. This closes them, as
 * Node closes the one whose turn it is. The connection has one listener for all of them.
 */
function closeWithConnection(response: ServerResponse): void {
  const socket: Socket & { [QUEUED]?: Set<ServerResponse> } = response.req.socket;
  if (socket.destroyed) return close(response);
  let queued = socket[QUEUED];
  if (queued === undefined) {
    const responses = (queued = socket[QUEUED] = new Set<ServerResponse>());
    socket.once("close", () => responses.forEach(close));
  }
  queued.add(response);
  response.once("close", () => queued.delete(response));
}

function close(response: ServerResponse): void {
  if (response.socket !== null || response.destroyed) return;
  response.destroyed = true;
  response.emit("close");
}

/** A signal that aborts when the response closes. */
class ClosedSignal {
  readonly #response: ServerResponse;
  readonly #controller = new AbortController();
  readonly #abort = (): void => this.#controller.abort();

  constructor(response: ServerResponse) {
    this.#response = response;
    if (isOver(response)) this.#abort();
    else response.once("close", this.#abort);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  stop(): void {
    this.#response.off("close", this.#abort);
  }
}
