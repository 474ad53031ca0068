import { describe, expect, it } from "vitest";
import { update, type ExpressionInput } from "../../../../test/support/expression-evaluator.ts";
import { buildItem, buildRequest } from "../../../../test/support/batch-cases.ts";
import {
  NOW_MS,
  shardImage,
  shardItem,
  shardKey,
  TPM,
  type StoredShard,
} from "../../../../test/support/shard-images.ts";
import { fullBucket, getStoredMilli } from "../../../core/bucket/bucket.ts";
import { Limit } from "../../../core/limit.ts";
import { buildPolicy, type Policy } from "../../../core/bucket/policy.ts";
import { newMarker } from "../../../../test/support/scripted-writes.ts";
import { parseBucketItem, type BucketImage } from "../items/bucket-item.ts";
import { getNumber } from "../transport/attribute-values.ts";
import type { BucketIncarnation, WriteIntent } from "./write-intent.ts";
import { countCarried, planWrite, type Plan, type PlanRequest } from "./write-plan.ts";

const POLICY = buildPolicy([TPM], "resource");
const RAISED = buildPolicy([Limit.perMinute("tpm", 120)], "resource");
const OVERRIDE = buildPolicy([TPM], "override");

describe("a plan for a bucket that does not exist", () => {
  it("creates it already charged", () => {
    const { write, verdicts } = plan(undefined, [take(10_000)]);
    expect(verdicts).toEqual(["written"]);
    expect(write).toMatchObject({ request: { operation: "PutItem" }, incarnation: { divisor: 1 } });
    const created = parseBucketItem(write!.item!);
    expect(created.bucket).toMatchObject({ refilledAtMs: NOW_MS, balances: [50_000, 0, 10_000] });
    expect(created.creation).toBe(write!.mark!.id);
    expect(getNumber(write!.item!["gr"])).toBe(1);
  });

  it("creates nothing for a give-back, nor for an overrun of a bucket that was deleted", () => {
    const taken = {
      creation: "me000.0001",
      divisor: 1,
      splitAtMs: undefined,
      expiredBySeconds: undefined,
    };
    const intents = [giveBack(1000, taken), overrun(1000, taken)];
    expect(plan(undefined, intents)).toEqual({ write: undefined, verdicts: ["gone", "gone"] });
  });

  it("charges an overrun whose bucket has expired to a new one", () => {
    const { write, verdicts } = plan(undefined, [overrun(70_000, takenUntil(NOW_MS))]);
    expect(verdicts).toEqual(["written"]);
    expect(getStoredMilli(parseBucketItem(write!.item!).bucket, 0)).toBe(-10_000);
    expect(plan(undefined, [overrun(1, takenUntil(NOW_MS + 1000))]).verdicts).toEqual(["gone"]);
  });

  it("creates it for a charge, into debt if need be, and counts no request", () => {
    const { write, verdicts } = plan(undefined, [charge(70_000)]);
    expect(verdicts).toEqual(["written"]);
    expect(parseBucketItem(write!.item!).bucket).toMatchObject({ balances: [-10_000, 0, 70_000] });
    expect(getNumber(write!.item!["gr"])).toBe(0);
  });

  it("creates no other shard than the first", () =>
    expect(plan(undefined, [take(1)], { key: shardKey(1) })).toEqual({
      write: undefined,
      verdicts: ["gone"],
    }));
});

