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
import { setTimeout as sleep } from "node:timers/promises";

/** What one request looks like to the test that decides what becomes of it. */
export interface ProxiedRequest {
  /** Such as `UpdateItem`. */
  readonly operation: string;
  readonly input: Readonly<Record<string, unknown>>;
  /** Counts the requests of this proxy, from 1. */
  readonly sequence: number;
}

/**
 * What happens to one request instead of its normal course:
 * - `lost-request`: it never reaches the engine, and the connection dies;
 * - `lost-reply`: the engine does it, and the connection dies before the answer;
 * - `silence`: it never reaches the engine, and no answer ever comes (a time-out);
 * - `late-silence`: the engine does it, and no answer ever comes;
 * - `throttle`, `throughput`, `internal`, `unavailable`, `denied`: the engine never sees it, and
 *   that error is the answer; `hot-key` is `throughput` with the key's range as the reason;
 * - `late-internal`: the engine does it, and an internal error is the answer;
 * - `unprocessed`: a batch is not done at all, and all its keys or items come back unprocessed;
 * - `half-unprocessed`: the second half of a batch comes back unprocessed, the first half is done;
 * - `conflict`: a transaction is cancelled, or a single write refused, because another transaction
 *   holds an item;
 * - `in-progress`: a transaction with the same token is still running;
 * - `delayMs`: it takes that much longer, then goes its normal course.
 */
export type Fault =
  | "lost-request"
  | "lost-reply"
  | "silence"
  | "late-silence"
  | "throttle"
  | "throughput"
  | "hot-key"
  | "internal"
  | "late-internal"
  | "unavailable"
  | "denied"
  | "unprocessed"
  | "half-unprocessed"
  | "conflict"
  | "in-progress"
  | { readonly delayMs: number };

/** What the engine answered, whether or not the client gets to see it. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** A proxy between clients and an engine that lets requests fail as a test decides. */
export interface FaultProxy {
  readonly endpointUrl: string;
  /** Every request that arrived, in order. */
  readonly seen: readonly ProxiedRequest[];
  /** Asked for each request; `undefined` lets it pass. */
  decide: (request: ProxiedRequest) => Fault | undefined;
  /** Told what the engine answered to a request that reached it. */
  observe: (request: ProxiedRequest, answer: Answer) => void;
  /**
   * Waits until every request that arrived has come to its end, also the late ones that nobody
   * waits for any more.
   */
  idle(): Promise<void>;
  stop(): Promise<void>;
}

/** Puts a proxy in front of an engine. */
export async function startFaultProxy(engineUrl: string): Promise<FaultProxy> {
  const agent = new Agent({ keepAlive: true });
  const seen: ProxiedRequest[] = [];
  const underWay = new Set<Promise<void>>();
  const proxy = {
    endpointUrl: "",
    seen,
    decide: (): Fault | undefined => undefined,
    observe: () => {},
    idle: async () => void (await Promise.all(underWay)),
    stop: async () => stop(server, agent),
  };
  const server = createServer((incoming, outgoing) => {
    // A client that gave up is no fault of the proxy.
    const handling = handle(incoming, outgoing)
      .catch(() => void outgoing.destroy())
      .finally(() => underWay.delete(handling));
    underWay.add(handling);
  });
  const handle = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const body = await readAll(incoming);
    const proxied = describeRequest(incoming, body, seen.length + 1);
    seen.push(proxied);
    const fault = (proxy as FaultProxy).decide(proxied);
    await suffer(fault, proxied, {
      outgoing,
      forward: async (changed = body) => {
        const answer = await passOn(engineUrl, agent, incoming, changed);
        (proxy as FaultProxy).observe(proxied, answer);
        return answer;
      },
    });
  };
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  proxy.endpointUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return proxy;
}

/** The faults in turn, one a request of the operation; afterwards everything passes. */
export function script(
  operation: string,
  faults: readonly (Fault | undefined)[],
): (request: ProxiedRequest) => Fault | undefined {
  let position = 0;
  return (proxied) => (proxied.operation === operation ? faults[position++] : undefined);
}

interface Course {
  readonly outgoing: ServerResponse;
  readonly forward: (body?: string) => Promise<Answer>;
}

