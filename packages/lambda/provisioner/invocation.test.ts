import { expect, it } from "vitest";
import { MemoryRepository } from "zae-limiter/memory";
import { invoke, type InvocationContext } from "./invocation.ts";
import type { Provisioning } from "./resource.ts";

const EVENT = {
  RequestType: "Create",
  ResponseURL: "https://bucket.example.com/answer?signature=secret",
  StackId: "arn:aws:cloudformation:eu-west-1:123456789012:stack/app/1",
  RequestId: "request-1",
  LogicalResourceId: "Limits",
  ResourceProperties: {
    Manifest: `
namespace: default
system: {limits: {rpm: 100}}
entities: {acme: {metadata: {token: hidden}}}
`,
  },
};

/** A function, what it printed, and what it put where. */
class World {
  readonly repository = new MemoryRepository();
  readonly lines: string[] = [];
  readonly answers: { readonly url: string; readonly body: Readonly<Record<string, unknown>> }[] =
    [];
  status = 200;

  start(): Provisioning {
    return {
      tableName: "limits",
      open: async () => Object.assign(this.repository, { [Symbol.asyncDispose]: async () => {} }),
      sleep: async () => {},
    };
  }

  invoke(event: unknown): Promise<unknown> {
    const context: InvocationContext = {
      start: () => this.start(),
      sleep: async () => {},
      print: (line) => this.lines.push(line),
      put: async (url, body) => {
        this.answers.push({ url, body: JSON.parse(body) as Readonly<Record<string, unknown>> });
        return this.status;
      },
    };
    return invoke(event, context);
  }
}

it("answers where CloudFormation waits, and logs one line without properties or address", async () => {
  const world = new World();
  expect(await world.invoke(EVENT)).toBeUndefined();
  expect(world.answers).toEqual([
    { url: EVENT.ResponseURL, body: expect.objectContaining({ Status: "SUCCESS" }) as unknown },
  ]);
  expect(world.lines.map((line) => JSON.parse(line) as unknown)).toEqual([
    {
      level: "INFO",
      message: "Create: 2 created, 0 updated, 0 deleted, 0 unchanged",
      LogicalResourceId: "Limits",
      PhysicalResourceId: expect.stringContaining("limits/default/") as unknown,
      RequestId: "request-1",
      StackId: EVENT.StackId,
    },
  ]);
  expect(world.lines.join("\n")).not.toMatch(/secret|hidden/);
});

it("answers also what failed, and logs the whole reason", async () => {
  const world = new World();
  const wrong = Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`P${index}`, "x"]));
  await world.invoke({ ...EVENT, ResourceProperties: wrong });
  expect(world.answers.map(({ body }) => body["Status"])).toEqual(["FAILED"]);
  const { level, message } = JSON.parse(world.lines[0]!) as Readonly<Record<string, string>>;
  expect(level).toBe("ERROR");
  expect(message).toMatch(/^Create failed: Properties\.P0: is not .*Properties\.P199: is not/s);
});

it.each([
  ["Create", undefined, /^-\/-\/limits-provisioner\/[0-9a-f]{8}$/],
  ["Delete", "limits/default/limits-provisioner/00000000", /^limits\/default\//],
])("answers a %s also if its environment is wrong", async (RequestType, id, answered) => {
  const world = new World();
  world.start = () => {
    throw new Error("TABLE_NAME must be set.");
  };
  await world.invoke({
    ...EVENT,
    RequestType,
    ...(id !== undefined && { PhysicalResourceId: id }),
  });
  expect(world.answers.map(({ body }) => body)).toEqual([
    expect.objectContaining({
      Status: "FAILED",
      Reason: "TABLE_NAME must be set.",
      PhysicalResourceId: expect.stringMatching(answered) as unknown,
    }),
  ]);
  await expect(world.invoke({ action: "plan", manifest: "" })).rejects.toThrow("TABLE_NAME");
});

it("fails if the answer cannot be delivered, so that Lambda repeats it", async () => {
  const world = new World();
  world.status = 503;
  await expect(world.invoke(EVENT)).rejects.toThrow("did not take it: its status is 503");
});

it("plans and applies for direct callers", async () => {
  const world = new World();
  const manifest = "namespace: default\nsystem: {limits: {rpm: 100}}\n";
  expect(await world.invoke({ action: "plan", manifest })).toMatchObject({
    status: "planned",
    namespace: "default",
    revision: 0,
    changes: [{ action: "create", level: "system" }],
    unchanged: 0,
  });
  expect((await world.repository.getSystemDefaults()).limits).toEqual([]);
  const content = "system: {limits: {rpm: 100}}";
  const applied = { namespace: "default", status: "applied", created: 1 };
  expect(
    await world.invoke({ action: "apply", namespace: "default", manifest: content }),
  ).toMatchObject(applied);
  expect(await world.invoke({ action: "plan", manifest })).toMatchObject({
    changes: [],
    unchanged: 1,
  });
  expect([world.answers, world.lines]).toEqual([[], []]);
});

it.each([
  [{ action: "apply", manifest: "system: {}" }, "must name its namespace"],
  [{ action: "apply", manifest: { namespace: "a" } }, "must be a text"],
  [{ action: "apply", namespace: "b", manifest: "namespace: a" }, "differs from that at the event"],
  [{ action: "plan", manifest: "a: [" }, "manifest:1"],
  [{ action: "plan" }, "manifest"],
  [{ action: "plan", manifest: "", table_name: "t" }, "The event has table_name, which"],
])("refuses the direct call %j", async (event, message) => {
  await expect(new World().invoke(event)).rejects.toThrow(message);
});

it.each([
  null,
  "text",
  {},
  { action: "drop" },
  { ...EVENT, RequestType: "Read" },
  { ...EVENT, ResponseURL: undefined },
])("throws on the event %j", async (event) => {
  const world = new World();
  await expect(world.invoke(event)).rejects.toThrow("check what invokes this function");
  expect(world.answers).toEqual([]);
});
