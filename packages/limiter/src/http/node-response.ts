/*
 * What every framework on node:http needs of the raw response. A request ends with whichever of two
 * events of its response comes first:
 *
 *   finish   everything was handed to the system; completed, unless the connection has failed
 *   close    before that: the client went away, or the response was destroyed
 *
 * They come after a finished response, a thrown handler and a client that went away alike, and
 * frameworks have hooks for only some of these. Responses of serverless platforms, which have no
 * socket, may never close. Node does not close those that wait for their turn on a connection: see
 * `closeWithConnection`.
 *
 * On HTTP/2 it is the `close` of the stream. The response itself always finishes before it closes,
 * and does neither if it answers a HEAD whose client went away.
 */
import type { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { RateLimitExceeded } from "../core/bucket/refusal.ts";
import type { HeaderFields } from "./headers/options.ts";
import type { RequestLease } from "./request-lease.ts";
import { headersWithoutType, LIST_FIELDS, markShown, type Reply } from "./reply.ts";
import type { Client, RequestLimit } from "./request-limit.ts";

/** The client of a request, by the response to it. */
export class NodeClient implements Client {
  readonly response: ServerResponse;
  /** Only for HTTP/2: on other responses, a `stream` is the application's own. */
  readonly #stream: ServerHttp2Stream | undefined;
  /** Set while the request waits. */
  #abort: (() => void) | undefined;

  constructor(response: ServerResponse & { readonly stream?: ServerHttp2Stream }) {
    this.response = response;
    if (response.req.httpVersionMajor === 2) this.#stream = response.stream;
    if (response.socket === null) closeWithConnection(response);
  }

  /** The stream of a HEAD is finished from the start, so that proves nothing. */
  get isGone(): boolean {
    const { destroyed, closed } = this.#stream ?? this.response;
    return destroyed || closed || this.response.writableEnded;
  }

  get signal(): AbortSignal {
    const waiting = new AbortController();
    this.#abort = () => waiting.abort();
    if (this.isGone) waiting.abort();
    else this.#closing.once("close", this.#abort);
    return waiting.signal;
  }

  stopWaiting(): void {
    if (this.#abort !== undefined) this.#closing.off("close", this.#abort);
  }

  /** Settles the lease when the response ends. `getError` then returns what the handler threw. */
  endWithResponse<Q>(lease: RequestLease<Q>, getError?: () => unknown): void {
    const { response } = this;
    const stream = this.#stream;
    const end = (completed: boolean): void =>
      lease.end({ status: response.statusCode, completed, error: getError?.() });
    // Not `once`, which needs two more functions: a lease ignores every end after the first.
    if (stream === undefined) {
      response.on("finish", () => end(!hasFailed(response)));
      response.on("close", () => end(false));
      return;
    }
    // A stream that was aborted counts as finished, and a handler that sees it ends the response. A
    // stream of a HEAD has sent everything with its headers, and fails if a handler sends a body.
    stream.on("close", () => {
      const isSent = response.writableEnded || response.req.method === "HEAD";
      end(isSent && stream.headersSent && stream.writableFinished && !stream.aborted);
    });
    // Reset without an error, a stream that still has something to send is never closed by Node.
    const endIfReset = (): void => {
      if (stream.closed && !stream.writableFinished) end(false);
    };
    stream.on("aborted", endIfReset);
    stream.on("end", endIfReset);
  }

  get #closing(): EventEmitter {
    return this.#stream ?? this.response;
  }
}

/**
 * Node's response among the bindings that @hono/node-server passes on. It has more information than
 * the body of a web response, such as whether the client received everything.
 */
export function findOutgoing(bindings: unknown): ServerResponse | undefined {
  const { outgoing } = Object(bindings) as { readonly outgoing?: ServerResponse };
  return typeof outgoing?.writableFinished === "boolean" ? outgoing : undefined;
}

/** Node also finishes a response whose connection has failed with parts of it unsent. */
function hasFailed(response: ServerResponse): boolean {
  // The requests of serverless platforms have no socket, or one that lacks these.
  const socket = response.req.socket as Partial<Socket> | undefined;
  return socket?.destroyed === true || (socket?.errored ?? null) !== null;
}

/**
 * Takes tokens for a request, answers it if it was refused, and returns whether its handler should
 * run. `respond` answers a refusal in place of the usual reply. Throws mistakes of the application,
 * and what should have been answered if headers were sent before.
 */
export async function letThrough<Q>(
  response: ServerResponse,
  limit: RequestLimit<Q>,
  request: Q,
  respond?: (refusal: RateLimitExceeded) => unknown,
): Promise<boolean> {
  const client = new NodeClient(response);
  const result = await limit.admit(request, client);
  if (result.verdict === "not limited") return true;
  if (result.verdict === "gone") return false;
  if (result.verdict === "granted") {
    client.endWithResponse(result.lease);
    addHeaders(response, result.headers);
    return true;
  }
  const isRefused = result.verdict === "refused";
  if (response.headersSent) throw isRefused ? result.refusal : result.error;
  if (isRefused && respond !== undefined) {
    prepareReply(response, result.reply);
    markShown(result.refusal);
    try {
      await respond(result.refusal);
    } catch (error) {
      // Express answers an error with the status that is set, if that is an error status.
      if (!response.headersSent) response.statusCode = 500;
      throw error;
    }
  } else sendReply(response, result.reply);
  return false;
}

/** Sends a reply. No headers were sent before. */
export function sendReply(response: ServerResponse, { status, headers, body }: Reply): void {
  response.statusCode = status;
  addHeaders(response, headers);
  // A handler that failed may have set headers that describe a body it did not send.
  response.removeHeader("Content-Encoding");
  response.setHeader("Content-Length", Buffer.byteLength(body));
  response.end(body);
}

/** Sets the status and headers of a reply, except the content type. */
export function prepareReply(response: ServerResponse, reply: Reply): void {
  response.statusCode = reply.status;
  addHeaders(response, headersWithoutType(reply));
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

/** A list with further items; `there` is its current value, if any. */
export function listWith(
  there: number | string | readonly string[] | undefined,
  items: string,
): string {
  return there === undefined ? items : `${String(there)}, ${items}`;
}

/** The responses of a connection that wait for their turn to be sent. */
const QUEUED = Symbol("zae-limiter queued responses");

/**
 * A client may send requests without waiting for responses (pipelining). The responses that are
 * not yet on the connection are not closed when it is, nor when they are destroyed: they would
 * never end. This closes them with the connection, as Node closes the one whose turn it is. The
 * connection has one listener for all of them.
 */
function closeWithConnection(response: ServerResponse): void {
  const socket: Socket & { [QUEUED]?: Set<ServerResponse> } = response.req.socket;
  if (socket.destroyed) {
    if (!response.destroyed) close(response);
    return;
  }
  let queued = socket[QUEUED];
  if (queued === undefined) {
    const responses = (queued = socket[QUEUED] = new Set<ServerResponse>());
    socket.once("close", () => responses.forEach(close));
  }
  queued.add(response);
  response.once("close", () => queued.delete(response));
}

function close(response: ServerResponse): void {
  if (response.socket !== null) return;
  response.destroyed = true;
  response.emit("close");
}