async function suffer(
  fault: Fault | undefined,
  proxied: ProxiedRequest,
  { outgoing, forward }: Course,
): Promise<void> {
  if (fault === undefined) return reply(outgoing, await forward());
  if (typeof fault === "object") {
    await sleep(fault.delayMs);
    return reply(outgoing, await forward());
  }
  switch (fault) {
    case "lost-request":
      outgoing.destroy();
      return;
    case "lost-reply":
      await forward();
      outgoing.destroy();
      return;
    case "silence":
      return;
    case "late-silence":
      await forward();
      return;
    case "late-internal":
      await forward();
      return reply(outgoing, errorAnswer("internal", proxied));
    case "unprocessed":
      return reply(outgoing, ok(unprocessed(proxied.input)));
    case "half-unprocessed":
      return reply(outgoing, await half(proxied.input, forward));
    default:
      return reply(outgoing, errorAnswer(fault, proxied));
  }
}

type RequestItems = Readonly<
  Record<string, { readonly Keys?: readonly unknown[] } | readonly unknown[]>
>;

function unprocessed(input: ProxiedRequest["input"]): object {
  const items = input["RequestItems"] as RequestItems;
  return isBatchGet(items)
    ? { Responses: {}, UnprocessedKeys: items }
    : { UnprocessedItems: items };
}

/** Forwards the first half and hands the second one back. */
async function half(
  input: ProxiedRequest["input"],
  forward: (body: string) => Promise<Answer>,
): Promise<Answer> {
  const items = input["RequestItems"] as RequestItems;
  const [table, entry] = Object.entries(items)[0]!;
  const list = Array.isArray(entry)
    ? (entry as readonly unknown[])
    : (entry as { readonly Keys: readonly unknown[] }).Keys;
  const middle = Math.floor(list.length / 2);
  const part = (some: readonly unknown[]): object => ({
    [table]: Array.isArray(entry) ? some : { ...entry, Keys: some },
  });
  const done =
    middle === 0
      ? ok({})
      : await forward(JSON.stringify({ ...input, RequestItems: part(list.slice(0, middle)) }));
  if (done.status !== 200) return done;
  const rest = isBatchGet(items) ? "UnprocessedKeys" : "UnprocessedItems";
  return ok({ ...(JSON.parse(done.body) as object), [rest]: part(list.slice(middle)) });
}

function isBatchGet(items: RequestItems): boolean {
  return Object.values(items).some((entry) => !Array.isArray(entry));
}

function errorAnswer(fault: string, { operation, input }: ProxiedRequest): Answer {
  switch (fault) {
    case "throttle":
      return failed(400, "com.amazon.coral.availability#ThrottlingException", {
        message: "Rate of requests exceeds the allowed throughput.",
      });
    case "throughput":
      return failed(
        400,
        "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
        {
          message: "Level of configured throughput exceeded.",
        },
      );
    case "hot-key":
      return failed(
        400,
        "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
        {
          message: "Level of configured throughput exceeded.",
          ThrottlingReasons: [{ reason: "TableWriteKeyRangeThroughputExceeded" }],
        },
      );
    case "internal":
      return failed(500, "com.amazonaws.dynamodb.v20120810#InternalServerError", {
        message: "Internal server error",
      });
    case "unavailable":
      return failed(503, "com.amazon.coral.availability#ServiceUnavailable", {
        message: "Service unavailable",
      });
    case "denied":
      return failed(400, "com.amazon.coral.service#AccessDeniedException", {
        message: "User is not authorized to perform this action",
      });
    case "in-progress":
      return failed(400, "com.amazonaws.dynamodb.v20120810#TransactionInProgressException", {
        Message: "Transaction is already in progress.",
      });
    default:
      return operation.startsWith("Transact")
        ? cancelled(input)
        : failed(400, "com.amazonaws.dynamodb.v20120810#TransactionConflictException", {
            message: "Transaction is ongoing for the item",
          });
  }
}

function cancelled(input: ProxiedRequest["input"]): Answer {
  const items = input["TransactItems"] as readonly unknown[];
  const reasons = items.map((_, index) =>
    index === 0
      ? { Code: "TransactionConflict", Message: "Transaction is ongoing for the item" }
      : { Code: "None" },
  );
  return failed(400, "com.amazonaws.dynamodb.v20120810#TransactionCanceledException", {
    Message: `Transaction cancelled, please refer cancellation reasons for specific reasons [${reasons.map(({ Code }) => Code).join(", ")}]`,
    CancellationReasons: reasons,
  });
}

function ok(body: object): Answer {
  return {
    status: 200,
    headers: { "content-type": "application/x-amz-json-1.0" },
    body: JSON.stringify(body),
  };
}

function failed(status: number, type: string, body: object): Answer {
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
