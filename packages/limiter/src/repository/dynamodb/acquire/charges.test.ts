import { UndecidedCalls } from "../cache/undecided-calls.ts";
import { describe, expect, it } from "vitest";
import {
  named,
  scriptedProcess,
  type ScriptedProcess,
} from "../../../../test/support/scripted-table.ts";
import {
  NOW_MS,
  shardImage,
  shardItem,
  shardKey,
  TPM,
  type StoredShard,
} from "../../../../test/support/shard-images.ts";
import { Limit } from "../../../core/limit.ts";
import { policyOf, type Policy } from "../../../core/bucket/policy.ts";
import type { ConsumeRequest } from "../../port.ts";
import type { PolicySource } from "../../store.ts";
import { Expiring } from "../cache/expiring.ts";
import type { KnownBucket, KnownBuckets } from "../cache/known-buckets.ts";
import { ChargePreparation, mayFit, takeFromShard, type KnownEntity } from "./charges.ts";
import { CurrentPolicies } from "./current-policy.ts";
import type { WantedCharge } from "./wanted-charge.ts";

const POLICY = policyOf([TPM, Limit.perMinute("rpm", 60)], "resource");
const TPM_ONLY = policyOf([TPM], "resource");
const RAISED = policyOf([Limit.perMinute("tpm", 120)], "override");
const CALL: ConsumeRequest = {
  entityId: "e",
  resources: [{ resource: "r", amounts: { tpm: 2, rpm: 1 } }],
  override: undefined,
};

describe("the charges of a call", () => {
  it("are there at once, without a read, when everything is in memory", async () => {
    const { preparation, table } = await prepared({ e: POLICY });
    const charges = preparation.of(CALL);
    expect(charges).toMatchObject([
      { key: { text: shardKey().text }, costs: { tpm: 2000, rpm: 1000 }, policy: POLICY },
    ]);
    expect(table.operations).toEqual([]);
  });

  it("of an entity that this process has not met cost one read, and one more for its parent's bucket", async () => {
    const { preparation, table, known } = newPreparation({ e: POLICY, p: POLICY }, { e: "p" });
    table.put(shardItem({ limits: POLICY.limits }));
    const charges = await preparation.of(CALL);
    expect(charges.map(({ key }) => [key.entityId, key.parentId])).toEqual([
      ["e", "p"],
      ["p", undefined],
    ]);
    expect(table.operations).toEqual(["BatchGetItem", "BatchGetItem"]);
    expect(known.imageOf(shardKey())).toBeDefined();
  });

  it("read no bucket that is new to a process that knows its entity", async () => {
    const { preparation, table } = await prepared({ e: POLICY });
    await preparation.of({ ...CALL, resources: [{ resource: "new", amounts: { tpm: 1 } }] });
    expect(table.operations).toEqual([]);
  });

  it("say which of them came by cascade, and a parent's own calls do not", async () => {
    const { preparation } = await prepared({ e: POLICY, p: POLICY }, { e: "p" });
    const cascaded = async (entityId: string): Promise<unknown> =>
      (await preparation.of({ ...CALL, entityId })).map(({ isCascaded }) => isCascaded);
    expect(await cascaded("e")).toEqual([false, true]);
    expect(await cascaded("p")).toEqual([false]);
  });

  it("leave out what the parent has no limit for, and a parent without limits", async () => {
    const lacking = await prepared({ e: POLICY, p: TPM_ONLY }, { e: "p" });
    const charges = await lacking.preparation.of(CALL);
    expect(charges.map(({ key, costs }) => [key.entityId, costs])).toEqual([
      ["e", { tpm: 2000, rpm: 1000 }],
      ["p", { tpm: 2000 }],
    ]);
    const unlimited = await prepared({ e: POLICY }, { e: "p" });
    expect(await unlimited.preparation.of(CALL)).toHaveLength(1);
  });

  it("keep names that only another level knows, of the entity and of its parent", async () => {
    const made = await prepared({ e: TPM_ONLY, p: TPM_ONLY }, { e: "p" });
    made.hidden = POLICY;
    const charges = await made.preparation.of(CALL);
    expect(charges.map(({ amounts }) => amounts)).toEqual([
      CALL.resources[0]!.amounts,
      CALL.resources[0]!.amounts,
    ]);
  });

  it("fail when there are no limits, and for a name that is none of them", async () => {
    const { preparation } = await prepared({ e: TPM_ONLY });
    expect(() => preparation.of(CALL)).toThrow("no such limit; the limits are tpm");
    const without = await prepared({});
    expect(() => without.preparation.of(CALL)).toThrow("no limits are configured for e on r");
  });

  it("are under limits that the call brought along, except the parent's", async () => {
    const { preparation } = await prepared({ p: TPM_ONLY }, { e: "p" });
    const resources = [{ resource: "r", amounts: { tpm: 1 } }];
    expect(await preparation.of({ ...CALL, resources, override: RAISED })).toMatchObject([
      { policy: RAISED, isOverride: true },
      { policy: TPM_ONLY, isOverride: false, parentId: undefined },
    ]);
  });

  it("are under the policy that is read again when the bucket shows other limits", async () => {
    const { preparation, known, stored } = await prepared({ e: POLICY });
    remember(known, { limits: TPM_ONLY.limits });
    stored["e"] = TPM_ONLY;
    const resources = [{ resource: "r", amounts: { tpm: 1 } }];
    expect(await preparation.of({ ...CALL, resources })).toMatchObject([{ policy: TPM_ONLY }]);
  });

  it("fail in a namespace that is found to be deleted", async () => {
    const made = await prepared({ e: POLICY });
    made.isDeleted = true;
    expect(made.preparation.of(CALL)).toHaveLength(1);
    made.active.forget("ns");
    await expect(made.preparation.of(CALL)).rejects.toThrow("deleted");
  });
});

