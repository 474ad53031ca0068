import { beforeEach, describe, expect, it } from "vitest";
import {
  HeldRequests,
  inexpressible,
  buildItem,
  turn,
  getUpdate,
  type HeldRequest,
} from "../../../../test/support/held-requests.ts";
import { createError } from "../../../../test/support/scripted-table.ts";

const SHARED = "BatchExecuteStatement";
let table: HeldRequests;

beforeEach(() => {
  table = new HeldRequests();
});

describe("writes that are ready at the same time", () => {
  it("go together; one that is alone stays an UpdateItem, and waits for nothing", async () => {
    await table.sendAll("a");
    await table.sendAll("b", "c");
    expect(table.texts()).toEqual(["UpdateItem a", `${SHARED} b c`]);
    const [{ input }] = table.sent as [HeldRequest];
    expect(input).toEqual(getUpdate("a").input("limits"));
  });

  it("go together when they become ready one after another in one turn", async () => {
    const sending = table.send("a");
    await Promise.resolve();
    void Promise.resolve().then(() => table.send("b"));
    expect(table.sent).toEqual([]);
    await turn();
    expect(table.texts()).toEqual([`${SHARED} a b`]);
    await table.apply(0);
    expect(await sending).toEqual({ applied: true, output: { Attributes: buildItem("a") } });
  });

  it("are statements that ask for the item, also where the condition fails", async () => {
    await table.sendAll("a", "b");
    expect(table.sent[0]!.input).toEqual({
      Statements: ["a", "b"].map((entity) => getUpdate(entity).statement("limits")),
    });
  });

  it("are at most 25 in a request", async () => {
    await table.sendAll(...names(60));
    expect(table.sent.map(({ entities }) => entities.length)).toEqual([25, 25]);
    await table.apply(0);
    expect(table.sent.map(({ entities }) => entities.length)).toEqual([25, 25, 10]);
    expect(table.sent.flatMap(({ entities }) => entities)).toEqual(names(60));
  });

  it("are never two of one item in a request", async () => {
    await table.sendAll("a", "b", "a", "a", "c");
    expect(table.texts()).toEqual([`${SHARED} a b c`, "UpdateItem a"]);
    await table.apply(1);
    expect(table.texts(2)).toEqual(["UpdateItem a"]);
  });

  it("leave one alone that PartiQL cannot express", async () => {
    for (const write of ["a", inexpressible("odd"), "b"]) void table.send(write);
    await turn();
    expect(table.texts()).toEqual(["UpdateItem odd", `${SHARED} a b`]);
  });

  it("are single writes where only one of them can be a statement", async () => {
    const replies = [table.send(inexpressible("odd")), table.send("a")];
    await turn();
    expect(table.texts()).toEqual(["UpdateItem odd", "UpdateItem a"]);
    await table.apply(0);
    await table.apply(1);
    expect(await Promise.all(replies)).toMatchObject([{ applied: true }, { applied: true }]);
  });

  it("do not take retries and creations with them, which go at once", async () => {
    void table.send("a");
    void table.send("b", { isRetry: true });
    void table.send({ ...inexpressible("new"), operation: "PutItem" });
    expect(table.sent.map(({ operation }) => operation)).toEqual(["UpdateItem", "PutItem"]);
    await turn();
    expect(table.texts(2)).toEqual(["UpdateItem a"]);
  });

  it("go alone, and at once, when sharing is switched off", () => {
    table = new HeldRequests({ isOn: false });
    void table.send("a");
    void table.send("b");
    expect(table.texts()).toEqual(["UpdateItem a", "UpdateItem b"]);
  });
});

