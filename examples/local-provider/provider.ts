/*
 * A server on this machine that speaks the protocols of OpenAI (chat completions, responses,
 * embeddings) and Anthropic (messages), as far as their clients need it: in one piece and as a
 * stream, with tools, usage, rate-limit headers and faults. It counts a token for each word of an
 * answer, and for every three bytes of a question. `wishes.ts` lists what a request can ask for.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Account, type AccountOptions } from "./account.ts";
import type { Usage } from "./protocol.ts";
import { respond, type Reply } from "./respond.ts";
import type { ProviderBody, ProviderRequest } from "./request.ts";

export interface ProviderOptions {
  /** The port; any free one if it is not given. */
  readonly port?: number;
  /** Limits that all requests share; none if they are not given. */
  readonly account?: AccountOptions;
}

/** A running provider. */
export interface Provider {
  readonly url: string;
  /** An address of this machine where connections are refused. */
  readonly refusedUrl: string;
  /** Environment variables that point the real clients to it. */
  readonly environment: Readonly<Record<string, string>>;
  /** The last requests, oldest first. */
  readonly requests: readonly ProviderRequest[];
  /** How many answers had each status. */
  readonly statuses: ReadonlyMap<number, number>;
  /** The usage of each model, even where the answers did not report it. */
  readonly used: ReadonlyMap<string, Usage>;
  /** Requests that are being answered. */
  readonly open: number;
  /** Resolves when the next client hangs up in the middle of an answer. */
  nextHangUp(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * No server listens there, no system gives this port out, and it is not one of those that `fetch`
 * refuses to call.
 */
const REFUSED_URL = "http://127.0.0.1:2";

/** How many requests are remembered. */
const MAX_REQUESTS = 1000;

export async function startProvider(options: ProviderOptions = {}): Promise<Provider> {
  const provider = new LocalProvider(options);
  await provider.start(options.port ?? 0);
  return provider;
}

class LocalProvider implements Provider {
  readonly #server: Server;
  readonly #account: Account | undefined;
  readonly #attempts = new Map<string, number>();
  readonly #waiting: (() => void)[] = [];
  readonly refusedUrl = REFUSED_URL;
  readonly requests: ProviderRequest[] = [];
  readonly statuses = new Map<number, number>();
  readonly used = new Map<string, Usage>();
  open = 0;

  constructor({ account }: ProviderOptions) {
    this.#account = account === undefined ? undefined : new Account(account);
    this.#server = createServer((incoming, response) => {
      this.open += 1;
      response.on("close", () => {
        this.open -= 1;
        if (response.writableFinished || response.errored !== null) return;
        for (const resolve of this.#waiting.splice(0)) resolve();
      });
      void this.#answer(incoming, response);
    });
  }

  async start(port: number): Promise<void> {
    await once(this.#server.listen(port, "127.0.0.1"), "listening");
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get environment(): Readonly<Record<string, string>> {
    return {
      OPENAI_BASE_URL: `${this.url}/v1`,
      OPENAI_API_KEY: "local",
      ANTHROPIC_BASE_URL: this.url,
      ANTHROPIC_API_KEY: "local",
    };
  }

  nextHangUp(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }

  stop(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  get #port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async #answer(incoming: IncomingMessage, reply: Reply): Promise<void> {
    try {
      const body = await readBody(incoming);
      const request = { path: incoming.url ?? "", headers: incoming.headers, body };
      this.requests.push(request);
      if (this.requests.length > MAX_REQUESTS) this.requests.shift();
      await respond(request, reply, {
        attempts: this.#attempts,
        account: this.#account,
        addUse: (model, { input, output }) => {
          const before = this.used.get(model) ?? { input: 0, output: 0 };
          this.used.set(model, { input: before.input + input, output: before.output + output });
        },
      });
    } catch (error) {
      // The client is gone, or asked for something unknown.
      if (!reply.headersSent && !reply.destroyed) reply.writeHead(500).end(String(error));
    }
    if (!reply.headersSent) return;
    this.statuses.set(reply.statusCode, (this.statuses.get(reply.statusCode) ?? 0) + 1);
  }
}

/** A body that is not JSON counts as empty. */
async function readBody(incoming: IncomingMessage): Promise<ProviderBody> {
  const pieces: Buffer[] = [];
  for await (const piece of incoming) pieces.push(piece as Buffer);
  try {
    return JSON.parse(Buffer.concat(pieces).toString()) as ProviderBody;
  } catch {
    return {} as ProviderBody;
  }
}
