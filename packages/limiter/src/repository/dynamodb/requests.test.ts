import { describe, expect, it } from "vitest";
import { Aliases } from "./table/aliases.ts";
import { toChunks } from "./table/batch.ts";
import { createEntity } from "./entities.ts";
import { deleteConfig, nextResourceQuery } from "./limits.ts";
import { revisionCheck } from "./items/transact-guarded.ts";
import { deleteWrites, recoverWrites } from "./items/namespace-items.ts";
import { queryInput } from "./table/key-query.ts";
import { putProvisioner } from "./provisioner.ts";

const entity = {
  id: "e",
  name: "e",
  parentId: undefined,
  cascade: false,
  metadata: {},
  createdAt: new Date(0),
};
const namespace = {
  name: "n",
  namespaceId: "id",
  status: "active",
  createdAt: new Date(0),
  deletedAt: undefined,
} as const;
const state = {
  managedSystem: false,
  managedResources: [],
  managedEntities: {},
  lastApplied: undefined,
  appliedHash: undefined,
  revision: 1,
};

/** What may appear in an expression: aliases, and the words of the expression language. */
const WORDS =
  /[#:][nv]\w+|attribute_exists|attribute_not_exists|begins_with|\b(?:SET|REMOVE|BETWEEN|AND|OR|IN)\b/g;

describe("requests", () => {
  it("alias every attribute name, and each only once", () => {
    const alias = new Aliases();
    expect(
      `${alias.name("a-b.c")} ${alias.name("size")} ${alias.name("a-b.c")} ${alias.value(1)} ${alias.value("x")}`,
    ).toBe("#n0 #n1 #n0 :v0 :v1");
    expect(alias.fields()).toEqual({
      ExpressionAttributeNames: { "#n0": "a-b.c", "#n1": "size" },
      ExpressionAttributeValues: { ":v0": { N: "1" }, ":v1": { S: "x" } },
    });
    expect(new Aliases().fields()).toEqual({});
  });

  it.each([
    createEntity("ns", { ...entity, parentId: "p" }),
    deleteConfig("ns", { level: "system" }),
    queryInput(nextResourceQuery("ns", "CONFIG#")),
    deleteWrites(namespace, 0),
    recoverWrites(namespace),
    revisionCheck("ns", 0),
    putProvisioner("ns", { state, expected: 0, compressed: "" }),
  ])("name no attribute in an expression: %#", (request) => {
    const expressions = JSON.stringify(request).match(/(?<=Expression":")[^"]*/g) ?? [];
    expect(expressions.length).toBeGreaterThan(0);
    for (const text of expressions) expect(text.replaceAll(WORDS, "")).not.toMatch(/[a-z]/i);
  });

  it("check the parent only where there is one", () => {
    expect(createEntity("ns", entity)).toHaveLength(1);
    expect(createEntity("ns", { ...entity, parentId: "p" })[1]).toEqual({
      ConditionCheck: {
        Key: { PK: { S: "ns/ENTITY#p" }, SK: { S: "#META" } },
        ConditionExpression: "attribute_exists(#n0)",
        ExpressionAttributeNames: { "#n0": "PK" },
      },
    });
  });

  it("check a revision: 0 also where no state is stored, or one without a revision", () => {
    expect(revisionCheck("ns", 7)).toEqual({
      ConditionCheck: {
        Key: { PK: { S: "ns/SYSTEM#" }, SK: { S: "#PROVISIONER" } },
        ConditionExpression: "#n0 = :v0",
        ExpressionAttributeNames: { "#n0": "revision" },
        ExpressionAttributeValues: { ":v0": { N: "7" } },
      },
    });
    expect(revisionCheck("ns", 0)).toMatchObject({
      ConditionCheck: { ConditionExpression: "attribute_not_exists(#n0) OR #n0 = :v0" },
    });
  });

  it("read the table consistently, and indexes as they are", () => {
    expect(queryInput({ partition: "p", range: { beginsWith: "s" } })).toMatchObject({
      ConsistentRead: true,
    });
    expect(queryInput({ index: "GSI4", partition: "p", range: { from: "a", to: "b" } })).toEqual({
      IndexName: "GSI4",
      KeyConditionExpression: "#n0 = :v0 AND #n1 BETWEEN :v1 AND :v2",
      ExpressionAttributeNames: { "#n0": "GSI4PK", "#n1": "GSI4SK" },
      ExpressionAttributeValues: { ":v0": { S: "p" }, ":v1": { S: "a" }, ":v2": { S: "b" } },
    });
  });

  it("are cut into chunks that lose nothing", () => {
    expect(toChunks([1, 2, 3, 4, 5], 2)).toEqual([[1, 2], [3, 4], [5]]);
    expect(toChunks([], 2)).toEqual([]);
  });
});