describe("a bucket may serve a call", () => {
  it("that does not exist yet when a full one could", () => {
    expect(mayFit(wanting(60), bucketOf([]), NOW_MS)).toBe(true);
    expect(mayFit(wanting(60), bucketOf([], { isWhole: false }), NOW_MS)).toBe(true);
    expect(mayFit(wanting(61), bucketOf([]), NOW_MS)).toBe(false);
  });

  it("when one of its shards holds it, whatever is known of the others", () => {
    const shards = [{ tpm: 10_000 }, { tpm: 0 }];
    expect(mayFit(wanting(10), bucketOf(shards), NOW_MS)).toBe(true);
    expect(mayFit(wanting(10), bucketOf(shards, { isWhole: false }), NOW_MS)).toBe(true);
    const only = { ...bucketOf(shards.slice(0, 1), { isWhole: false }), count: 2 };
    expect(mayFit(wanting(10), only, NOW_MS)).toBe(true);
    expect(mayFit(wanting(11), only, NOW_MS)).toBe(false);
  });

  it("when its shards hold it together, if all of them are known", () => {
    const shards = [{ tpm: 10_000 }, { tpm: 5000 }];
    expect(mayFit(wanting(15), bucketOf(shards), NOW_MS)).toBe(true);
    expect(mayFit(wanting(16), bucketOf(shards), NOW_MS)).toBe(false);
    expect(mayFit(wanting(15), bucketOf(shards, { isWhole: false }), NOW_MS)).toBe(false);
  });

  it("not from one shard while others owe more than is left, if all of them are known", () => {
    const shards = [{ tpm: 10_000 }, { tpm: -5000 }];
    expect(mayFit(wanting(6), bucketOf(shards), NOW_MS)).toBe(false);
    expect(mayFit(wanting(5), bucketOf(shards), NOW_MS)).toBe(true);
    expect(mayFit(wanting(6), bucketOf(shards, { isWhole: false }), NOW_MS)).toBe(true);
  });

  it("with what it earned since, under the limits that the call is decided with", () => {
    expect(mayFit(wanting(1), bucketOf([{ tpm: 0 }]), NOW_MS + 999)).toBe(false);
    expect(mayFit(wanting(1), bucketOf([{ tpm: 0 }]), NOW_MS + 1000)).toBe(true);
    const joined = { ...wanting(0), policy: POLICY };
    const single = bucketOf([{ tpm: 0 }]);
    const wantingRpm = (rpm: number): WantedCharge => ({
      ...joined,
      amounts: { rpm },
      costs: { rpm: rpm * 1000 },
    });
    expect(mayFit(wantingRpm(60), single, NOW_MS)).toBe(true);
    expect(mayFit(wantingRpm(61), single, NOW_MS)).toBe(false);
  });
});

