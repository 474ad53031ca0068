import { describe, expect, it } from "vitest";
import { scriptedProcess } from "../../../../test/support/scripted-table.ts";
import {
  shardImage,
  shardItem,
  shardKey,
  TPM,
  type StoredShard,
} from "../../../../test/support/shard-images.ts";
import { Limit } from "../../../core/limit.ts";
import { buildPolicy, type Policy } from "../../../core/bucket/policy.ts";
import type { ConsumeRequest } from "../../port.ts";
import type { PolicySource } from "../../store.ts";
import { Expiring } from "../cache/expiring.ts";
import type { KnownBuckets } from "../cache/known-buckets.ts";
import { UndecidedCalls } from "../cache/undecided-calls.ts";
import { PolicyResolver } from "../cache/policy-resolver.ts";
import { ClaimPreparation, type KnownEntity } from "./prepare.ts";

const POLICY = buildPolicy([TPM, Limit.perMinute("rpm", 60)], "resource");
const TPM_ONLY = buildPolicy([TPM], "resource");
const RAISED = buildPolicy([Limit.perMinute("tpm", 120)], "override");
const CALL: ConsumeRequest = {
  entityId: "e",
  resources: [{ resource: "r", amounts: { tpm: 2, rpm: 1 } }],
  override: undefined,
};

describe("the claims of a call", () => {
  it("are there at once, without a read, when everything is in memory", async () => {
    const { preparation, table } = await prepare({ e: POLICY });
    const claims = preparation.prepare(CALL);
    expect(claims).toMatchObject([
      { key: { text: shardKey().text }, costs: { tpm: 2000, rpm: 1000 }, policy: POLICY },
    ]);
    expect(table.operations).toEqual([]);
  });

  it("of an entity that this process has not met cost one read, and one more for its parent's bucket", async () => {
    const { preparation, table, known } = newPreparation({ e: POLICY, p: POLICY }, { e: "p" });
    table.put(shardItem({ limits: POLICY.limits }));
    const claims = await preparation.prepare(CALL);
    expect(claims.map(({ key }) => [key.entityId, key.parentId])).toEqual([
      ["e", "p"],
      ["p", undefined],
    ]);
    expect(table.operations).toEqual(["BatchGetItem", "BatchGetItem"]);
    expect(known.getImage(shardKey())).toBeDefined();
  });

  it("read no bucket that is new to a process that knows its entity", async () => {
    const { preparation, table } = await prepare({ e: POLICY });
    await preparation.prepare({ ...CALL, resources: [{ resource: "new", amounts: { tpm: 1 } }] });
    expect(table.operations).toEqual([]);
  });

  it("say which of them came by cascade, and a parent's own calls do not", async () => {
    const { preparation } = await prepare({ e: POLICY, p: POLICY }, { e: "p" });
    const cascaded = async (entityId: string): Promise<unknown> =>
      (await preparation.prepare({ ...CALL, entityId })).map(({ isCascaded }) => isCascaded);
    expect(await cascaded("e")).toEqual([false, true]);
    expect(await cascaded("p")).toEqual([false]);
  });

  it("leave out what the parent has no limit for, and a parent without limits", async () => {
    const lacking = await prepare({ e: POLICY, p: TPM_ONLY }, { e: "p" });
    const claims = await lacking.preparation.prepare(CALL);
    expect(claims.map(({ key, costs }) => [key.entityId, costs])).toEqual([
      ["e", { tpm: 2000, rpm: 1000 }],
      ["p", { tpm: 2000 }],
    ]);
    const unlimited = await prepare({ e: POLICY }, { e: "p" });
    expect(await unlimited.preparation.prepare(CALL)).toHaveLength(1);
  });

  it("keep names that only another level knows, of the entity and of its parent", async () => {
    const made = await prepare({ e: TPM_ONLY, p: TPM_ONLY }, { e: "p" });
    made.hidden = POLICY;
    const claims = await made.preparation.prepare(CALL);
    expect(claims.map(({ amounts }) => amounts)).toEqual([
      CALL.resources[0]!.amounts,
      CALL.resources[0]!.amounts,
    ]);
  });

  it("fail when there are no limits, and for a name that is none of them", async () => {
    const { preparation } = await prepare({ e: TPM_ONLY });
    expect(() => preparation.prepare(CALL)).toThrow("no such limit; the limits are tpm");
    const without = await prepare({});
    expect(() => without.preparation.prepare(CALL)).toThrow("no limits are configured for e on r");
  });

  it("are under limits that the call brought along, except the parent's", async () => {
    const { preparation } = await prepare({ p: TPM_ONLY }, { e: "p" });
    const resources = [{ resource: "r", amounts: { tpm: 1 } }];
    expect(await preparation.prepare({ ...CALL, resources, override: RAISED })).toMatchObject([
      { policy: RAISED },
      { policy: TPM_ONLY, parentId: undefined },
    ]);
  });

  it("are under the policy that is read again when the bucket shows other limits", async () => {
    const { preparation, known, stored } = await prepare({ e: POLICY });
    remember(known, { limits: TPM_ONLY.limits });
    stored["e"] = TPM_ONLY;
    const resources = [{ resource: "r", amounts: { tpm: 1 } }];
    expect(await preparation.prepare({ ...CALL, resources })).toMatchObject([{ policy: TPM_ONLY }]);
  });

  it("fail in a namespace that is found to be deleted", async () => {
    const made = await prepare({ e: POLICY });
    made.isDeleted = true;
    expect(made.preparation.prepare(CALL)).toHaveLength(1);
    made.active.forget("ns");
    await expect(made.preparation.prepare(CALL)).rejects.toThrow("deleted");
  });
});