describe("while as many requests are under way as may be", () => {
  it("what becomes ready goes with the next one that returns, in order", async () => {
    await table.sendAll("a");
    await table.sendAll("b");
    await table.sendAll("c");
    await table.sendAll("d", "e");
    expect(table.texts()).toEqual(["UpdateItem a", "UpdateItem b"]);
    await table.apply(1);
    expect(table.texts(2)).toEqual([`${SHARED} c d e`]);
    await table.sendAll("f");
    expect(table.sent).toHaveLength(3);
    table.sent[0]!.reject(createError("InternalServerError"));
    await turn();
    expect(table.texts(3)).toEqual(["UpdateItem f"]);
  });

  it("nothing waits for long: requests may be slow, or never return", async () => {
    for (const entity of ["a", "b", "c"]) await table.sendAll(entity);
    await table.clock.advance(30);
    await table.sendAll("d", "e");
    await table.clock.advance(19);
    expect(table.texts()).toEqual(["UpdateItem a", "UpdateItem b"]);
    await table.clock.advance(1);
    expect(table.texts(2)).toEqual([`${SHARED} c d e`]);
    await table.sendAll("f");
    await table.clock.advance(49);
    expect(table.sent).toHaveLength(3);
    await table.clock.advance(1);
    expect(table.texts(3)).toEqual(["UpdateItem f"]);
  });

  it("nothing waits for long however many wait, and however slow all have become", async () => {
    for (let requests = 0; requests < 20; requests += 1) {
      await table.sendAll(`slow-${requests}`);
      await table.clock.advance(2000);
      table.sent.at(-1)!.reject(createError("TimeoutError"));
      await turn();
    }
    await table.clock.advance(2000);
    const since = table.sent.length;
    await table.sendAll(...names(200));
    expect(table.sent).toHaveLength(since + 2);
    await table.clock.advance(50);
    expect(table.sent.slice(since).flatMap(({ entities }) => entities)).toEqual(names(200));
  });

  it("a busy process does not send more: what has come since is not sent early", async () => {
    await table.sendAll("a");
    await table.sendAll("b");
    await table.sendAll("c");
    await table.clock.advance(40);
    await table.apply(0);
    await table.sendAll("d");
    await table.clock.advance(10);
    expect(table.texts(1)).toEqual(["UpdateItem b", "UpdateItem c"]);
    await table.clock.advance(50);
    expect(table.texts(3)).toEqual(["UpdateItem d"]);
  });

  it("writes that cannot be made up fail, and hold up no others", async () => {
    const broken = {
      ...getUpdate("broken"),
      statement: () => {
        throw new TypeError("a bug");
      },
    };
    const outcomes = await Promise.allSettled([table.send(broken), table.send("a")]);
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    await table.sendAll("c", "d");
    expect(table.texts()).toEqual([`${SHARED} c d`]);
  });
});

describe("each statement of a shared request has its own outcome", () => {
  it("one by one", async () => {
    const entities = ["applied", "bare", "failed", "throttled", "invalid", "conflict", "internal"];
    const replies = entities.map((entity) => table.send(entity));
    const settled = Promise.allSettled(replies);
    await turn();
    await table.reply(
      0,
      { Item: buildItem("applied") },
      {},
      { Error: { Code: "ConditionalCheckFailed", Item: buildItem("failed") } },
      { Error: { Code: "ProvisionedThroughputExceeded" } },
      { Error: { Code: "ValidationError" } },
      { Error: { Code: "TransactionConflict" } },
      { Error: { Code: "InternalServerError" } },
    );
    expect(table.texts(1)).toEqual(["UpdateItem throttled", "UpdateItem invalid"]);
    expect(table.connection.retries).toBe(2);
    table.sent[1]!.reject(
      createError("ConditionalCheckFailedException", { Item: buildItem("throttled") }),
    );
    await table.apply(2);
    const [applied, bare, failed, throttled, invalid, conflict, internal] = await settled;
    expect([applied, failed, throttled, invalid]).toEqual(
      [
        { applied: true, output: { Attributes: buildItem("applied") } },
        { applied: false, item: buildItem("failed") },
        { applied: false, item: buildItem("throttled") },
        { applied: true, output: { Attributes: buildItem("invalid") } },
      ].map((value) => ({ status: "fulfilled", value })),
    );
    expect([conflict, internal, bare]).toMatchObject([
      { reason: { ambiguous: false, throttled: false } },
      { reason: { ambiguous: true } },
      { reason: { ambiguous: true } },
    ]);
  });

  it("those whose condition failed and whose item is not shown are read, in one request", async () => {
    const replies = ["a", "b", "c"].map((entity) => table.send(entity));
    await turn();
    const Error = { Code: "ConditionalCheckFailed", Message: "The conditional request failed" };
    await table.reply(0, { Error }, { Item: buildItem("b") }, { Error });
    expect(table.texts(1)).toEqual(["BatchGetItem a c"]);
    table.sent[1]!.resolve({ Responses: { limits: [buildItem("c")] } });
    expect(await Promise.all(replies)).toEqual([
      { applied: false, item: undefined },
      { applied: true, output: { Attributes: buildItem("b") } },
      { applied: false, item: buildItem("c") },
    ]);
  });

  it("one whose condition failed was not applied, also if its item cannot be read", async () => {
    const outcomes = Promise.allSettled([table.send("a"), table.send("b")]);
    await turn();
    await table.reply(0, { Error: { Code: "ConditionalCheckFailed" } }, { Item: buildItem("b") });
    // All attempts at the read.
    for (const number of [1, 2, 3]) {
      table.sent[number]!.reject(createError("InternalServerError"));
      await table.clock.advance(1000);
    }
    expect((await outcomes)[0]).toMatchObject({ reason: { ambiguous: false, throttled: false } });
  });

  it.each<[string, object]>([
    ["fewer places", { Responses: [{ Item: buildItem("b") }] }],
    ["more places", { Responses: ["a", "b", "c"].map((entity) => ({ Item: buildItem(entity) })) }],
    ["no places", {}],
    ["nothing for its places", { Responses: null }],
    ["nothing in its places", { Responses: [null, null] }],
  ])("all are unknown when the reply has %s", async (_, reply) => {
    const outcomes = Promise.allSettled([table.send("a"), table.send("b")]);
    await turn();
    table.sent[0]!.resolve(reply);
    for (const outcome of await outcomes)
      expect(outcome).toMatchObject({ reason: { ambiguous: true } });
    expect(table.sent).toHaveLength(1);
  });

  it.each([
    ["ThrottlingException", { throttled: true, tableWide: true, ambiguous: false }],
    ["InternalServerError", { throttled: false, ambiguous: true }],
    ["TimeoutError", { timedOut: true, ambiguous: true }],
  ])("all have that of the request when it fails as a whole by %s", async (name, facts) => {
    const outcomes = Promise.allSettled([table.send("a"), table.send("b")]);
    await turn();
    table.sent[0]!.reject(createError(name));
    for (const outcome of await outcomes) expect(outcome).toMatchObject({ reason: facts });
    await table.sendAll("c", "d");
    expect(table.texts(1)).toEqual([`${SHARED} c d`]);
  });
});