describe("a plan for a bucket", () => {
  it("requires that a window is still over, of which a call leaves and takes nothing", () => {
    const tpd = Limit.quota("tpd", 100, { every: "day", zone: "UTC" });
    const policy = buildPolicy([tpd, TPM], "resource");
    const item = buildItem(fullBucket(policy.bucketLimits, NOW_MS));
    const opened = { ...item, b_tpd_tk: { N: "50000" }, b_tpd_we: { N: String(NOW_MS + 9000) } };
    const lands = (leave: WriteIntent["leave"], found: typeof item): boolean => {
      const intents = [{ ...take(1), policy, leave }];
      const request = { policy, image: parseBucketItem(item), intents, nowMs: NOW_MS };
      const { write } = planWrite(buildRequest({ ...request, ttlMultiplier: 0 }));
      return update(found, write!.request.input("limits")) !== undefined;
    };
    const leave = { amounts: { tpd: 60 }, priority: undefined };
    expect([lands(leave, item), lands(leave, opened)]).toEqual([true, false]);
    expect(lands(undefined, opened)).toBe(true);
  });

  it("keeps its limits when nothing takes from it", () => {
    const stored = { tokens: { tpm: 50_000 } };
    const planned = plan(stored, [giveBack(1000)], { policy: RAISED });
    expect(after(stored, planned).bucket.limits[0]!.limit).toEqual(TPM);
  });

  it("renews when it expires, unless its entity has limits of its own", () => {
    expect(after({}, plan({}, [take(1)])).expiresAtSeconds).toBeGreaterThan(NOW_MS / 1000);
    const policy = buildPolicy([TPM], "entity");
    const expiring = { expiresAtSeconds: NOW_MS / 1000 + 60 };
    const kept = after(expiring, plan(expiring, [take(1)], { policy }));
    expect(kept.expiresAtSeconds).toBeUndefined();
  });

  it("goes by the exact time what the last tick does not hold, and returns when the next one is", () => {
    const stored = { tokens: { tpm: 0 } };
    const offTick = plan(stored, [take(107)], { nowMs: NOW_MS + 107, tickMs: 50 });
    expect(offTick).toMatchObject({ verdicts: ["written"], tickInMs: 43 });
    expect(after(stored, offTick).bucket.refilledAtMs).toBe(NOW_MS + 107);
    const onTick = plan(stored, [take(100)], { nowMs: NOW_MS + 107, tickMs: 50 });
    expect(onTick.tickInMs).toBeUndefined();
    expect(after(stored, onTick).bucket.refilledAtMs).toBe(NOW_MS + 100);
  });
});

describe("a plan that drops a limit of too many", () => {
  const others = Array.from({ length: 64 }, (_, index) => Limit.perMinute(`l${index}`, 9));
  const policy = buildPolicy([Limit.perMinute("l0", 10), ...others.slice(1)], "resource");
  const stored = { limits: [TPM, ...others], consumed: { tpm: 700 } };
  const dropping = { ...take(0), costs: { l0: 1 } };

  it("takes its total along", () => {
    const item = update(shardItem(stored), getInput(plan(stored, [dropping], { policy })))!;
    expect(item["b_tpm_cp"]).toBeUndefined();
    expect(item["b_tpm_tc"]).toBeUndefined();
  });

  it.each([
    ["before", [overrun(50), { ...giveBack(8), isCascaded: true }, dropping]],
    ["after", [dropping, overrun(50), { ...giveBack(8), isCascaded: true }]],
  ])("counts what leases end with %s it, and keeps the total", (_, intents) => {
    const item = update(shardItem(stored), getInput(plan(stored, intents, { policy })))!;
    expect(item["b_tpm_cp"]).toBeUndefined();
    expect(getNumber(item["b_tpm_tc"])).toBe(742);
    expect(getNumber(item["b_tpm_cc"])).toBe(-8);
  });
});

describe("a plan for limits that a refusal was decided with", () => {
  const applyLimits: WriteIntent = {
    kind: "applyLimits",
    costs: {},
    isCascaded: false,
    requests: 0,
    policy: RAISED,
  };

  it("writes them and takes nothing", () => {
    const stored = { tokens: { tpm: 10 } };
    const planned = plan(stored, [applyLimits], { policy: RAISED });
    const { bucket } = after(stored, planned);
    expect([bucket.limits[0]!.limit, getStoredMilli(bucket, 0)]).toEqual([RAISED.limits[0], 10]);
  });

  it("writes nothing when that changes nothing", () =>
    expect(plan({}, [applyLimits])).toEqual({ write: undefined, verdicts: ["written"] }));

  it("writes no limit that would cut a balance off", () => {
    const policy = buildPolicy([Limit.perMinute("tpm", 30)], "resource");
    expect(plan({}, [applyLimits], { policy }).write).toBeUndefined();
  });
});

