import { setTimeout as sleep } from "node:timers/promises";
import {
  fail,
  ok,
  startProxyServer,
  type Answer,
  type Course,
  type ProxiedRequest,
} from "./proxy-server.ts";
import {
  carriedOut,
  isStatementFault,
  type StatementFault,
  type StatementReply,
} from "./statement-faults.ts";
import { listStatements, writtenKeys, type RequestKey } from "./written-items.ts";

export type { Answer, ProxiedRequest };

/**
 * What happens to one request instead of normal handling:
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
 * - `delayMs`: it takes that much longer, and is then handled normally;
 * - `partial`: a batch of statements is done, and the reply lacks the first of them;
 * - `half-done`: only the second half of a batch of statements is done and replied to;
 * - `statements`: each statement of a batch gets the fault of its item;
 * - `reordered`: a batch of statements is done, and its replies come in another order.
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
  | "partial"
  | "half-done"
  | { readonly delayMs: number }
  | { readonly statements: (key: RequestKey) => StatementFault | undefined }
  | { readonly reordered: (replies: readonly StatementReply[]) => readonly StatementReply[] };

/** A proxy between clients and an engine that lets requests fail as a test decides. */
export interface FaultProxy {
  readonly endpointUrl: string;
  /** Every request that arrived, in order. */
  readonly seen: readonly ProxiedRequest[];
  /** Asked for each request; `undefined` lets it pass. */
  decide: (request: ProxiedRequest) => Fault | undefined;
  /** Called with the engine's answer to a request that reached it. */
  observe: (request: ProxiedRequest, answer: Answer) => void;
  /**
   * Waits until every request that arrived has ended, including late ones that no caller
   * waits for any more.
   */
  idle(): Promise<void>;
  stop(): Promise<void>;
}

