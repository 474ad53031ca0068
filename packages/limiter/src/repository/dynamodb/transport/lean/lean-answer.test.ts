import { crc32 } from "node:zlib";
import { describe, expect, it, vi } from "vitest";
import { useLeanCalls } from "../../../../../test/support/lean-calls.ts";
import { refuse, reply } from "../../../../../test/support/scripted-server.ts";

import { classifyError } from "../failure.ts";

const lean = useLeanCalls();

describe("an answer", () => {
  it("of a success is the output", async () => {
    const transport = await lean.open();
    lean.server.answer = (outgoing) => reply(outgoing, { Attributes: { PK: { S: "ü" } } });
    expect(await lean.call(transport)).toEqual({ Attributes: { PK: { S: "ü" } } });
  });

  it("of a failed condition is an error with the item, and without a stack", async () => {
    const transport = await lean.open();
    lean.server.answer = (outgoing) =>
      refuse(outgoing, "ConditionalCheckFailedException", {
        details: { Item: { PK: { S: "x" } } },
      });
    const error = await lean.failure(transport);
    expect(error).toMatchObject({
      name: "ConditionalCheckFailedException",
      $metadata: { httpStatusCode: 400 },
    });
    expect(error.stack).not.toContain("\n");
    expect(classifyError(error)).toEqual({ kind: "condition", item: { PK: { S: "x" } } });
  });

  it("of an error is named by what comes before a colon, or by its header", async () => {
    const transport = await lean.open();
    lean.server.answer = (outgoing) =>
      reply(outgoing, { __type: "ThrottlingException:http://internal/" }, { status: 400 });
    const error = await lean.failure(transport);
    expect(error.name).toBe("ThrottlingException");
    expect(error).not.toHaveProperty("Item");
    lean.server.answer = (outgoing) =>
      reply(
        outgoing,
        {},
        { status: 400, headers: { "x-amzn-errortype": "a#AccessDeniedException" } },
      );
    expect((await lean.failure(transport)).name).toBe("AccessDeniedException");
  });

  it("of an error with a name or a message of any length is cut, so that no log has to carry it", async () => {
    const transport = await lean.open();
    const long = "x".repeat(100_000);
    lean.server.answer = (outgoing) =>
      reply(outgoing, { __type: `a#${long}`, message: long }, { status: 400 });
    const error = await lean.failure(transport);
    expect(error.name).toBe(`${"x".repeat(100)}…`);
    expect(error.message).toBe(`${"x".repeat(1000)}…`);
    lean.server.answer = (outgoing) => reply(outgoing, { __type: long }, { status: 400 });
    expect((await lean.failure(transport)).message).toHaveLength(1001);
  });

  it.each([
    [502, "<html>Bad gateway</html>", { kind: "unavailable", ambiguous: true }],
    [504, "", { kind: "unavailable", ambiguous: true }],
    [429, "slow down", { kind: "unavailable", ambiguous: false, throttled: true }],
    [403, "<html>Forbidden by a proxy</html>", { kind: "rejected" }],
    [400, '["odd"]', { kind: "rejected" }],
    [400, '{"__type":7,"message":[]}', { kind: "rejected" }],
    [200, "<html>Please sign in</html>", { kind: "unavailable", ambiguous: true }],
    [200, '{"Attributes":{"PK"', { kind: "unavailable", ambiguous: true }],
    [200, "null", { kind: "unavailable", ambiguous: true }],
  ])("of a proxy (%i %j) means what its status means", async (status, body, meaning) => {
    const transport = await lean.open();
    lean.server.answer = (outgoing) => outgoing.writeHead(status).end(body);
    expect(classifyError(await lean.failure(transport))).toMatchObject(meaning);
  });

  it("is accepted only with a correct checksum", async () => {
    const transport = await lean.open();
    const body = JSON.stringify({ Attributes: {} });
    lean.server.answer = (outgoing) =>
      reply(outgoing, { Attributes: {} }, { headers: { "x-amz-crc32": String(crc32(body)) } });
    expect(await lean.call(transport)).toEqual({ Attributes: {} });
    lean.server.answer = (outgoing) =>
      reply(outgoing, { Attributes: {} }, { headers: { "x-amz-crc32": String(crc32(body) - 1) } });
    expect(classifyError(await lean.failure(transport))).toMatchObject({
      kind: "unavailable",
      ambiguous: true,
    });
    lean.server.answer = (outgoing) =>
      refuse(outgoing, "ConditionalCheckFailedException", { headers: { "x-amz-crc32": "1" } });
    expect(classifyError(await lean.failure(transport))).toMatchObject({
      kind: "unavailable",
      ambiguous: true,
    });
  });

  it("that never ends is not collected without bound", async () => {
    const transport = await lean.open();
    const chunk = Buffer.alloc(1024 * 1024, " ");
    lean.server.answer = (outgoing) => {
      const pour = (): void => void (outgoing.destroyed || outgoing.write(chunk, pour));
      pour();
    };
    const error = await lean.failure(transport);
    expect(error.message).toContain("more than 67108864 bytes");
    await vi.waitFor(() => expect(lean.server.sockets.size).toBe(0));
  });
});
