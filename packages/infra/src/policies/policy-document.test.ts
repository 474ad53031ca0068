import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { IamCall } from "../../test/support/iam/iam-calls.ts";
import { PolicyJudge, TABLE_ARN } from "../../test/support/iam/policy-judge.ts";
import { getJudge } from "../../test/support/iam/rights.ts";
import { NAMESPACE_TAG, policyDocument, POLICY_KINDS, type PolicyKind } from "./policy-document.ts";

/** Two tenants: the id of one begins with that of the other, apart from its length. */
const A = "AAAAAAAAAAA";
const B = "AAAAAAAAAAAB";

const TENANT_KINDS = POLICY_KINDS.filter((kind) => kind.startsWith("namespace-"));

/** Actions that name no item; some of them read or write all of them. */
const WITHOUT_KEY = [
  "Scan",
  "PartiQLSelect",
  "PartiQLInsert",
  "PartiQLDelete",
  "ListTables",
  "CreateTable",
  "UpdateTable",
  "DeleteTable",
  "CreateBackup",
  "ExportTableToPointInTime",
  "UpdateTimeToLive",
  "PutResourcePolicy",
  "TagResource",
].map((name) => `dynamodb:${name}`);
const STREAM = ["DescribeStream", "GetRecords", "GetShardIterator"].map(
  (name) => `dynamodb:${name}`,
);

const BY_KEY = ["GetItem", "BatchGetItem"].map((name) => `dynamodb:${name}`);
const WRITES = [
  "PutItem",
  "UpdateItem",
  "PartiQLUpdate",
  "DeleteItem",
  "BatchWriteItem",
  "ConditionCheckItem",
].map((name) => `dynamodb:${name}`);

const call = (action: string, key: string, path = ""): IamCall => ({
  action: `dynamodb:${action}`,
  path,
  leadingKeys: [key],
});

function tenantJudge(kind: PolicyKind, tag: string | undefined): PolicyJudge {
  const tags = tag === undefined ? {} : { [NAMESPACE_TAG]: tag };
  return new PolicyJudge({ policies: [policyDocument(kind, TABLE_ARN)], tags });
}

describe("policies [W-65]", () => {
  it("programs that acquire may do what a transaction asks for: its members, creation included", async () => {
    for (const kind of ["acquire-only", "namespace-acquire"] as const)
      for (const action of ["PutItem", "UpdateItem", "DeleteItem"])
        expect(await getJudge(kind, A).allows(call(action, `${A}/BUCKET#e#r#0`)), kind).toBe(true);
    const actions = POLICY_KINDS.flatMap((kind) => policyDocument(kind, TABLE_ARN).Statement)
      .flatMap(({ Action }) => Action)
      .map(String);
    expect(actions.filter((action) => /Transact|\*/.test(action))).toEqual([]);
  });

  it("programs that write buckets may do so in shared requests, and use PartiQL for nothing else", async () => {
    const statements = ["Select", "Insert", "Update", "Delete"].map((verb) =>
      call(`PartiQL${verb}`, `${A}/BUCKET#e#r#0`),
    );
    for (const kind of POLICY_KINDS) {
      const allowed = await getJudge(kind, A).allowed(statements);
      const expected = kind.endsWith("read-only") ? [] : ["dynamodb:PartiQLUpdate"];
      expect(
        allowed.map(({ action }) => action),
        kind,
      ).toEqual(expected);
    }
  });

  it.each(["acquire-only", "namespace-acquire"] as const)(
    "%s writes buckets and nothing else, and reads no audit events",
    async (kind) => {
      const others = ["ENTITY#e", "RESOURCE#r", "SYSTEM#", "AUDIT#e"].flatMap((name) =>
        ["PutItem", "UpdateItem", "PartiQLUpdate", "DeleteItem"].map((action) =>
          call(action, `${A}/${name}`),
        ),
      );
      const audit = call("BatchGetItem", `${A}/AUDIT#e`);
      expect(await getJudge(kind, A).allowed([...others, audit])).toEqual([]);
    },
  );

  it.each(TENANT_KINDS)("%s reads the registry by key, and writes nothing there", async (kind) => {
    const judge = getJudge(kind, A);
    expect(await judge.allows(call("BatchGetItem", "_/SYSTEM#"))).toBe(true);
    for (const action of [...WRITES, "dynamodb:Query"])
      for (const key of ["_/SYSTEM#", "_/BUCKET#e#r#0", "_/ENTITY#e"])
        expect(await judge.allows({ action, path: "", leadingKeys: [key] }), action).toBe(false);
    expect(await judge.allows(call("Query", "_", "index/GSI4"))).toBe(false);
  });

  it.each(POLICY_KINDS)("%s allows nothing that names no item and needs none", async (kind) => {
    const judge = getJudge(kind, A);
    const calls = [
      ...WITHOUT_KEY.map((action) => ({ action, path: "", leadingKeys: [] })),
      ...STREAM.map((action) => ({ action, path: "stream/label", leadingKeys: [] })),
      { action: "dynamodb:Scan", path: "index/GSI2", leadingKeys: [] },
    ];
    expect(await judge.allowed(calls)).toEqual([]);
  });

  it.each(TENANT_KINDS)(
    "%s allows nothing without a key, not even what it allows",
    async (kind) => {
      const actions = [...BY_KEY, ...WRITES, "dynamodb:Query", "dynamodb:DescribeTable"];
      const calls = actions.flatMap((action) =>
        ["", "index/GSI4"]
          .filter((path) => path === "" || action === "dynamodb:Query")
          .map((path) => ({ action, path, leadingKeys: [] })),
      );
      expect(await getJudge(kind, A).allowed(calls)).toEqual([]);
    },
  );

  it.each(TENANT_KINDS)("%s grants nothing to a tag that is not a tenant's", async (kind) => {
    for (const tag of [undefined, "", "_"]) {
      const judge = tenantJudge(kind, tag);
      const keys = ["/BUCKET#e#r#0", "_/SYSTEM#", "_/BUCKET#e#r#0"];
      const calls = ["BatchGetItem", "UpdateItem", "PutItem", "Query"].flatMap((action) =>
        keys.map((key) => call(action, key)),
      );
      expect(await judge.allowed([...calls, call("Query", "_", "index/GSI4")]), tag).toEqual([]);
    }
  });

  it("is for one table", async () => {
    const other = policyDocument("full-access", `${TABLE_ARN}-2`);
    const judge = new PolicyJudge({ policies: [other] });
    expect(await judge.allows(call("GetItem", "_/SYSTEM#"))).toBe(false);
  });

  it("fits into a managed policy, also for the longest names", () => {
    const longest = `arn:aws-us-gov:dynamodb:us-gov-west-1:111122223333:table/${"x".repeat(55)}`;
    for (const kind of POLICY_KINDS)
      expect(JSON.stringify(policyDocument(kind, longest)).length, kind).toBeLessThan(6144);
  });

  it("takes the ARN of a template's resource", () => {
    const arn = { "Fn::GetAtt": ["RateLimitsTable", "Arn"] };
    const [read] = policyDocument("read-only", arn).Statement;
    expect(read!["Resource"]).toEqual([arn, { "Fn::Join": ["/", [arn, "index/*"]] }]);
  });
});