describe("a bucket leaves the shared requests", () => {
  it.each(["ThrottlingError", "ValidationError", "TransactionConflict", "InternalServerError"])(
    "for two seconds after %s, however quick it is alone",
    async (Code) => {
      await table.sendAll("bad", "a");
      await table.reply(0, { Error: { Code } }, { Item: buildItem("a") });
      if (table.sent.length > 1)
        table.sent[1]!.reject(
          createError("ConditionalCheckFailedException", { Item: buildItem("bad") }),
        );
      const since = table.sent.length;
      await table.sendAll("bad", "a", "b");
      expect(table.texts(since)).toEqual(["UpdateItem bad", `${SHARED} a b`]);
      await table.apply(since);
      await table.apply(since + 1);
      await table.clock.advance(2000);
      await table.sendAll("bad", "a", "b");
      expect(table.texts(since + 2)).toEqual([`${SHARED} bad a b`]);
    },
  );

  it("when it is throttled alone, but not with the whole table", async () => {
    await table.sendAll("hot");
    await table.sendAll("cold");
    table.sent[0]!.reject(createError("ThrottlingException"));
    const throttlingReasons = [{ reason: "TableWriteProvisionedThroughputExceeded" }];
    table.sent[1]!.reject(createError("ThrottlingException", { throttlingReasons }));
    await turn();
    await table.sendAll("hot", "cold", "a");
    expect(table.texts(2)).toEqual(["UpdateItem hot", `${SHARED} cold a`]);
  });

  it("for longer when it fails alone, and not when the clock is set back", async () => {
    await table.sendAll("hot");
    table.sent[0]!.reject(createError("ThrottlingException"));
    await turn();
    await table.clock.advance(1900);
    await table.sendAll("hot");
    table.sent[1]!.reject(createError("Error", { code: "ECONNRESET" }));
    await turn();
    await table.clock.advance(1900);
    await table.sendAll("hot", "a", "b");
    expect(table.texts(2)).toEqual(["UpdateItem hot", `${SHARED} a b`]);
    table.clock.set(table.clock.now() - 3000);
    await table.sendAll("hot", "c", "d");
    expect(table.texts(4)).toEqual([`${SHARED} hot c d`]);
  });
});

function names(count: number, name = "e"): readonly string[] {
  return Array.from({ length: count }, (_, index) => `${name}-${index}`);
}
