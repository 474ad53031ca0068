import type { ServerResponse } from "node:http";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { DynamoTransport } from "zae-limiter/dynamodb";
import { REGION, useLeanCalls } from "../../../../../test/support/lean-calls.ts";
import { refuse, reply } from "../../../../../test/support/scripted-server.ts";

import { classifyError } from "../failure.ts";
import { sdkTransport } from "../sdk-transport.ts";

const lean = useLeanCalls();
let sdk: DynamoTransport;

beforeEach(async () => {
  ({ transport: sdk } = await sdkTransport({
    region: REGION,
    endpointUrl: lean.server.endpointUrl,
  }));
});
afterEach(() => sdk.close());

const DETAILS = {
  Item: { PK: { S: "x" } },
  CancellationReasons: [
    { Code: "None" },
    { Code: "ConditionalCheckFailed", Message: "m", Item: { PK: { S: "x" } } },
  ],
  ThrottlingReasons: [{ reason: "TableWriteProvisionedThroughputExceeded", resource: "arn" }],
};

/** Errors of DynamoDB, and of the gateways before it. */
const NAMES = [
  "ConditionalCheckFailedException",
  "TransactionCanceledException",
  "TransactionConflictException",
  "TransactionInProgressException",
  "ThrottlingException",
  "ProvisionedThroughputExceededException",
  "RequestLimitExceeded",
  "LimitExceededException",
  "ValidationException",
  "SerializationException",
  "ItemCollectionSizeLimitExceededException",
  "ResourceNotFoundException",
  "AccessDeniedException",
  "ExpiredTokenException",
  "UnrecognizedClientException",
  "MissingAuthenticationTokenException",
  "IncompleteSignatureException",
  "InvalidSignatureException",
  "RequestTimeTooSkewed",
  "InternalServerError",
];

const ANSWERS: Readonly<Record<string, (outgoing: ServerResponse) => unknown>> = {
  "a message with a capital": (outgoing) =>
    reply(outgoing, { __type: "a#ValidationException", Message: "m" }, { status: 400 }),
  "a failed condition without its item": (outgoing) =>
    refuse(outgoing, "ConditionalCheckFailedException"),
  "an error named by a header": (outgoing) =>
    reply(
      outgoing,
      {},
      { status: 400, headers: { "x-amzn-errortype": "a#AccessDeniedException" } },
    ),
  "an error with an address": (outgoing) =>
    reply(outgoing, { __type: "ThrottlingException:http://internal/" }, { status: 400 }),
  "throttling of one key": (outgoing) =>
    refuse(outgoing, "ThrottlingException", {
      details: { throttlingReasons: [{ reason: "TableWriteKeyRangeThroughputExceeded" }] },
    }),
  "throttling of all": (outgoing) =>
    refuse(outgoing, "ThrottlingException", {
      details: { throttlingReasons: [{ reason: "TableWriteAccountLimitExceeded" }] },
    }),
  "an error with a code": (outgoing) =>
    reply(outgoing, { code: "ThrottlingException" }, { status: 400 }),
  "an error with a code and a type": (outgoing) =>
    reply(outgoing, { code: "Throttling", __type: "a#ValidationException" }, { status: 400 }),
  "an internal error": (outgoing) => refuse(outgoing, "InternalServerError", { status: 500 }),
  "an unavailable service": (outgoing) => refuse(outgoing, "ServiceUnavailable", { status: 503 }),
  "500 without a name": (outgoing) => reply(outgoing, {}, { status: 500 }),
  "400 without a name": (outgoing) => reply(outgoing, { message: "m" }, { status: 400 }),
  "400 with a list": (outgoing) => outgoing.writeHead(400).end('["odd"]'),
  "502 of a load balancer": (outgoing) => outgoing.writeHead(502).end("<html>Bad gateway</html>"),
  "504 with nothing": (outgoing) => outgoing.writeHead(504).end(),
  "429 in plain words": (outgoing) => outgoing.writeHead(429).end("slow down"),
  "403 of a proxy": (outgoing) => outgoing.writeHead(403).end("<html>Forbidden</html>"),
  "a redirection": (outgoing) => outgoing.writeHead(301, { location: "http://127.0.0.1:1/" }).end(),
  "a page to sign in": (outgoing) => outgoing.writeHead(200).end("<html>Please sign in</html>"),
  "half an output": (outgoing) => outgoing.writeHead(200).end('{"Attributes":{"PK"'),
  "an answer that breaks off": (outgoing) => {
    outgoing.writeHead(200, { "content-length": "100" }).write('{"Attributes":');
    outgoing.socket!.end();
  },
  "an answer that breaks off between two chunks": (outgoing) =>
    outgoing.writeHead(200).write('{"A":', () => outgoing.socket!.destroy()),
  "no answer": (outgoing) => outgoing.socket!.resetAndDestroy(),
  "no HTTP": (outgoing) => outgoing.socket!.end("SSH-2.0-OpenSSH_9.2\r\n"),
};

describe("both transports mean the same by", () => {
  it.each(NAMES)("%s", async (name) => {
    lean.server.answer = (outgoing) => refuse(outgoing, name, { details: DETAILS });
    const [ours, theirs] = await bothFail();
    expect(classifyError(ours)).toEqual(classifyError(theirs));
    expect([ours.name, ours.message]).toEqual([theirs.name, theirs.message]);
  });

  it.each(Object.keys(ANSWERS))("%s", async (title) => {
    lean.server.answer = ANSWERS[title]!;
    const [ours, theirs] = await bothFail();
    expect(classifyError(ours)).toEqual(classifyError(theirs));
  });

  it("an output", async () => {
    const output = {
      Attributes: {
        PK: { S: "Zoë 🙂" },
        list: { L: [{ N: "-1.5" }, { BOOL: true }, { NULL: true }] },
      },
    };
    lean.server.answer = (outgoing) => reply(outgoing, output);
    expect(await lean.call(await lean.open())).toEqual(output);
    expect(await lean.call(sdk)).toMatchObject(output);
  });
});

async function bothFail(): Promise<readonly [ours: Error, theirs: Error]> {
  return [await lean.failure(await lean.open()), await lean.failure(sdk)];
}