describe("a plan for a shard, or for what a lease gives back or owes", () => {
  const TAKEN = {
    creation: "other.0000",
    divisor: 1,
    splitAtMs: undefined,
    expiredBySeconds: undefined,
  };
  const SHARD = { divisor: 2, tokens: { tpm: 10_000 } };

  it("gives nothing back to a bucket that was created since", () => {
    const { write, verdicts } = plan({ creation: "other.0009" }, [giveBack(1000, TAKEN)]);
    expect([write, verdicts]).toEqual([undefined, ["gone"]]);
  });

  it("gives nothing back to a shard that was split since, but charges it what it can pay", () => {
    const { verdicts } = plan(SHARD, [giveBack(1000, TAKEN), overrun(1000, TAKEN)]);
    expect(verdicts).toEqual(["split", "written"]);
  });

  it("gives nothing back to a shard that was merged and split off again since", () => {
    const taken = { ...TAKEN, divisor: 2, splitAtMs: NOW_MS };
    const image = { ...shardImage(SHARD), splitAtMs: NOW_MS };
    expect(plan(SHARD, [giveBack(1000, taken)], { image }).verdicts).toEqual(["written"]);
    const later = { image: { ...image, splitAtMs: NOW_MS + 1 } };
    expect(plan(SHARD, [giveBack(1000, taken)], later).verdicts).toEqual(["split"]);
  });

  it("charges one shard of several only what it can pay, unless it is to bear it alone", () => {
    const [paid, unpaid] = [overrun(10_000), overrun(10_001)];
    expect(plan(SHARD, [unpaid]).verdicts).toEqual(["split"]);
    expect(plan(SHARD, [paid]).verdicts).toEqual(["written"]);
    expect(plan(SHARD, [{ ...unpaid, mayOwe: true }]).verdicts).toEqual(["written"]);
  });

  it("charges it by its share of the limits that apply now", () => {
    const lowered = { policy: buildPolicy([Limit.perMinute("tpm", 16)], "resource") };
    expect(plan(SHARD, [charge(8000)], lowered).verdicts).toEqual(["written"]);
    expect(plan(SHARD, [charge(8001)], lowered).verdicts).toEqual(["split"]);
    expect(plan(SHARD, [overrun(10_000), charge(8001)], lowered).verdicts).toEqual([
      "written",
      "split",
    ]);
  });

  it("never lets one shard of several expire", () => {
    const expiring = { ...SHARD, expiresAtSeconds: NOW_MS / 1000 + 60 };
    const planned = plan(expiring, [take(1000)]);
    expect(after(expiring, planned).expiresAtSeconds).toBeUndefined();
  });

  it("refills a further shard with its share, and brings it under its share of changed limits", () => {
    const further = { shard: 1, divisor: 2, tokens: { tpm: 0 } };
    const half = plan(further, [take(500)], { nowMs: NOW_MS + 1000 });
    expect(after(further, half).bucket).toMatchObject({ balances: [0, 0, 500] });
    expect(plan(further, [take(501)], { nowMs: NOW_MS + 1000 }).verdicts).toEqual(["refused"]);
    const raised = plan(further, [take(0)], { policy: RAISED });
    expect(after(further, raised).bucket.limits[0]!.capacityMilli).toBe(60_000);
  });

  it("requires and reports the shard that it was decided for", () =>
    expect(plan(SHARD, [take(1)]).write!.incarnation).toEqual({
      creation: "other.0000",
      divisor: 2,
    }));
});

