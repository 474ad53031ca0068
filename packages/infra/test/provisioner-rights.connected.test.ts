// The requests of the provisioner, recorded on an engine, and judged by the rights of its role.
import { DynamoRepository, type DynamoTransport } from "zae-limiter/dynamodb";
import { afterAll, beforeAll, expect, it } from "vitest";
import { changeResource } from "../../lambda/provisioner/resource.ts";
import { describeWithEngine, freshTableName } from "../../limiter/test/support/engine.ts";
import { openTransport } from "../../limiter/test/support/transports.ts";
import { provisionerStatements, type PolicyStatement } from "../src/index.ts";
import { CallRecorder } from "./support/iam/call-recorder.ts";
import type { IamCall } from "./support/iam/iam-calls.ts";
import { PolicyJudge, TABLE_ARN } from "./support/iam/policy-judge.ts";

const STATEMENTS = provisionerStatements(TABLE_ARN);
const judge = new PolicyJudge({ policies: [{ Version: "2012-10-17", Statement: STATEMENTS }] });

it("it has no rights on balances and past audit events, nor on the table, its indexes and its stream", async () => {
  const own = "ownownownow";
  const writes = ["PutItem", "UpdateItem", "PartiQLUpdate", "DeleteItem"];
  const actions = ["GetItem", "BatchGetItem", ...writes];
  const calls: readonly IamCall[] = [
    ...actions.map((name) => call(name, [`${own}/BUCKET#key-1#gpt-4#0`])),
    ...actions
      .filter((name) => name !== "PutItem")
      .map((name) => call(name, [`${own}/AUDIT#key-1`])),
    call("Scan", []),
    call("Query", [`${own}/ENTITY#name`]),
    call("Query", [`${own}/ENTITY#name`], "index/GSI3"),
    call("DescribeTable", []),
    call("DeleteTable", []),
    call("GetRecords", [], "stream/label"),
    call("BatchWriteItem", [`${own}/ENTITY#name`]),
  ];
  expect(await judge.allowed(calls)).toEqual([]);
});

describeWithEngine("the rights of the provisioner", (engine) => {
  const recorder = new CallRecorder();
  const tableName = freshTableName();
  let transport: DynamoTransport;
  let operator: DynamoRepository;

  beforeAll(async () => {
    transport = await openTransport("lean", engine());
    const place = { stack: tableName, transport, requestTimeoutMs: 10_000 };
    operator = await DynamoRepository.open("default", { ...place, provisioning: "table" });
    // A namespace that does not exist yet; then other limits, and none.
    await send("Create", { system: SYSTEM, resources: RESOURCES, entities: entities("gold") });
    const { physicalId } = await send("Update", { entities: entities("silver") });
    await send("Delete", {}, physicalId);
  });
  afterAll(async () => {
    await operator.close();
    transport.close();
  });

  async function send(
    RequestType: "Create" | "Update" | "Delete",
    declared: object,
    PhysicalResourceId?: string,
  ): Promise<{ readonly physicalId: string }> {
    const request = {
      RequestType,
      ResponseURL: "https://example.com/answer",
      StackId: "stack",
      RequestId: "request",
      LogicalResourceId: "Limits",
      ...(PhysicalResourceId !== undefined && { PhysicalResourceId }),
      ResourceProperties: {
        Manifest: JSON.stringify({ namespace: "team-a", ...declared }),
      },
    };
    const recorded = recorder.transport(transport);
    const outcome = await recorder.during(RequestType, () =>
      changeResource(
        request,
        {
          tableName,
          open: (namespace, { create }) =>
            DynamoRepository.open(namespace, {
              stack: tableName,
              transport: recorded,
              requestTimeoutMs: 10_000,
              ...(create ? { provisioning: "stack" } : { create: false }),
            }),
          sleep: () => Promise.resolve(),
        },
        {},
      ),
    );
    expect(outcome).toEqual(expect.objectContaining({ status: "SUCCESS" }));
    return outcome;
  }

  it("are enough for everything that it does", async () => {
    expect(recorder.calls.length).toBeGreaterThan(20);
    expect(await judge.denied(recorder.calls)).toEqual([]);
  });

  it("hold no action and no kind of key that it does not use", async () => {
    for (const statement of STATEMENTS) {
      const { actions, patterns } = getGrant(statement);
      const calls = recorder.calls.filter(({ action }) => actions.includes(action));
      expect(actions.filter((each) => calls.every(({ action }) => action !== each))).toEqual([]);
      const keys = calls.flatMap(({ leadingKeys }) => leadingKeys);
      const kinds = patterns.map((pattern) => pattern.replaceAll("*", ""));
      expect(kinds.filter((kind) => !keys.some((key) => key.includes(kind)))).toEqual([]);
    }
  });
});

/** What a statement grants: actions, and patterns of keys. */
function getGrant({ Action, Condition }: PolicyStatement): {
  readonly actions: readonly string[];
  readonly patterns: readonly string[];
} {
  const keys = Object(Condition) as Record<string, Record<string, readonly string[]>>;
  const patterns = keys["ForAllValues:StringLike"]?.["dynamodb:LeadingKeys"] ?? [];
  return { actions: Action as readonly string[], patterns };
}

function call(name: string, leadingKeys: readonly string[], path = ""): IamCall {
  return { action: `dynamodb:${name}`, path, leadingKeys };
}

const SYSTEM = { on_unavailable: "allow", audit_retention_days: 30, limits: { rpm: 100 } };
const RESOURCES = { "gpt-4": { inherit: true, limits: { tpm: "10000/min:15000" } } };

/** A state with much metadata. */
function entities(plan: string): object {
  const long = Object.fromEntries(
    Array.from({ length: 49 }, (_, index) => [`field-${index}`, "x".repeat(1000)]),
  );
  const ids = Array.from({ length: 12 }, (_, index) => `key-${index}`);
  return {
    acme: { name: "Acme Inc", metadata: { plan } },
    ...Object.fromEntries(ids.map((id) => [id, { parent: "acme", metadata: { ...long, plan } }])),
    leaver: { resources: { [plan === "gold" ? "gpt-4" : "gpt-5"]: { limits: { rpm: 5 } } } },
  };
}
