import { afterEach, beforeEach, expect, it, vi } from "vitest";
import {
  HeldRequests,
  buildItem,
  turn,
  getUpdate,
} from "../../../../test/support/held-requests.ts";
import { createError } from "../../../../test/support/scripted-table.ts";
import { TableUnavailable } from "./table-errors.ts";

const SHARED = "BatchExecuteStatement";
const warned = vi.fn<(message: string | Error, options: unknown) => void>();
let table: HeldRequests;

beforeEach(() => {
  table = new HeldRequests();
  warned.mockReset();
  vi.spyOn(process, "emitWarning").mockImplementation(warned);
});
afterEach(() => void vi.restoreAllMocks());

it.each(["UnknownOperationException", "AccessDeniedException"])(
  "after %s the writes go alone; that is remembered and reported once",
  async (name) => {
    const replies = Promise.all(["a", "b", "c"].map((entity) => table.send(entity)));
    await turn();
    table.sent[0]!.reject(createError(name, { message: "said" }));
    await turn();
    expect(table.texts(1)).toEqual(["UpdateItem a", "UpdateItem b", "UpdateItem c"]);
    expect(warned.mock.calls).toEqual([]);
    for (const number of [1, 2, 3]) await table.apply(number);
    expect(await replies).toMatchObject(times(3, { applied: true }));
    await expectNotShared(new RegExp(`\\(${name}: said\\)`));
  },
);

it("a denied statement goes alone; sharing ends when that is allowed", async () => {
  const outcomes = Promise.allSettled([table.send("foreign"), table.send("a")]);
  await turn();
  const Error = { Code: "AccessDenied", Message: "no PartiQLUpdate" };
  await table.reply(0, { Error }, { Error });
  expect(table.texts(1)).toEqual(["UpdateItem foreign", "UpdateItem a"]);
  table.sent[1]!.reject(createError("AccessDeniedException"));
  await turn();
  // Nothing may be written there: sharing is not the reason.
  expect(warned.mock.calls).toEqual([]);
  await table.sendAll("b", "c");
  expect(table.texts(3)).toEqual([`${SHARED} b c`]);
  await table.apply(2);
  await expectNotShared(/\(AccessDenied: no PartiQLUpdate\)/);
  expect(await outcomes).toMatchObject([
    { reason: { code: "ERR_LIMITER_PERMISSION_DENIED" } },
    { value: { applied: true } },
  ]);
});

it.each([
  ["ValidationException", 400],
  ["Not Found", 404],
  ["Method Not Allowed", 405],
  ["Not Implemented", 501],
])("after %s (%s) the outcome of each write is unknown, and sharing ends", async (name, code) => {
  const outcomes = Promise.allSettled([table.send("a"), table.send("b")]);
  await turn();
  table.sent[0]!.reject(createError(name, { $metadata: { httpStatusCode: code } }));
  for (const outcome of await outcomes) {
    expect(outcome).toMatchObject({ reason: { ambiguous: true } });
    expect((outcome as PromiseRejectedResult).reason).toBeInstanceOf(TableUnavailable);
  }
  await expectNotShared(new RegExp(name));
});

const failedAs = (entity: string): object => ({
  Error: { Code: "ConditionalCheckFailed", Item: buildItem(entity) },
});
const unseen = { Error: { Code: "ConditionalCheckFailed" } };

it.each<[string, readonly object[]]>([
  [
    "the items of others",
    [{ Item: buildItem("b") }, { Item: buildItem("a") }, { Item: buildItem("c") }],
  ],
  ["an item twice", [{ Item: buildItem("a") }, { Item: buildItem("b") }, { Item: buildItem("b") }]],
  ["what another wrote", [{ Item: { o1: { S: "2" } } }, { Item: { o1: { S: "1" } } }, {}]],
  ["items of others that were not changed", [failedAs("b"), failedAs("a"), failedAs("c")]],
  ["an item that another condition hides", [unseen, { Item: buildItem("a") }, unseen]],
])("after replies that show %s each outcome is unknown, and sharing ends", async (_, replies) => {
  const outcomes = Promise.allSettled(["a", "b", "c"].map((entity) => table.send(entity)));
  await turn();
  await table.reply(0, ...replies);
  for (const outcome of await outcomes)
    expect(outcome).toMatchObject({ reason: { ambiguous: true, throttled: false } });
  expect(table.sent).toHaveLength(1);
  await expectNotShared(/its replies are not in the order of the statements/);
});

