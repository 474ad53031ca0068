import {
  Agent,
  request as httpRequest,
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
} from "node:http";
import { Agent as SecureAgent, request as httpsRequest } from "node:https";
import { MAX_SOCKETS, type HttpAgent } from "../transport.ts";
import type { Endpoint } from "./endpoint.ts";

/** A complete reply. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** One request. */
export interface HttpPost {
  /** Alternating names and values, the flat form that Node uses internally. */
  readonly headers: readonly string[];
  readonly body: string;
  readonly signal: AbortSignal;
}

/**
 * DynamoDB closes a connection that was idle for a minute. A request that is written at that very
 * moment is lost, and its outcome is unknown, so idle connections are closed here long before that.
 */
const IDLE_MS = 30_000;

/**
 * DynamoDB's largest reply is 16 MB of items, and their JSON a few times that. Anything larger does
 * not come from DynamoDB.
 */
const MAX_BODY_BYTES = 64 * 1024 * 1024;

/** Errors of a connection that failed, which do not show whether anything was sent on it. */
const CONNECTION_FAILED: ReadonlySet<string> = new Set([
  "ECONNRESET",
  "EPIPE",
  "ECONNABORTED",
  "ETIMEDOUT",
]);

const UNREADABLE = "ERR_LIMITER_UNREADABLE_ANSWER";

/** Posts to one address over connections that are kept alive. */
export class HttpClient {
  readonly #endpoint: Endpoint;
  readonly #agent: Agent;
  readonly #ownsAgent: boolean;
  readonly #underWay = new Set<ClientRequest>();
  #closed = false;

  constructor(endpoint: Endpoint, agent?: HttpAgent) {
    this.#endpoint = endpoint;
    this.#agent = (agent as Agent | undefined) ?? newAgent(endpoint);
    this.#ownsAgent = agent === undefined;
  }

  /**
   * One request and its whole answer, with any status. Rejects with the reason of the signal when
   * that aborts.
   */
  async post(post: HttpPost): Promise<HttpAnswer> {
    // The signal may have aborted while credentials were fetched.
    post.signal.throwIfAborted();
    if (this.#closed) throw unsent("The transport was closed");
    return new Promise((resolve, reject) => this.#send(post, { resolve, reject }));
  }

  /**
   * Ends all requests that are in progress, and closes the connections unless the agent is the
   * caller's.
   */
  close(): void {
    this.#closed = true;
    for (const request of this.#underWay)
      request.destroy(buildCodedError("ECONNABORTED", "The transport was closed"));
    if (this.#ownsAgent) this.#agent.destroy();
  }

  #send({ headers, body, signal }: HttpPost, outcome: Outcome): void {
    const { secure, hostname, port, path } = this.#endpoint;
    const target = { agent: this.#agent, method: "POST", hostname, port, path, headers };
    const request = secure ? httpsRequest(target) : httpRequest(target);
    this.#underWay.add(request);
    let mayHaveBeenSent = false;

    const settle = (): void => {
      signal.removeEventListener("abort", onAbort);
      this.#underWay.delete(request);
    };
    const fail = (error: Error): void => {
      settle();
      outcome.reject(mayHaveBeenSent ? ambiguous(error) : certain(error));
    };
    const onAbort = (): void => {
      settle();
      outcome.reject(signal.reason as Error);
      // A late reply would look like that of the next request, so the connection is closed with its
      // request.
      request.destroy();
    };

    signal.addEventListener("abort", onAbort, { once: true });
    request.on("socket", (socket) => {
      // The socket knows, not the request: a request that waited in the queue gets a connection
      // that has long been open.
      if (socket.connecting)
        socket.once(secure ? "secureConnect" : "connect", () => (mayHaveBeenSent = true));
      else mayHaveBeenSent = true;
    });
    request.on("response", (response) =>
      collect(response, {
        resolve: (answer) => {
          settle();
          outcome.resolve(answer);
        },
        reject: (error) => {
          fail(error);
          request.destroy();
        },
      }),
    );
    request.on("error", fail);
    // Whatever else ends a request, such as an upgrade that was not requested, ends its call too.
    request.on("close", () => {
      if (this.#underWay.has(request))
        fail(buildCodedError("ECONNRESET", "The connection was closed without an answer"));
    });
    request.end(body);
  }
}

/**
 * The error of a reply that is incomplete or cannot be DynamoDB's: the request may have been
 * carried out.
 */
export function unreadable(message: string, cause?: unknown): Error {
  return buildCodedError(UNREADABLE, message, cause);
}

/**
 * The error of a connection that was open: with any code, the request may have been carried out.
 */
function ambiguous(error: NodeJS.ErrnoException): Error {
  const isKnownToBeAmbiguous = CONNECTION_FAILED.has(error.code ?? "") || error.code === UNREADABLE;
  return isKnownToBeAmbiguous
    ? error
    : unreadable(`The connection failed before the answer: ${error.message}`, error);
}

/** The error of a connection that never opened: the request was not sent. */
function certain(error: NodeJS.ErrnoException): Error {
  return CONNECTION_FAILED.has(error.code ?? "")
    ? unsent(`The connection failed before anything was sent on it: ${error.message}`, error)
    : error;
}

interface Outcome {
  readonly resolve: (answer: HttpAnswer) => void;
  readonly reject: (error: Error) => void;
}

function collect(response: IncomingMessage, { resolve, reject }: Outcome): void {
  const chunks: Buffer[] = [];
  let length = 0;
  response.on("data", (chunk: Buffer) => {
    chunks.push(chunk);
    length += chunk.length;
    if (length > MAX_BODY_BYTES)
      reject(unreadable(`The answer has more than ${MAX_BODY_BYTES} bytes`));
  });
  response.on("end", () => {
    const body = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, length);
    resolve({ status: response.statusCode ?? 0, headers: response.headers, body });
  });
  // A reply that breaks off.
  response.on("error", reject);
}

/**
 * The connection that was used last is used next ("lifo"): it is the one that the server is least
 * likely to have closed meanwhile.
 */
function newAgent({ secure }: Endpoint): Agent {
  const options = {
    keepAlive: true,
    maxSockets: MAX_SOCKETS,
    scheduling: "lifo",
    timeout: IDLE_MS,
  } as const;
  return secure ? new SecureAgent(options) : new Agent(options);
}

/** The error of a request that was never sent: nothing was carried out. */
export function unsent(message: string, cause?: unknown): Error {
  return buildCodedError("ERR_LIMITER_UNSENT", message, cause);
}

function buildCodedError(code: string, message: string, cause?: unknown): Error {
  return Object.assign(new Error(message, cause === undefined ? {} : { cause }), { code });
}
