import { randomBytes } from "node:crypto";
import { expect, it } from "vitest";
import {
  Limit,
  RateLimiterUnavailable,
  type DeclaredLimits,
  type ProvisionerState,
} from "zae-limiter";
import type { DynamoRepository } from "zae-limiter/dynamodb";
import {
  marshalItem,
  getString,
  type AttributeMap,
} from "../../../src/repository/dynamodb/transport/attribute-values.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { script } from "../../support/fault-proxy.ts";
import { itemBytes } from "../../support/item-bytes.ts";
import { useProxiedTable } from "../../support/proxied-table.ts";

describeWithEngine("the state of declared limits on DynamoDB", (engine) => {
  const table = useProxiedTable(engine);

  it("ten thousand entities are stored in one item, and what is checked stays small", async () => {
    const repository = await table.open();
    const state = await put(repository, 10_000, "Zürich");
    expect(await repository.getProvisionerState()).toEqual(state);
    const [head, ...others] = await stateItems();
    expect(others).toHaveLength(1);
    expect(itemBytes(head!)).toBeLessThan(400);
    expect(head!["revision"]).toEqual({ N: "1" });
  });

  it("a state that is too large is refused before anything is written", async () => {
    const repository = await table.open();
    const state = await put(repository, 1, "first");
    const entities = Array.from({ length: 500 }, (_, index) => [
      `entity-${index}`,
      { metadata: { noise: randomBytes(750).toString("base64") }, resources: {} },
    ]);
    const applied = { resources: {}, entities: Object.fromEntries(entities) } as DeclaredLimits;
    const sent = await table.sentDuring(() =>
      expect(repository.putProvisionerState({ ...state, applied })).rejects.toThrow(
        /^Invalid state: of declared limits has \d{3} KB .*divide them among namespaces/,
      ),
    );
    expect(sent.map(({ operation }) => operation)).not.toContain("TransactWriteItems");
    expect(await repository.getProvisionerState()).toEqual(state);
  });

  it("a writer that died has stored the whole state, or left that of before", async () => {
    const [writer, other] = [await table.open("app", { maxAttempts: 1 }), await table.open()];
    const first = await put(other, 30, "first");
    table.proxy.decide = script("TransactWriteItems", ["lost-request", "lost-reply"]);
    await expect(put(writer, 30, "never seen")).rejects.toThrow(RateLimiterUnavailable);
    expect(await other.getProvisionerState()).toEqual(first);
    await expect(put(writer, 30, "second")).rejects.toThrow(RateLimiterUnavailable);
    expect(await other.getProvisionerState()).toMatchObject({ appliedHash: "second" });
  });

  it("a lost answer is not a conflict", async () => {
    const repository = await table.open();
    table.proxy.decide = script("TransactWriteItems", ["lost-reply"]);
    const state = await put(repository, 1500, "first");
    expect(await repository.getProvisionerState()).toEqual(state);
  });

  it("the item that an upgrade from Python has left is read and replaced", async () => {
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

  /** The items that a state consists of. */
  async function stateItems(): Promise<readonly AttributeMap[]> {
    return (await table.items()).filter(({ SK }) => getString(SK)!.startsWith("#PROVISIONER"));
  }
});

/** Stores a state of so many entities, and returns it. */
async function put(
  repository: DynamoRepository,
  count: number,
  name: string,
): Promise<ProvisionerState> {
  const before = await repository.getProvisionerState();
  const state = { ...before, appliedHash: name, applied: declare(count, name) };
  await repository.putProvisionerState(state);
  return { ...state, revision: before.revision + 1 };
}

/** Declared limits of so many entities, about 240 bytes each. */
function declare(count: number, name: string): DeclaredLimits {
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
