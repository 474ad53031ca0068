import { describe, expect, it, vi } from "vitest";
import { createError, ScriptedTable } from "../../../test/support/scripted-table.ts";
import { IncompatibleSchemaError } from "../../core/errors.ts";
import { VERSION } from "../../core/version.ts";
import { DynamoStore } from "./dynamo-store.ts";
import { openNamespace } from "./open-namespace.ts";
import { openConnection } from "./opening/open-connection.ts";
import type { DynamoOptions } from "./opening/options.ts";
import type { StackOptions } from "./opening/stack-options.ts";
import { StackAccess, type StackTools } from "./opening/stack-tools.ts";
import type { DynamoTransport } from "./transport/transport.ts";
import { getString, type AttributeMap } from "./transport/attribute-values.ts";

/** The only name that the scripted table goes by. */
const stack = "table";
const place = { stack, region: "eu-west-1" };

/** A table that is missing until the stack is deployed, and what is asked of the tools. */
class World {
  readonly table = new ScriptedTable();
  readonly asked: unknown[] = [];
  readonly requested: string[] = [];
  readonly registered: string[] = [];
  readonly puts: object[] = [];
  isThere: boolean;

  constructor({ isThere = false }: { readonly isThere?: boolean } = {}) {
    this.isThere = isThere;
  }

  readonly tools: StackTools = {
    ensureStack: async (...given) => {
      this.asked.push(["ensureStack", ...given]);
      this.isThere = true;
    },
    updateLambda: async (...given) => this.asked.push(["updateLambda", ...given]),
    deleteStack: async () => expect.fail("opening deletes nothing"),
  };

  readonly transport: DynamoTransport = {
    call: async (operation, input) => {
      this.requested.push(operation);
      if (!this.isThere) throw createError("ResourceNotFoundException");
      if (operation === "PutItem") this.puts.push(input);
      if (operation === "TransactWriteItems") this.registered.push(...namesIn(input));
      return this.table.call(operation, input);
    },
    close: () => {},
  };

  /** Opens as `DynamoRepository.open` does, with the SDK's own client. */
  async open({
    stackOptions = {},
    load = async () => this.tools,
    registers = () => true,
    passedIn = {},
    ...options
  }: DynamoOptions & {
    readonly stackOptions?: StackOptions;
    readonly load?: () => Promise<StackTools>;
    readonly registers?: (name: string) => boolean;
    readonly passedIn?: Pick<DynamoOptions, "client" | "transport">;
  } = {}): Promise<string | undefined> {
    const { transport } = this;
    const opened = await openConnection("app", { transport, ...place, ...options });
    const { connection, resolved } = opened;
    const store = new DynamoStore({ ...resolved, connection, cacheTtlMs: 0, largestTickMs: 1 });
    const access = new StackAccess(passedIn, opened, load);
    return openNamespace({ ...opened, store, stack: access, stackOptions, registers });
  }
}

describe("a stack that is missing", () => {
  it("is deployed with its options, and gets the namespaces default and that of its creator", async () => {
    const world = new World();
    const stackOptions = { lambdaMemoryMb: 512 };
    expect(await world.open({ stackOptions })).toMatch(/./);
    expect(world.asked).toEqual([["ensureStack", place, stackOptions]]);
    expect(world.registered).toEqual(["default", "app"]);
  });

  it("is deployed for a builder too, which then registers the namespace that it was given", async () => {
    const world = new World();
    expect(await world.open({ registers: () => false })).toMatch(/./);
    expect(world.registered).toEqual(["default", "app"]);
  });

  it.each([
    { provisioning: "never" },
    { create: false },
    { create: false, provisioning: "stack" },
  ] as const)("is never deployed with %o, and nothing is written [W-67]", async (options) => {
    const world = new World();
    await expect(world.open(options)).rejects.toMatchObject({
      code: "ERR_LIMITER_INFRASTRUCTURE_NOT_FOUND",
      message: expect.stringContaining(
        "deploy the stack with zae-limiter deploy --stack table --region eu-west-1,",
      ),
    });
    expect(world).toMatchObject({ asked: [], requested: ["BatchGetItem"] });
  });

  it.each(["client", "transport"] as const)(
    "is not deployed for a %s that was passed in: its account may be another",
    async (kind) => {
      const world = new World();
      const opening = world.open({ passedIn: { [kind]: {} } });
      await expect(opening).rejects.toMatchObject({ code: "ERR_LIMITER_INFRASTRUCTURE_NOT_FOUND" });
      expect(world.asked).toEqual([]);
    },
  );

  it("has one instruction without the package that deploys: command line, URL and code", async () => {
    const missing = Object.assign(new Error("Cannot find package '@zae-limiter/infra'"), {
      code: "ERR_MODULE_NOT_FOUND",
    });
    const opening = new World().open({ load: async () => Promise.reject(missing) });
    await expect(opening).rejects.toMatchObject({
      code: "ERR_LIMITER_INFRA_MISSING",
      message:
        "Neither a stack nor a table table exists in eu-west-1 (or it is not ready), and @zae-limiter/infra, which deploys stacks, is not installed: npm install @zae-limiter/infra, " +
        "or deploy the stack with zae-limiter deploy --stack table --region eu-west-1, " +
        "or create only the table with the URL dynamodb://eu-west-1/table?provisioning=table, " +
        'or in code with DynamoRepository.open("app", { stack: "table", provisioning: "table" }).',
      cause: missing,
    });
  });

  it("passes on what went wrong, and registers nothing", async () => {
    const world = new World();
    vi.spyOn(world.tools, "ensureStack").mockRejectedValue(new Error("rolled back"));
    await expect(world.open()).rejects.toThrow("rolled back");
    expect(world.requested).toEqual(["BatchGetItem"]);
  });

  it("is to be deleted if it exists, and only its table is missing", async () => {
    const world = new World();
    vi.spyOn(world.tools, "ensureStack").mockResolvedValue(undefined);
    await expect(world.open()).rejects.toMatchObject({
      code: "ERR_LIMITER_INFRASTRUCTURE_NOT_FOUND",
      message:
        "Stack table exists, but its table does not: delete it with zae-limiter delete --stack table --region eu-west-1, and open it again.",
    });
  });

  it("is reached at the address that the repository has", async () => {
    const world = new World();
    const endpointUrl = "http://127.0.0.1:1";
    await world.open({ endpointUrl, provisioning: "stack" });
    expect(world.asked).toEqual([["ensureStack", { ...place, endpointUrl }, {}]]);
  });
});