describe("what a write requires beside its slot", () => {
  it.each<[string, StoredShard | undefined, readonly WriteIntent[], unknown]>([
    ["the version, when it takes", {}, [take(1)], { version: 5, refilledAtMs: undefined }],
    ["the version, when it gives back", {}, [giveBack(1)], { version: 5, refilledAtMs: undefined }],
    [
      "the version and the stamp, when it refills",
      { tokens: { tpm: 0 }, refilledAtMs: NOW_MS - 1000 },
      [take(1000)],
      { version: 5, refilledAtMs: NOW_MS - 1000 },
    ],
    ["no bucket, when it creates one", undefined, [take(1)], undefined],
  ])("is %s", (_, stored, intents, required) =>
    expect(plan(stored, intents).write!.requires).toEqual(required),
  );
});

describe("one write", () => {
  const twin = buildPolicy([TPM], "resource");

  it("carries acquires under the same limits, and whatever gives back or owes beside them", () => {
    expect(carry([take(1), POLICY], [giveBack(1), RAISED], [take(1), twin])).toBe(3);
    expect(carry([overrun(1), RAISED], [take(1), POLICY], [take(1), POLICY])).toBe(3);
    expect(carry()).toBe(0);
  });

  it("carries acquires up to the first that is decided with other limits", () => {
    expect(carry([take(1), POLICY], [take(1), POLICY], [take(1), RAISED])).toBe(2);
    expect(carry([take(1), POLICY], [take(1), buildPolicy([TPM], "entity")])).toBe(1);
    const inherited = new Map([["tpm", "system" as const]]);
    const other = buildPolicy([TPM], "resource", { inherited });
    expect(carry([take(1), POLICY], [take(1), other])).toBe(1);
  });

  it("carries nothing else beside limits that a call brought along", () => {
    expect(carry([take(1), OVERRIDE], [take(1), OVERRIDE])).toBe(1);
    expect(carry([giveBack(1), POLICY], [take(1), OVERRIDE])).toBe(1);
  });

  it("carries nothing else beside limits that a refusal was decided with", () => {
    const limits: WriteIntent = { ...take(0), kind: "applyLimits" };
    expect(carry([limits, POLICY], [giveBack(1), POLICY])).toBe(1);
    expect(carry([giveBack(1), POLICY], [limits, POLICY])).toBe(1);
  });
});

function carry(...open: readonly (readonly [WriteIntent, Policy])[]): number {
  return countCarried(open.map(([intent, policy]) => ({ intent, policy })));
}

function take(tpm: number): WriteIntent {
  return { kind: "take", costs: { tpm }, isCascaded: false, requests: 1, policy: POLICY };
}

function charge(tpm: number): WriteIntent {
  return { ...take(tpm), kind: "charge", requests: 0 };
}

function overrun(tpm: number, incarnation?: BucketIncarnation): WriteIntent {
  return {
    kind: "overrun",
    costs: { tpm },
    isCascaded: false,
    requests: 0,
    policy: POLICY,
    incarnation,
  };
}

function giveBack(tpm: number, incarnation?: BucketIncarnation): WriteIntent {
  return { ...overrun(-tpm, incarnation), kind: "giveBack" };
}

function takenUntil(expiredAtMs: number): BucketIncarnation {
  return {
    creation: "me000.0001",
    divisor: 1,
    splitAtMs: undefined,
    expiredBySeconds: expiredAtMs / 1000,
  };
}

function plan(
  stored: StoredShard | undefined,
  intents: readonly WriteIntent[],
  further: Partial<PlanRequest> = {},
): Plan {
  const nowMs = further.nowMs ?? NOW_MS;
  return planWrite({
    key: shardKey(),
    intents,
    policy: POLICY,
    image: stored === undefined ? undefined : shardImage(stored),
    nowMs,
    asOfMs: nowMs,
    tickMs: 1,
    outcomes: newMarker(),
    writeUnits: 1,
    ttlMultiplier: 7,
    ...further,
  });
}

function getInput({ write }: Plan): ExpressionInput {
  return write!.request.input("limits");
}

/** The shard after the planned write. */
function after(stored: StoredShard, planned: Plan): BucketImage {
  return parseBucketItem(update(shardItem(stored), getInput(planned))!);
}