describe("whatever a tenant calls", () => {
  const kinds = fc.constantFrom(...TENANT_KINDS);
  const namespaces = fc.constantFrom(A, B, "_", "", A.slice(1), `${A}/`, `*`);
  const tails = fc.constantFrom(
    "/SYSTEM#",
    "/BUCKET#e#r#0",
    "/ENTITY#e",
    "/RESOURCE#r/s",
    "/AUDIT#e",
    "/PARENT#e",
    "/ENTITY_CONFIG#r",
    "/",
    "",
  );
  const keys = fc.tuple(namespaces, tails).map(([namespaceId, tail]) => namespaceId + tail);
  const calls = fc.record({
    action: fc.constantFrom(...BY_KEY, ...WRITES, "dynamodb:Query"),
    path: fc.constantFrom("", "index/GSI1", "index/GSI2", "index/GSI3", "index/GSI4"),
    leadingKeys: fc.uniqueArray(keys, { minLength: 1, maxLength: 3 }),
  });
  const addressed = calls.map(({ action, path, leadingKeys }) => ({
    action,
    // Items are read and written in the table; only queries know indexes.
    path: action === "dynamodb:Query" ? path : "",
    leadingKeys: leadingKeys.filter((key) => key !== ""),
  }));

  it("is on its own items, or reads the registry by key", async () => {
    let allowed = 0;
    await fc.assert(
      fc.asyncProperty(
        kinds,
        fc.constantFrom(A, B, "", "_"),
        addressed,
        async (kind, tag, made) => {
          if (!(await tenantJudge(kind, tag).allows(made))) return;
          allowed += 1;
          const reads = BY_KEY.includes(made.action);
          // In GSI4, the partition of a namespace is its id; in the table, nothing is there.
          const own = (key: string): boolean => key === tag || key.startsWith(`${tag}/`);
          expect([A, B]).toContain(tag);
          expect(made.leadingKeys.length).toBeGreaterThan(0);
          for (const key of made.leadingKeys)
            expect(own(key) || (reads && key === "_/SYSTEM#"), key).toBe(true);
        },
      ),
      { numRuns: 250 },
    );
    expect(allowed).toBeGreaterThan(0);
  });
});