describe("a table that exists", () => {
  it("is opened without asking about a stack, in as many requests as ever", async () => {
    const world = new World({ isThere: true });
    await world.open({
      load: () => expect.fail("it was loaded"),
      stackOptions: { enableAlarms: true },
    });
    expect(world.registered).toEqual(["app"]);
    // Version and heartbeat; whether it is new; the namespace, looked up; the first version record;
    // the namespace, registered.
    expect(world.requested).toEqual([
      "BatchGetItem",
      "BatchGetItem",
      "BatchGetItem",
      "PutItem",
      "TransactWriteItems",
    ]);
  });

  it("is not taken for new when it has namespaces, and nothing is written", async () => {
    const world = new World({ isThere: true });
    const key = { PK: { S: "_/SYSTEM#" }, SK: { S: "#NAMESPACE#default" } };
    world.table.put({ ...key, namespace_id: { S: "python" }, status: { S: "active" } });
    for (const provisioning of ["never", "stack"] as const)
      await expect(world.open({ provisioning })).rejects.toThrow(IncompatibleSchemaError);
    expect(new Set(world.requested)).toEqual(new Set(["BatchGetItem"]));
  });

  it("is opened although another process opens it for the first time meanwhile", async () => {
    const world = new World({ isThere: true });
    const { table } = world;
    const call = table.call.bind(table);
    table.call = async (operation, input) => {
      const answer = await call(operation, input);
      // After the first look, the other one writes its version, and registers the namespace.
      table.put(versionItem(undefined));
      const key = { PK: { S: "_/SYSTEM#" }, SK: { S: "#NAMESPACE#app" } };
      table.put({ ...key, namespace_id: { S: "theirs" }, status: { S: "active" } });
      return answer;
    };
    expect(await world.open({ provisioning: "never" })).toBe("theirs");
  });

  it("keeps the version record that a deployment wrote meanwhile", async () => {
    const world = new World({ isThere: true });
    const { table } = world;
    // It arrives after the first look, and before this process writes its own.
    const before = (): void => table.put(versionItem("9.9.9"));
    table.faults.push({ before });
    await world.open();
    const looks = ["BatchGetItem", "BatchGetItem", "BatchGetItem"];
    expect(table.operations.slice(0, 4)).toEqual([...looks, "PutItem"]);
    expect(versionIn(table)).toBe("9.9.9");
    expect(world.puts).toEqual([
      expect.objectContaining({
        ConditionExpression: expect.stringMatching(/^attribute_not_exists/),
      }),
    ]);
  });
});

describe("the Lambda of a stack", () => {
  it.each([
    ["older than this library", "0.0.1", { updateLambda: true }, true],
    ["older, and it is not asked for [W-74]", "0.0.1", { lambda: "ignore" as const }, false],
    ["as new as this library", VERSION, { updateLambda: true }, false],
    ["newer", "99.0.0", { updateLambda: true }, false],
    ["missing", undefined, { updateLambda: true }, false],
  ])("that is %s (%s) with %o is updated: %s", async (_, lambdaVersion, options, isUpdated) => {
    const world = new World({ isThere: true });
    world.table.put(versionItem(lambdaVersion));
    await world.open(options);
    expect(world.asked).toEqual(isUpdated ? [["updateLambda", place]] : []);
  });

  it("is not updated with other credentials than the caller's", async () => {
    const world = new World({ isThere: true });
    world.table.put(versionItem("0.0.1"));
    const opening = world.open({ updateLambda: true, passedIn: { client: {} as never } });
    await expect(opening).rejects.toThrow(
      "Invalid client: its credentials may be of another account than those that stacks are managed with",
    );
    expect(world.asked).toEqual([]);
  });

  it.each([{ provisioning: "never" }, { create: false }] as const)(
    "cannot be updated with %o",
    async (options) => {
      await expect(new World().open({ ...options, updateLambda: true })).rejects.toThrow(
        "Invalid updateLambda",
      );
    },
  );
});

/** The names of the namespaces that a transaction registers. */
function namesIn(input: object): readonly string[] {
  const { TransactItems: items } = input as {
    readonly TransactItems: readonly { readonly Put?: { readonly Item: AttributeMap } }[];
  };
  return items
    .map(({ Put }) => getString(Put?.Item["SK"]) ?? "")
    .flatMap((key) => /^#NAMESPACE#(.+)$/.exec(key)?.[1] ?? []);
}

function versionItem(lambdaVersion: string | undefined): AttributeMap {
  return {
    PK: { S: "_/SYSTEM#" },
    SK: { S: "#VERSION" },
    schema_version: { S: "1.0.0" },
    client_min_version: { S: "0.0.0" },
    ...(lambdaVersion !== undefined && { lambda_version: { S: lambdaVersion } }),
  };
}

function versionIn(table: ScriptedTable): string | undefined {
  const record = [...table.items.values()].find(({ SK }) => getString(SK) === "#VERSION");
  return getString(record?.["lambda_version"]);
}
