import {
  Agent,
  request as httpRequest,
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
} from "node:http";
import { Agent as SecureAgent, request as httpsRequest } from "node:https";
import type { Endpoint } from "./endpoint.ts";

/** What came back, complete. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** What one request is. */
export interface HttpPost {
  /** Names and values in turn: what Node would make of an object of them, without making it. */
  readonly headers: readonly string[];
  readonly body: string;
  readonly signal: AbortSignal;
}

/**
 * Enough for the parallel calls of a busy process; beyond, requests queue in the agent and time out
 * there.
 */
const MAX_SOCKETS = 128;

/**
 * DynamoDB closes a connection that was idle for a minute. A request that is written at that very
 * moment is lost, and nobody can tell whether it was done, so idle connections are closed here
 * first, with room to spare.
 */
const IDLE_MS = 30_000;

/**
 * DynamoDB's largest answer is 16 MB of items; their JSON is some times that. More is no answer of
 * DynamoDB's.
 */
const MAX_BODY_BYTES = 64 * 1024 * 1024;

/**
 * Errors of a connection that died, by which nobody can tell whether anything had been sent on it.
 */
const DIED: ReadonlySet<string> = new Set(["ECONNRESET", "EPIPE", "ECONNABORTED", "ETIMEDOUT"]);

const UNREADABLE = "ERR_LIMITER_UNREADABLE_ANSWER";

/** Posts to one address over connections that are kept. */
export class HttpClient {
  readonly #endpoint: Endpoint;
  readonly #agent: Agent;
  readonly #ownsAgent: boolean;
  readonly #underWay = new Set<ClientRequest>();
  #closed = false;

  constructor(endpoint: Endpoint, agent?: Agent) {
    this.#endpoint = endpoint;
    this.#agent = agent ?? newAgent(endpoint);
    this.#ownsAgent = agent === undefined;
  }

  /**
   * One request and its whole answer, whatever its status is. Rejects with the reason of the signal
   * when that aborts.
   */
  async post(post: HttpPost): Promise<HttpAnswer> {
    // Credentials may have taken their time.
    post.signal.throwIfAborted();
    if (this.#closed) throw unsent("The transport was closed");
    return new Promise((resolve, reject) => this.#send(post, { resolve, reject }));
  }

  /**
   * Ends everything that is under way, and closes the connections unless the agent is the caller's.
   */
  close(): void {
    this.#closed = true;
    for (const request of this.#underWay)
      request.destroy(coded("ECONNABORTED", "The transport was closed"));
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
      // An answer that still comes would be taken for that of the next request: the connection goes
      // with its request.
      request.destroy();
    };

    signal.addEventListener("abort", onAbort, { once: true });
    request.on("socket", (socket) => {
      // Asked of the socket, not of the request: one that waited in the queue gets a connection
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
    // Whatever else ends a request, such as an upgrade that nobody asked for, ends its call too.
    request.on("close", () => {
      if (this.#underWay.has(request))
        fail(coded("ECONNRESET", "The connection was closed without an answer"));
    });
    request.end(body);
  }
}

/**
 * An answer that cannot be one of DynamoDB's, or not all of it: what was asked for may have been
 * done.
 */
export function unreadable(message: string, cause?: unknown): Error {
  return coded(UNREADABLE, message, cause);
}

/**
 * An error of a connection that was open: whatever it is called, what was asked for may have been
 * done.
 */
function ambiguous(error: NodeJS.ErrnoException): Error {
  const tellsSo = DIED.has(error.code ?? "") || error.code === UNREADABLE;
  return tellsSo
    ? error
    : unreadable(`The connection failed before the answer: ${error.message}`, error);
}

/** An error of a connection that never opened, or that was never had. */
function certain(error: NodeJS.ErrnoException): Error {
  return DIED.has(error.code ?? "")
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
      reject(unreadable(`An answer of more than ${MAX_BODY_BYTES} bytes`));
  });
  response.on("end", () => {
    const body = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, length);
    resolve({ status: response.statusCode ?? 0, headers: response.headers, body });
  });
  // An answer that breaks off.
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

/** What failed before anything left: nothing was done. */
export function unsent(message: string, cause?: unknown): Error {
  return coded("ERR_LIMITER_UNSENT", message, cause);
}

function coded(code: string, message: string, cause?: unknown): Error {
  return Object.assign(new Error(message, cause === undefined ? {} : { cause }), { code });
}
