import { DynamoRepository, type DynamoTransport } from "zae-limiter/dynamodb";
import { runAggregator } from "zae-limiter/aggregator";
import { runnerStatements } from "../src/policies/aggregator-statements.ts";
import { POLICY_KINDS } from "../src/policies/policy-document.ts";
import { afterAll, beforeAll, expect, it } from "vitest";
import { describeWithEngine, freshTableName } from "../../limiter/test/support/engine.ts";
import { openTransport } from "../../limiter/test/support/transports.ts";
import { CallRecorder } from "./support/iam/call-recorder.ts";
import * as scenario from "./support/iam/every-method.ts";
import type { IamCall } from "./support/iam/iam-calls.ts";
import { METHOD_NEEDS } from "./support/iam/method-roles.ts";
import { PolicyJudge, TABLE_ARN } from "./support/iam/policy-judge.ts";
import { getJudge, missingRights, neededBy, onOther } from "./support/iam/rights.ts";

const TENANT_KINDS = POLICY_KINDS.filter((kind) => kind.startsWith("namespace-"));

/** Needed by no method: `status` shows the table to those who may read all of it. */
const DESCRIBES = /:Describe(?:Table|TimeToLive|ContinuousBackups)$/;

describeWithEngine("the calls of every method, by the role of its caller", (engine) => {
  const recorder = new CallRecorder();
  const aggregation = new CallRecorder();
  let transport: DynamoTransport;

  beforeAll(async () => {
    transport = await openTransport("lean", engine());
    const stack = freshTableName();
    const place = { stack, transport, requestTimeoutMs: 10_000 };
    const first = await DynamoRepository.open("tenant-a", { ...place, provisioning: "table" });
    const recorded = { ...place, transport: recorder.transport(transport) };
    const opened = await recorder.during("open", () =>
      DynamoRepository.open("tenant-a", { ...recorded, provisioning: "stack" }),
    );
    const repository = recorder.watched(opened);
    await scenario.manageInEveryWay(repository);
    await scenario.acquireInEveryWay(repository);
    await aggregation.during("aggregate", () =>
      runAggregator({ stack, transport: aggregation.transport(transport), once: true }),
    );
    await scenario.readInEveryWay(repository);
    await scenario.readNamespaces(repository);
    await scenario.manageNamespaces(repository);
    await scenario.forgetDefaults(repository);
    await repository.createTable();
    await repository.deleteTable();
    await repository.close();
    await first.close();
  });
  afterAll(() => transport.close());

  it("every public method has its roles, and was recorded", () => {
    const exempt = new Set(["constructor", "deleteStack", "Symbol(Symbol.asyncDispose)"]);
    const methods = listMethods(DynamoRepository.prototype).filter((name) => !exempt.has(name));
    expect(methods.length).toBeGreaterThan(45);
    expect(methods.filter((name) => !(name in METHOD_NEEDS))).toEqual([]);
    expect(Object.keys(METHOD_NEEDS).filter((name) => !exempt.has(name) && !wasRun(name))).toEqual(
      [],
    );
  });

  it("opening what exists only reads, by key", () => {
    const opening = recorder.calls.filter(({ method }) => method === "open");
    expect(opening.map(({ action, leadingKeys }) => [action, leadingKeys])).toEqual([
      ["dynamodb:BatchGetItem", ["_/SYSTEM#"]],
    ]);
  });

  it("a policy allows everything that its programs do, in shared requests too", async () => {
    expect(recorder.calls.length).toBeGreaterThan(80);
    const shared = recorder.calls.filter(({ action }) => action === "dynamodb:PartiQLUpdate");
    expect(new Set(shared.map(({ method }) => method))).toEqual(
      new Set(["consume", "charge", "settle", "giveBack"]),
    );
    expect(await missingRights(recorder.calls)).toEqual([]);
  });

  it.each(POLICY_KINDS)("%s denies what only others need", async (kind) => {
    const needed = new Set(neededBy(kind, recorder.calls).flatMap(single).map(toText));
    const others = distinct(recorder.calls.flatMap(single)).filter(
      (call) => !needed.has(toText(call)) && !DESCRIBES.test(call.action),
    );
    expect(others.length).toBeGreaterThan(0);
    expect(await getJudge(kind).allowed(others)).toEqual([]);
  });

  it.each(TENANT_KINDS)("%s denies every call on another namespace", async (kind) => {
    const calls = distinct(recorder.calls.flatMap(single)).filter(
      ({ leadingKeys: [key] }) => key !== undefined && !key.startsWith("_/"),
    );
    expect(calls.length).toBeGreaterThan(25);
    expect(await getJudge(kind).allowed(calls.map(onOther))).toEqual([]);
    // A batch or a transaction on items of both is denied as a whole.
    const mixed = recorder.calls
      .filter(({ leadingKeys }) => leadingKeys.some((key) => !key.startsWith("_/")))
      .map(({ action, path, leadingKeys }) => ({
        action,
        path,
        leadingKeys: [...leadingKeys, ...onOther({ leadingKeys }).leadingKeys],
      }));
    expect(await getJudge(kind).allowed(mixed)).toEqual([]);
  });

  it("an aggregator that reads the stream itself has the rights that it needs", async () => {
    const streamArn = `${TABLE_ARN}/stream/label`;
    const Statement = runnerStatements({ tableArn: TABLE_ARN, streamArn });
    const judge = new PolicyJudge({ policies: [{ Version: "2012-10-17", Statement }] });
    expect([...new Set(aggregation.calls.map(({ action }) => action))].sort()).toEqual([
      "dynamodb:BatchGetItem",
      "dynamodb:DescribeStream",
      "dynamodb:DescribeTable",
      "dynamodb:GetRecords",
      "dynamodb:GetShardIterator",
      "dynamodb:UpdateItem",
    ]);
    expect(await judge.denied(aggregation.calls)).toEqual([]);
    const changesLimits = distinct(recorder.calls.flatMap(single)).filter(
      ({ action, leadingKeys: [key] }) =>
        /Put|Update|Delete/.test(action) && /RESOURCE|AUDIT/.test(key ?? ""),
    );
    expect(changesLimits.length).toBeGreaterThan(2);
    expect(await judge.allowed(changesLimits)).toEqual([]);
  });

  function wasRun(name: string): boolean {
    return recorder.methods.has(name);
  }
});

/** The names of all methods, inherited ones included. */
function listMethods(prototype: object): readonly string[] {
  const names = new Set<string>();
  for (let level = prototype; level !== Object.prototype; level = Object.getPrototypeOf(level))
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(level)))
      if (typeof value === "function") names.add(name);
  return [...names];
}

/** A call of several keys as calls of one each. */
function single(call: IamCall): readonly IamCall[] {
  const { action, path, leadingKeys } = call;
  return leadingKeys.length === 0
    ? [{ action, path, leadingKeys }]
    : leadingKeys.map((key) => ({ action, path, leadingKeys: [key] }));
}

function distinct(calls: readonly IamCall[]): readonly IamCall[] {
  return [...new Map(calls.map((call) => [toText(call), call])).values()];
}

function withoutMethod({ action, path, leadingKeys }: IamCall): IamCall {
  return { action, path, leadingKeys };
}

function toText(call: IamCall): string {
  return JSON.stringify(withoutMethod(call));
}