function remember(known: KnownBuckets, stored: StoredShard): void {
  known.remember(shardKey(), shardImage(stored), known.stampRequest());
}

type Policies = Readonly<Record<string, Policy>>;

/** A process that has met its entities and their bucket, and has read their policies. */
async function prepare(
  policies: Policies,
  parents: Readonly<Record<string, string>> = {},
): Promise<ReturnType<typeof newPreparation>> {
  const made = newPreparation(policies, parents);
  await Promise.all([made.active.get("ns"), made.entities.get("e"), made.entities.get("p")]);
  made.table.operations.length = 0;
  made.cached = { ...policies };
  const limits = policies["e"]?.limits;
  if (limits !== undefined) remember(made.known, { limits });
  return made;
}

function newPreparation(policies: Policies, parents: Readonly<Record<string, string>>) {
  const { table, clock, reader, known } = scriptedProcess();
  const ttlMs = 60_000;
  const readNamespace = async (): Promise<string> => {
    if (made.isDeleted) throw new Error("deleted");
    return "active";
  };
  const active = new Expiring<string>({ read: readNamespace, clock, ttlMs });
  const entities = new Expiring<KnownEntity>({
    read: async (id) => {
      await reader.get({ PK: id, SK: "entity" });
      return { parentId: parents[id], buckets: new Map() };
    },
    clock,
    ttlMs,
  });
  const made = {
    table,
    known,
    active,
    entities,
    isDeleted: false,
    /** What a weaker level stores. */
    hidden: undefined as Policy | undefined,
    cached: undefined as Policies | undefined,
    stored: { ...policies } as Record<string, Policy>,
  };
  const source: Pick<PolicySource, "getCached" | "resolve" | "levels" | "refresh"> = {
    levels: (id) => [made.cached?.[id], made.hidden],
    getCached: (id) =>
      made.cached && { policy: made.cached[id], version: 0, fromMs: 0, untilMs: 0 },
    resolve: async (id) => made.stored[id],
    refresh: async (id) => made.stored[id],
  };
  const preparation = new ClaimPreparation({
    namespaceId: "ns",
    policies: source as PolicySource,
    resolver: new PolicyResolver(source as PolicySource, known, () => false),
    known,
    entities,
    active,
    undecided: new UndecidedCalls(),
    refusalMemoryMs: 1000,
  });
  return Object.assign(made, { preparation });
}