/** Puts a proxy in front of an engine. */
export async function startFaultProxy(engineUrl: string): Promise<FaultProxy> {
  const seen: ProxiedRequest[] = [];
  const proxy = {
    endpointUrl: "",
    seen,
    decide: (): Fault | undefined => undefined,
    observe: () => {},
    idle: async () => server.idle(),
    stop: async () => server.stop(),
  };
  const server = await startProxyServer(engineUrl, async (proxied, course) => {
    seen.push(proxied);
    const fault = (proxy as FaultProxy).decide(proxied);
    await suffer(fault, proxied, {
      ...course,
      forward: async (changed) => {
        const answer = await course.forward(changed);
        (proxy as FaultProxy).observe(proxied, answer);
        return answer;
      },
    });
  });
  proxy.endpointUrl = server.endpointUrl;
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

/**
 * Lets every write of an item fail, alone or in a batch. Of a batch only its own statement fails,
 * where one statement can; otherwise all of it does.
 */
export function onWrites(
  isHit: (key: RequestKey) => boolean,
  fault: Fault,
): (request: ProxiedRequest) => Fault | undefined {
  return ({ operation, input }) => {
    if (!writtenKeys(operation, input).some(isHit)) return undefined;
    return operation === "BatchExecuteStatement" && isStatementFault(fault)
      ? { statements: (key) => (isHit(key) ? fault : undefined) }
      : fault;
  };
}

async function suffer(
  fault: Fault | undefined,
  proxied: ProxiedRequest,
  { reply, drop, forward }: Course,
): Promise<void> {
  if (fault === undefined) return reply(await forward());
  if (typeof fault === "object" && "delayMs" in fault) {
    await sleep(fault.delayMs);
    return reply(await forward());
  }
  if (typeof fault === "object" && "reordered" in fault) {
    const done = await forward();
    if (done.status !== 200) return reply(done);
    const body = JSON.parse(done.body) as BatchReply;
    return reply(ok({ ...body, Responses: fault.reordered(body.Responses) }));
  }
  if (typeof fault === "object")
    return reply(await statementByStatement(proxied.input, fault.statements, forward));
  switch (fault) {
    case "lost-request":
      return drop();
    case "lost-reply":
      await forward();
      return drop();
    case "silence":
      return;
    case "late-silence":
      await forward();
      return;
    case "late-internal":
      await forward();
      return reply(errorAnswer("internal", proxied));
    case "unprocessed":
      return reply(ok(unprocessed(proxied.input)));
    case "half-unprocessed":
      return reply(await half(proxied.input, forward));
    case "partial":
    case "half-done":
      return reply(await partial(fault, proxied.input, forward));
    default:
      return reply(errorAnswer(fault, proxied));
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

async function statementByStatement(
  input: ProxiedRequest["input"],
  faultOf: (key: RequestKey) => StatementFault | undefined,
  forward: (body: string) => Promise<Answer>,
): Promise<Answer> {
  const { statements, replies } = carriedOut(listStatements(input), faultOf);
  const done =
    statements.length === 0
      ? ok({ Responses: [] })
      : await forward(JSON.stringify({ ...input, Statements: statements }));
  if (done.status !== 200) return done;
  const body = JSON.parse(done.body) as BatchReply;
  return ok({ ...body, Responses: replies(body.Responses) });
}

/** Replies to fewer statements than were sent. */
async function partial(
  fault: "partial" | "half-done",
  input: ProxiedRequest["input"],
  forward: (body: string) => Promise<Answer>,
): Promise<Answer> {
  const statements = listStatements(input);
  const sent = fault === "partial" ? statements : statements.slice(statements.length / 2);
  const done = await forward(JSON.stringify({ ...input, Statements: sent }));
  if (done.status !== 200) return done;
  const body = JSON.parse(done.body) as BatchReply;
  const { Responses: replies } = body;
  return ok({ ...body, Responses: fault === "partial" ? replies.slice(1) : replies });
}

interface BatchReply {
  readonly Responses: readonly object[];
}

function isBatchGet(items: RequestItems): boolean {
  return Object.values(items).some((entry) => !Array.isArray(entry));
}

function errorAnswer(fault: string, { operation, input }: ProxiedRequest): Answer {
  switch (fault) {
    case "throttle":
      return fail(400, "com.amazon.coral.availability#ThrottlingException", {
        message: "Rate of requests exceeds the allowed throughput.",
      });
    case "throughput":
      return fail(400, "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException", {
        message: "Level of configured throughput exceeded.",
      });
    case "hot-key":
      return fail(400, "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException", {
        message: "Level of configured throughput exceeded.",
        ThrottlingReasons: [{ reason: "TableWriteKeyRangeThroughputExceeded" }],
      });
    case "internal":
      return fail(500, "com.amazonaws.dynamodb.v20120810#InternalServerError", {
        message: "Internal server error",
      });
    case "unavailable":
      return fail(503, "com.amazon.coral.availability#ServiceUnavailable", {
        message: "Service unavailable",
      });
    case "denied":
      return fail(400, "com.amazon.coral.service#AccessDeniedException", {
        message: "User is not authorized to perform this action",
      });
    case "in-progress":
      return fail(400, "com.amazonaws.dynamodb.v20120810#TransactionInProgressException", {
        Message: "Transaction is already in progress.",
      });
    default:
      return operation.startsWith("Transact")
        ? cancel(input)
        : fail(400, "com.amazonaws.dynamodb.v20120810#TransactionConflictException", {
            message: "Transaction is ongoing for the item",
          });
  }
}

function cancel(input: ProxiedRequest["input"]): Answer {
  const items = input["TransactItems"] as readonly unknown[];
  const reasons = items.map((_, index) =>
    index === 0
      ? { Code: "TransactionConflict", Message: "Transaction is ongoing for the item" }
      : { Code: "None" },
  );
  return fail(400, "com.amazonaws.dynamodb.v20120810#TransactionCanceledException", {
    Message: `Transaction cancelled, please refer cancellation reasons for specific reasons [${reasons.map(({ Code }) => Code).join(", ")}]`,
    CancellationReasons: reasons,
  });
}