it("a server that is only away for a while is asked again", async () => {
  await table.sendAll("a", "b");
  table.sent[0]!.reject(createError("ServiceUnavailable", { $metadata: { httpStatusCode: 503 } }));
  await table.sendAll("a", "b");
  expect(table.texts(1)).toEqual([`${SHARED} a b`]);
  expect(warned.mock.calls).toEqual([]);
});

it("sharing ends after 50 invalid statements before the first valid one", async () => {
  const Error = { Code: "ValidationError", Message: "no such syntax" };
  await table.sendAll(...names(25));
  await table.reply(0, ...times(25, { Error }));
  await table.sendAll(...names(24, "other"));
  const second = table.texts().findIndex((text) => text.startsWith(`${SHARED} other`));
  await table.reply(second, ...times(24, { Error }));
  expect(warned.mock.calls).toEqual([]);
  await table.sendAll("y-1", "y-2");
  await table.reply(-1, { Error }, { Error });
  await expectNotShared(/\(ValidationError: no such syntax\)/);
});

it("some invalid statements are not enough, if others were understood", async () => {
  const Error = { Code: "ValidationError", Message: "no such attribute" };
  await table.sendAll("a", "b");
  await table.reply(0, { Error: { Code: "ConditionalCheckFailed", Item: {} } }, { Error });
  for (const kind of ["m", "n", "o"]) {
    await table.sendAll(...names(25, kind));
    const number = table.texts().findIndex((text) => text.startsWith(`${SHARED} ${kind}`));
    await table.reply(number, ...times(25, { Error }));
  }
  const since = table.sent.length;
  await table.sendAll("c", "d");
  expect(table.texts(since)).toEqual([`${SHARED} c d`]);
  expect(warned.mock.calls).toEqual([]);
});

it.each([
  ["go alone after one was invalid, and valid alone", "Unexpected token", undefined, true],
  ["go on sharing after one was invalid alone too", "too large", "ValidationException", false],
  [
    "go on sharing where an attribute is missing",
    "attribute that does not exist",
    undefined,
    false,
  ],
])("sums with quoted names %s", async (_, message, aloneError, areAlone) => {
  const sendAll = async (...entities: readonly string[]): Promise<void> => {
    for (const entity of entities) table.send(buildQuotedUpdate(entity)).catch(() => {});
    await table.sendAll("plain-1", "plain-2");
  };
  await sendAll("a");
  const plain = [{ Item: buildItem("plain-1") }, { Item: buildItem("plain-2") }];
  await table.reply(0, { Error: { Code: "ValidationError", Message: message } }, ...plain);
  if (aloneError === undefined) await table.apply(1);
  else table.sent[1]!.reject(createError(aloneError));
  await turn();
  await sendAll("b", "c");
  expect(table.texts(2)).toEqual(
    areAlone
      ? ["UpdateItem b", "UpdateItem c", `${SHARED} plain-1 plain-2`]
      : [`${SHARED} b c plain-1 plain-2`],
  );
});

it("what waits when sharing ends goes alone too", async () => {
  table = new HeldRequests({ maxRequests: 1 });
  await table.sendAll("a", "b");
  await table.sendAll("c", "d", "e");
  table.sent[0]!.reject(createError("ValidationException"));
  await turn();
  expect(table.texts(1)).toEqual(["UpdateItem c", "UpdateItem d", "UpdateItem e"]);
});

/** Expects that the next writes go alone, and that this was reported once, with the reason. */
async function expectNotShared(why: RegExp): Promise<void> {
  const since = table.sent.length;
  await table.sendAll("x", "z");
  expect(table.texts(since)).toEqual(["UpdateItem x", "UpdateItem z"]);
  expect(warned.mock.calls).toEqual([
    [expect.stringMatching(why), { code: "WARN_LIMITER_REQUESTS_NOT_SHARED" }],
  ]);
  expect(warned.mock.calls[0]![0]).toMatch(/ table limits \(.*shareRequests: false\.$/);
}

/** An update of a limit whose name has a dash. */
function buildQuotedUpdate(entity: string): ReturnType<typeof getUpdate> {
  return {
    ...getUpdate(entity),
    statement: (tableName) => ({
      ...getUpdate(entity).statement(tableName)!,
      Statement: `UPDATE "${tableName}" SET "in-put"="in-put"+? WHERE "PK"=? AND "SK"=?`,
    }),
  };
}

function names(count: number, name = "e"): readonly string[] {
  return Array.from({ length: count }, (_, index) => `${name}-${index}`);
}

function times<Value extends object>(count: number, value: Value): readonly Value[] {
  return Array.from({ length: count }, () => value);
}
