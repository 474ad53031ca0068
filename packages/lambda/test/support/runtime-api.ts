import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** The outcome of one invocation: a value, or an error. */
export type Outcome =
  | { readonly result: unknown }
  | { readonly error: { readonly errorType: string; readonly errorMessage: string } };

interface Invocation {
  readonly event: unknown;
  readonly timeoutMs: number;
  readonly resolve: (outcome: Outcome) => void;
}

const BASE = "/2018-06-01/runtime";

/** The time that a function has for an invocation, unless a test says otherwise. */
const TIMEOUT_MS = 60_000;

/**
 * A small server that speaks the Lambda Runtime API: a function asks it for invocations, and
 * returns their outcomes.
 */
export class RuntimeApi {
  readonly #server = createServer((request, response) => void this.#answer(request, response));
  readonly #waiting: Invocation[] = [];
  readonly #running = new Map<string, Invocation>();
  #pending: ((invocation: Invocation) => void) | undefined;
  #invocations = 0;

  async listen(): Promise<string> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, "close");
  }

  /** Invokes the function, and returns what it answered. */
  invoke(event: unknown, timeoutMs = TIMEOUT_MS): Promise<Outcome> {
    return new Promise((resolve) => {
      const invocation = { event, timeoutMs, resolve };
      const give = this.#pending;
      this.#pending = undefined;
      if (give === undefined) this.#waiting.push(invocation);
      else give(invocation);
    });
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? "").slice(BASE.length);
    if (request.method === "GET" && path === "/invocation/next") return this.#next(response);
    const body = JSON.parse(await toText(request)) as never;
    response.writeHead(202).end();
    const [, id, kind] = /^\/invocation\/([^/]+)\/(response|error)$/.exec(path) ?? [];
    const invocation = this.#running.get(id ?? "");
    this.#running.delete(id ?? "");
    invocation?.resolve(kind === "error" ? { error: body } : { result: body });
  }

  #next(response: ServerResponse): void {
    const give = (invocation: Invocation): void => {
      const id = `invocation-${(this.#invocations += 1)}`;
      this.#running.set(id, invocation);
      response.writeHead(200, {
        "content-type": "application/json",
        "lambda-runtime-aws-request-id": id,
        "lambda-runtime-deadline-ms": String(Date.now() + invocation.timeoutMs),
      });
      response.end(JSON.stringify(invocation.event));
    };
    const waiting = this.#waiting.shift();
    if (waiting === undefined) this.#pending = give;
    else give(waiting);
  }
}

async function toText(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request) text += String(chunk);
  return text;
}
