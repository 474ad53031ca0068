import { expect, it } from "vitest";
import {
  ApplyConflictError,
  Limit,
  RateLimiterUnavailable,
  type DeclaredLimits,
  type ProvisionerState,
} from "zae-limiter";
import type { DynamoRepository } from "zae-limiter/dynamodb";
import {
  marshalItem,
  stringOf,
  type AttributeMap,
} from "../../../src/repository/dynamodb/transport/attribute-values.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { script } from "../../support/fault-proxy.ts";
import { itemBytes } from "../../support/item-bytes.ts";
import { keysOf, useProxiedTable } from "../../support/proxied-table.ts";

/** What DynamoDB allows for one item. */
const MAX_ITEM_BYTES = 400 * 1024;

describeWithEngine("the state of declared limits on DynamoDB", (engine) => {
  const table = useProxiedTable(engine);

  it("ten thousand entities are stored in many items, and a small state after them in one", async () => {
    const repository = await table.open();
    const state = {
      ...(await repository.getProvisionerState()),
      applied: declared(10_000, "Zürich"),
    };
    await repository.putProvisionerState(state);
    expect(await repository.getProvisionerState()).toEqual({ ...state, revision: 1 });
    const stored = await stateItems();
    expect(stored.length).toBeGreaterThan(8);
    for (const item of stored) expect(itemBytes(item)).toBeLessThan(MAX_ITEM_BYTES * 0.75);
    const { applied: _, ...small } = state;
    await repository.putProvisionerState({ ...small, revision: 1 });
    expect(await repository.getProvisionerState()).toEqual({ ...small, revision: 2 });
    expect(await stateItems()).toHaveLength(1);
  });

  it("the head of a large state stays small, because every guarded write pays for it", async () => {
    const repository = await table.open();
    for (const [revision, count] of [0, 4, 16, 30, 1000].entries()) {
      await repository.putProvisionerState({
        ...(await repository.getProvisionerState()),
        applied: declared(count, "x"),
      });
      const head = (await stateItems()).find(({ SK }) => stringOf(SK) === "#PROVISIONER")!;
      expect(itemBytes(head)).toBeLessThan(4400);
      expect(head["revision"]).toEqual({ N: String(revision + 1) });
    }
  });

  it("a writer that died before the head leaves the state as it was, and the next put cleans up", async () => {
    const [writer, other] = [await table.open("app", { maxAttempts: 1 }), await table.open()];
    const first = await put(other, 30, "first");
    const before = keysOf(await stateItems());
    table.proxy.decide = script("TransactWriteItems", ["lost-request"]);
    await expect(put(writer, 1500, "never seen")).rejects.toThrow(RateLimiterUnavailable);
    expect(await other.getProvisionerState()).toEqual(first);
    expect(keysOf(await stateItems()).length).toBeGreaterThan(before.length + 1);
    const next = await put(other, 30, "next");
    expect(await writer.getProvisionerState()).toEqual(next);
    expect(await stateItems()).toHaveLength(2);
  });

  it("a writer that died before it removed older parts has stored its state; the next put cleans up", async () => {
    const repository = await table.open("app", { maxAttempts: 1 });
    await put(repository, 30, "first");
    table.proxy.decide = ({ operation, input }) =>
      operation === "Query" && input["IndexName"] === "GSI4" ? "lost-request" : undefined;
    const second = await put(repository, 30, "second");
    expect(await repository.getProvisionerState()).toEqual(second);
    expect(await stateItems()).toHaveLength(3);
    table.proxy.decide = () => undefined;
    await put(repository, 30, "third");
    expect(await stateItems()).toHaveLength(2);
  });

  it("parts of a later revision are another writer's, and are not touched", async () => {
    const repository = await table.open();
    const state = await put(repository, 30, "first");
    const later = {
      ...(await partItem()),
      SK: { S: `#PROVISIONER#PART#${"4".padStart(16, "0")}#other#0` },
    };
    await table.raw("PutItem", { Item: later });
    await put(repository, 30, "second");
    await repository.putProvisionerState({ ...state, revision: 2, applied: undefined });
    expect(keysOf(await stateItems()).filter((key) => key.endsWith("#other#0"))).toHaveLength(1);
    await put(repository, 30, "fourth");
    expect(keysOf(await stateItems()).filter((key) => key.endsWith("#other#0"))).toEqual([]);
  });

  it("a writer that was too late removes what it wrote", async () => {
    const repository = await table.open();
    const state = await put(repository, 30, "first");
    await expect(
      repository.putProvisionerState({ ...state, revision: 0, appliedHash: "late" }),
    ).rejects.toThrow(ApplyConflictError);
    expect(await repository.getProvisionerState()).toEqual(state);
    expect(await stateItems()).toHaveLength(2);
  });

  it("a lost answer is no conflict, also for a state of many parts", async () => {
    const repository = await table.open();
    table.proxy.decide = script("TransactWriteItems", ["lost-reply"]);
    const state = await put(repository, 1500, "first");
    expect(await repository.getProvisionerState()).toEqual(state);
  });

  it("a table that throttles gets the parts later", async () => {
    const repository = await table.open("app", { maxAttempts: 1 });
    table.proxy.decide = script("PutItem", ["hot-key", "throughput", undefined, "throttle"]);
    const state = await put(repository, 1500, "first");
    expect(await repository.getProvisionerState()).toEqual(state);
  });

  it("a state whose part is missing is unavailable, after a few attempts", async () => {
    const repository = await table.open();
    const state = await put(repository, 30, "first");
    const { PK, SK } = await partItem();
    await table.raw("DeleteItem", { Key: { PK, SK } });
    const sent = await table.sentDuring(() =>
      expect(repository.getProvisionerState()).rejects.toThrow(RateLimiterUnavailable),
    );
    const reads = sent.filter(({ input }) => JSON.stringify(input).includes("#PART#"));
    expect(reads).toHaveLength(5);
    await repository.putProvisionerState(state);
    expect(await repository.getProvisionerState()).toEqual({ ...state, revision: 2 });
  });

  it("a purge removes a large state, and what dead writers left of others", async () => {
    const operator = await table.open("operator");
    const namespaceId = await operator.registerNamespace("tenant");
    const tenant = await table.open("tenant", { maxAttempts: 1 });
    await put(tenant, 1500, "first");
    table.proxy.decide = script("TransactWriteItems", ["lost-request"]);
    await expect(put(tenant, 1500, "second")).rejects.toThrow(RateLimiterUnavailable);
    expect(await stateItems()).toHaveLength(5);
    await operator.deleteNamespace("tenant");
    await operator.purgeNamespace(namespaceId);
    expect(keysOf(await table.items()).filter((key) => key.includes(namespaceId))).toEqual([]);
  });

  it("an item of the earlier format, as an upgraded table of Python has it too, is read and replaced", async () => {
    const repository = await table.open();
    const { namespaceId } = (await repository.getNamespace("app"))!;
    const managed = {
      managedSystem: true,
      managedResources: ["gpt-4"],
      managedEntities: { "key-1": ["gpt-4"] },
    };
    await table.raw("PutItem", {
      Item: marshalItem({
        PK: `${namespaceId}/SYSTEM#`,
        SK: "#PROVISIONER",
        GSI4PK: namespaceId,
        GSI4SK: `${namespaceId}/SYSTEM#`,
        managed_system: managed.managedSystem,
        // The original checked no names, and nothing can be stored under these.
        managed_resources: ["bad#name", ...managed.managedResources],
        managed_entities: { "bad#id": ["gpt-4"], "key-1": ["gpt-4", "4o"] },
        last_applied: "2026-01-02T03:04:05.000Z",
        applied_hash: "sha256:1",
        revision: 3,
      }),
    });
    const state = {
      ...managed,
      lastApplied: new Date("2026-01-02T03:04:05.000Z"),
      appliedHash: "sha256:1",
      revision: 3,
    };
    expect(await repository.getProvisionerState()).toEqual(state);
    await repository.putProvisionerState({ ...state, owner: "stack" });
    expect(await repository.getProvisionerState()).toEqual({
      ...state,
      owner: "stack",
      revision: 4,
    });
    const [head] = await stateItems();
    expect(Object.keys(head!)).not.toContain("managed_entities");
    expect(head).toMatchObject({
      revision: { N: "4" },
      last_applied: { S: "2026-01-02T03:04:05.000Z" },
      applied_hash: { S: "sha256:1" },
    });
  });

  /** The items that a state consists of, those of dead writers included. */
  async function stateItems(): Promise<readonly AttributeMap[]> {
    return (await table.items()).filter(({ SK }) => stringOf(SK)!.startsWith("#PROVISIONER"));
  }

  async function partItem(): Promise<AttributeMap> {
    return (await stateItems()).find(({ SK }) => stringOf(SK) !== "#PROVISIONER")!;
  }
});

/** Stores a state of so many entities, and returns it; 30 need one part. */
async function put(
  repository: DynamoRepository,
  count: number,
  name: string,
): Promise<ProvisionerState> {
  const before = await repository.getProvisionerState();
  const state = { ...before, appliedHash: name, applied: declared(count, name) };
  await repository.putProvisionerState(state);
  return { ...state, revision: before.revision + 1 };
}

/** Declared limits of so many entities, about 240 bytes each. */
function declared(count: number, name: string): DeclaredLimits {
  const level = {
    limits: [Limit.perMinute("rpm", 100), Limit.perMinute("tpm", 10_000)],
    inherit: false,
  };
  const entities = Array.from({ length: count }, (_, index) => [
    `entity-${index}`,
    { name, resources: { "gpt-4": level } },
  ]);
  return { resources: {}, entities: Object.fromEntries(entities) as DeclaredLimits["entities"] };
}
