import { randomBytes, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";

/** Where a supervisor listens, and the token that only those know who may read its folder. */
export interface ControlAddress {
  readonly port: number;
  readonly token: string;
}

/** What a supervisor does when it is asked. */
export interface ControlActions {
  status(): object;
  stop(): void;
}

/** Answers requests of other commands, on 127.0.0.1 only. */
export class ControlServer {
  readonly address: ControlAddress;
  readonly #server: Server;

  private constructor(server: Server, address: ControlAddress) {
    this.#server = server;
    this.address = address;
  }

  /** Starts to listen on a free port. */
  static async start(actions: ControlActions): Promise<ControlServer> {
    const token = randomBytes(24).toString("base64url");
    const server = createServer((incoming, reply) => {
      if (!isSame(incoming.headers.authorization ?? "", `Bearer ${token}`)) {
        reply.writeHead(401).end();
        return;
      }
      if (incoming.method === "POST") actions.stop();
      reply.setHeader("content-type", "application/json");
      reply.end(JSON.stringify(actions.status()));
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new ControlServer(server, { port: (server.address() as AddressInfo).port, token });
  }

  /** Stops listening. */
  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

/** How long a supervisor may take to answer before it counts as one that does not. */
const ANSWER_WITHIN_MS = 3000;

/** Asks a supervisor (`GET`) or tells it to end (`POST`); `undefined` if it does not answer. */
export async function askSupervisor<T>(
  { port, token }: ControlAddress,
  method: "GET" | "POST",
): Promise<T | undefined> {
  return new Promise((resolve) => {
    const call = request(
      {
        host: "127.0.0.1",
        port,
        method,
        headers: { authorization: `Bearer ${token}` },
        signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
      },
      (reply) => {
        let text = "";
        reply.setEncoding("utf8");
        reply.on("data", (part: string) => (text += part));
        reply.on("error", () => resolve(undefined));
        reply.on("end", () =>
          resolve(reply.statusCode === 200 ? (JSON.parse(text) as T) : undefined),
        );
      },
    );
    call.on("error", () => resolve(undefined));
    call.end();
  });
}

function isSame(given: string, wanted: string): boolean {
  const [left, right] = [Buffer.from(given), Buffer.from(wanted)];
  return left.length === right.length && timingSafeEqual(left, right);
}
