import { once } from "node:events";
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo, Socket } from "node:net";

/** One request as it arrived. */
export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** Which connection it came on, from 1. */
  readonly connection: number;
}

/** A server whose answers the test decides. */
export interface ScriptedServer {
  readonly endpointUrl: string;
  readonly seen: readonly SeenRequest[];
  /** How many connections were opened so far. */
  readonly connections: number;
  /** The connections that are open now. */
  readonly sockets: ReadonlySet<Socket>;
  answer: (outgoing: ServerResponse, request: SeenRequest) => void;
  stop(): Promise<void>;
}

/** Starts a server that answers every request with an empty output until `answer` is set. */
export async function startScriptedServer(
  server: Server = createServer(),
): Promise<ScriptedServer> {
  const seen: SeenRequest[] = [];
  const sockets = new Set<Socket>();
  const numbers = new WeakMap<Socket, number>();
  let connections = 0;
  // Also a secure server's "connection": before its handshake.
  server.on("connection", (socket: Socket) => {
    numbers.set(socket, (connections += 1));
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  server.on("request", (incoming: IncomingMessage, outgoing: ServerResponse) => {
    void readAll(incoming).then((body) => {
      const connection = numbers.get(incoming.socket) ?? 0;
      const { method = "", url: path = "", headers } = incoming;
      const request = { method, path, headers, body, connection };
      seen.push(request);
      scripted.answer(outgoing, request);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const scripted = {
    endpointUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    get connections() {
      return connections;
    },
    sockets,
    answer: (outgoing: ServerResponse) => reply(outgoing, {}),
    stop: async () => {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, "close");
    },
  } as ScriptedServer;
  return scripted;
}

/** An answer as DynamoDB words it. */
export function reply(
  outgoing: ServerResponse,
  body: object,
  { status = 200, headers = {} }: ReplyOptions = {},
): void {
  outgoing
    .writeHead(status, { "content-type": "application/x-amz-json-1.0", ...headers })
    .end(JSON.stringify(body));
}

/** An error as DynamoDB words it. */
export function refuse(
  outgoing: ServerResponse,
  name: string,
  options: ReplyOptions & { readonly details?: object } = {},
): void {
  const body = {
    __type: `com.amazonaws.dynamodb.v20120810#${name}`,
    message: `because of ${name}`,
    ...options.details,
  };
  reply(outgoing, body, { status: 400, ...options });
}

interface ReplyOptions {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

async function readAll(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