describe("a take from one shard", () => {
  const KEY = shardKey(1);

  it("names the shard that it took from, and the policy that it was decided with", async () => {
    const process = withShard({ tpm: 10_000 });
    const taken = await takeFromShard(wanting(10), KEY, { requests: 1 }, chosenBy(process));
    expect(taken).toMatchObject({
      kind: "taken",
      parts: [{ key: KEY, amounts: { tpm: 10_000 }, requests: 1, incarnation: { divisor: 2 } }],
    });
  });

  it.each([true, false])("counts by cascade what came so: %s", async (isCascaded) => {
    const process = withShard({ tpm: 10_000 });
    const wanted = { ...wanting(10), isCascaded };
    const taken = await takeFromShard(wanted, KEY, { requests: 1 }, chosenBy(process));
    expect(taken).toMatchObject({ parts: [{ isCascaded }] });
    expect(process.table.item["b_tpm_cc"]).toEqual(isCascaded ? { N: "10000" } : undefined);
    expect(process.table.item["gc"]).toEqual(isCascaded ? { N: "1" } : undefined);
  });

  it("is undecided when the shard does not hold it, as of when, or is gone", async () => {
    const process = withShard({ tpm: 9999 });
    const refused = await takeFromShard(wanting(10), KEY, { requests: 1 }, chosenBy(process));
    expect(refused).toMatchObject({ kind: "undecided", refusedAtMs: NOW_MS });
    const gone = await takeFromShard(
      wanting(10),
      KEY,
      { requests: 1 },
      chosenBy(scriptedProcess()),
    );
    expect(gone).toMatchObject({ kind: "undecided", refusedAtMs: undefined });
  });

  it("is throttled when nothing was taken, and an error when that is not known", async () => {
    const throttled = withShard({ tpm: 10_000 });
    throttled.table.faults.push({ instead: named("ThrottlingException") });
    const outcome = await takeFromShard(wanting(10), KEY, { requests: 1 }, chosenBy(throttled));
    expect(outcome).toMatchObject({ kind: "throttled", error: { throttled: true } });
    const lost = withShard({ tpm: 10_000 });
    lost.table.faults.push({ instead: named("Error", { code: "ECONNRESET" }) });
    await expect(
      takeFromShard(wanting(10), KEY, { requests: 1 }, chosenBy(lost)),
    ).rejects.toMatchObject({
      ambiguous: true,
    });
  });

  function withShard(tokens: NonNullable<StoredShard["tokens"]>): ScriptedProcess {
    const process = scriptedProcess({ maxAttempts: 1 });
    const stored = { shard: 1, divisor: 2, tokens };
    process.table.put(shardItem(stored));
    process.known.remember(KEY, shardImage(stored), process.known.stampRequest());
    return process;
  }
});

function chosenBy({ writer }: ScriptedProcess): Parameters<typeof takeFromShard>[3] {
  return { writer, chooser: { on: ({ policy }) => policy } };
}

function wanting(tpm: number): WantedCharge {
  const costs = { tpm: tpm * 1000 };
  return {
    key: shardKey(),
    amounts: { tpm },
    costs,
    policy: TPM_ONLY,
    isOverride: false,
    parentId: undefined,
    isCascaded: false,
  };
}

/** A bucket whose shards hold so many millitokens. */
function bucketOf(
  shards: readonly StoredShard["tokens"][],
  { isWhole = true }: { readonly isWhole?: boolean } = {},
): KnownBucket {
  const seenAt = { ms: NOW_MS, order: 1 };
  const known = shards.map((tokens, shard) => {
    const image = shardImage({ tokens: tokens!, shard, divisor: shards.length });
    return { key: shardKey(shard), image, seenAt };
  });
  return { count: Math.max(1, shards.length), shards: known, isWhole, seenAt };
}

function remember(known: KnownBuckets, stored: StoredShard): void {
  known.remember(shardKey(), shardImage(stored), known.stampRequest());
}

type Policies = Readonly<Record<string, Policy>>;

/** A process that has met its entities and their bucket, and has read their policies. */
async function prepared(
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
  const source: Pick<PolicySource, "cached" | "resolve" | "levels" | "refresh"> = {
    levels: (id) => [made.cached?.[id], made.hidden],
    cached: (id) => made.cached && { policy: made.cached[id], version: 0, fromMs: 0, untilMs: 0 },
    resolve: async (id) => made.stored[id],
    refresh: async (id) => made.stored[id],
  };
  const preparation = new ChargePreparation({
    namespaceId: "ns",
    policies: source as PolicySource,
    chooser: new CurrentPolicies(source as PolicySource, known),
    known,
    entities,
    active,
    undecided: new UndecidedCalls(),
    refusalMemoryMs: 1000,
  });
  return Object.assign(made, { preparation });
}
