import { once } from "node:events";
import {
  Agent,
  createServer,
  request,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";

/** A request, as the test sees it that decides its outcome. */
export interface ProxiedRequest {
  /** Such as `UpdateItem`. */
  readonly operation: string;
  readonly input: Readonly<Record<string, unknown>>;
  /** Counts the requests of this proxy, from 1. */
  readonly sequence: number;
}

/** The engine's answer, whether or not the client receives it. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** The ways to handle a request. Without any of them it gets no answer. */
export interface Course {
  /** Asks the engine, with the body of the request or with another one. */
  readonly forward: (body?: string) => Promise<Answer>;
  readonly reply: (answer: Answer) => void;
  /** Ends the connection without an answer. */
  readonly drop: () => void;
}

/** A server between clients and an engine. */
export interface ProxyServer {
  readonly endpointUrl: string;
  /** Waits until every request that arrived has ended. */
  idle(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a server on this machine that handles each request for an engine. */
export async function startProxyServer(
  engineUrl: string,
  handle: (proxied: ProxiedRequest, course: Course) => Promise<void>,
): Promise<ProxyServer> {
  const agent = new Agent({ keepAlive: true });
  const underWay = new Set<Promise<void>>();
  let requests = 0;
  const server = createServer((incoming, outgoing) => {
    // A client that gave up is not a fault of the proxy.
    const handling = received(incoming, outgoing)
      .catch(() => void outgoing.destroy())
      .finally(() => underWay.delete(handling));
    underWay.add(handling);
  });
  const received = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const body = await readAll(incoming);
    requests += 1;
    await handle(describeRequest(incoming, body, requests), {
      forward: async (changed = body) => passOn(engineUrl, agent, incoming, changed),
      reply: (answer) => reply(outgoing, answer),
      drop: () => void outgoing.destroy(),
    });
  };
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    endpointUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    idle: async () => void (await Promise.all(underWay)),
    stop: async () => stop(server, agent),
  };
}

/** A good answer. */
export function ok(body: object): Answer {
  return {
    status: 200,
    headers: { "content-type": "application/x-amz-json-1.0" },
    body: JSON.stringify(body),
  };
}

/** An error as DynamoDB returns it. */
export function fail(status: number, type: string, body: object): Answer {
  return {
    status,
    headers: { "content-type": "application/x-amz-json-1.0" },
    body: JSON.stringify({ __type: type, ...body }),
  };
}

function reply(outgoing: ServerResponse, { status, headers, body }: Answer): void {
  // Lengths and checksums of a changed body would be wrong; the client does without.
  const {
    "content-length": _,
    "x-amz-crc32": __,
    "transfer-encoding": ___,
    connection: ____,
    ...rest
  } = headers;
  outgoing.writeHead(status, rest as Record<string, string>).end(body);
}

function describeRequest(
  incoming: IncomingMessage,
  body: string,
  sequence: number,
): ProxiedRequest {
  const operation = String(incoming.headers["x-amz-target"] ?? "")
    .split(".")
    .at(-1)!;
  return {
    operation,
    input: body === "" ? {} : (JSON.parse(body) as Record<string, unknown>),
    sequence,
  };
}

async function passOn(
  engineUrl: string,
  agent: Agent,
  incoming: IncomingMessage,
  body: string,
): Promise<Answer> {
  const {
    "content-length": _,
    "transfer-encoding": __,
    connection: ___,
    ...headers
  } = incoming.headers;
  const outgoing = request(engineUrl, {
    agent,
    method: incoming.method ?? "POST",
    path: incoming.url ?? "/",
    headers,
  });
  outgoing.end(body);
  const [answer] = (await once(outgoing, "response")) as [IncomingMessage];
  return { status: answer.statusCode ?? 500, headers: answer.headers, body: await readAll(answer) };
}

async function readAll(stream: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

async function stop(server: Server, agent: Agent): Promise<void> {
  server.close();
  server.closeAllConnections();
  agent.destroy();
  await once(server, "close");
}
