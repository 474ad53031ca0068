import { describe, expect, it } from "vitest";
import { heldAnswer } from "../../../../test/support/held-answer.ts";
import { KEY, LOST, newWriter, POLICY, take } from "../../../../test/support/scripted-writes.ts";
import {
  createError,
  type Fault,
  type ScriptedProcess,
  type ScriptedTable,
} from "../../../../test/support/scripted-table.ts";
import {
  NOW_MS,
  shardImage,
  shardItem,
  TPM,
  type StoredShard,
} from "../../../../test/support/shard-images.ts";
import { getStoredMilli } from "../../../core/bucket/bucket.ts";
import { Limit } from "../../../core/limit.ts";
import { buildPolicy, type Policy } from "../../../core/bucket/policy.ts";
import { parseBucketItem, type BucketImage } from "../items/bucket-item.ts";
import type { PolicyResolver } from "../cache/policy-resolver.ts";
import { MAX_OVERTAKEN } from "./bucket-writer.ts";
import type { RepeatableOperation, WriteIntent } from "./write-intent.ts";

const RAISED = buildPolicy([Limit.perMinute("tpm", 120)], "resource");
const STORED = { tokens: { tpm: 50_000 } };

const THROTTLED = createError("ThrottlingException");
const TABLE_WIDE = createError("ThrottlingException", {
  ThrottlingReasons: [{ reason: "TableWriteMaxOnDemandThroughputExceeded" }],
});

describe("a writer", () => {
  it("creates a bucket, and carries those that came meanwhile in one write", async () => {
    const { writer, table, counts } = newWriter(undefined);
    const all = await Promise.all([1, 2, 3].map(() => writer.write(KEY, take(1000))));
    expect(all.map(({ kind }) => kind)).toEqual(["applied", "applied", "applied"]);
    expect(table.operations).toEqual(["PutItem", "UpdateItem"]);
    expect(counts).toEqual({ writes: 2, failedConditions: 0, batches: 2, batchedOperations: 3 });
    expect(getStoredMilli(readStored(table).bucket, 0)).toBe(57_000);
  });

  it("decides again with what a failed condition shows, and counts what that cost", async () => {
    const { writer, table, counts, known } = newWriter(STORED);
    table.put(shardItem({ tokens: { tpm: 1500 }, version: 6 }));
    expect(await writer.write(KEY, take(1000))).toMatchObject({ kind: "applied" });
    expect(counts).toMatchObject({ writes: 1, failedConditions: 1 });
    // One unit for the item as it was, one for the condition that failed, one for the write.
    expect(readStored(table).writes).toBe(3);
    expect(known.getImage(KEY)).toEqual(readStored(table));
  });

  it("keeps the image of a shard while a write is under way, and lets go of it afterwards", async () => {
    const { writer, table, known, clock } = newWriter(STORED);
    const meanwhile: unknown[] = [];
    const before = (): void => {
      known.forget(KEY.text);
      meanwhile.push(known.getImage(KEY)?.version);
    };
    table.faults.push({ before });
    await writer.write(KEY, take(1000));
    await clock.advance(0);
    known.forget(KEY.text);
    expect([meanwhile, known.getImage(KEY)]).toEqual([[5], undefined]);
  });

  it("fails only the member whose policy cannot be read", async () => {
    const resolveFor = (policy: Policy): Policy | Promise<Policy> =>
      policy === RAISED ? Promise.reject(new Error("away")) : policy;
    const { writer, table } = newWriter(STORED, { resolver: { resolveFor } });
    const unread = { ...take(1000), policy: RAISED };
    const [first, failed, third] = await Promise.allSettled([
      writer.write(KEY, take(1000)),
      writer.write(KEY, unread),
      writer.write(KEY, take(1000)),
    ]);
    expect([first.status, failed.status, third.status]).toEqual([
      "fulfilled",
      "rejected",
      "fulfilled",
    ]);
    expect(getStoredMilli(readStored(table).bucket, 0)).toBe(48_000);
  });

  it("decides by the image that policies were read for, not by one that came meanwhile", async () => {
    const reading = heldAnswer<Policy>();
    const resolver: Pick<PolicyResolver, "resolveFor"> = {
      resolveFor: (_policy, _key, image) => (image?.version === 5 ? reading.promise : RAISED),
    };
    const { writer, table, known } = newWriter(STORED, { resolver });
    const writing = writer.write(KEY, take(1000));
    table.put(shardItem({ ...STORED, limits: RAISED.limits, version: 6 }));
    await known.read(KEY);
    reading.resolve(POLICY);
    expect(await writing).toMatchObject({ kind: "applied", policy: RAISED });
    expect(readStored(table).bucket.limits[0]!.limit).toEqual(RAISED.limits[0]);
  });

  it("returns the shard that was written to, although it was split before the answer came", async () => {
    const { writer, table, known } = newWriter(STORED);
    const split = shardImage({ divisor: 2, version: 6 });
    table.faults.push({ before: () => known.remember(KEY, split, known.stampRequest()) });
    expect(await writer.write(KEY, take(1000))).toMatchObject({ incarnation: { divisor: 1 } });
    expect(known.getImage(KEY)).toBe(split);
  });

  it("notifies its observer of every image and of throttled keys, not of a throttled table", async () => {
    const { writer, table, observed } = newWriter(STORED);
    table.faults.push({ instead: THROTTLED }, { instead: TABLE_WIDE });
    table.put(shardItem({ ...STORED, version: 6 }));
    await writer.write(KEY, take(1000));
    expect(observed).toEqual(["throttled 0", "version 6", "version 6"]);
  });
});

describe("a write that was overtaken", () => {
  it("by a refill is judged as of that refill", async () => {
    const { writer, table, clock } = newWriter({ tokens: { tpm: 0 } });
    clock.set(NOW_MS + 1000);
    const refilled = shardItem({ tokens: { tpm: 0 }, refilledAtMs: NOW_MS + 1000 });
    const before = (): void => {
      table.put(refilled);
      clock.set(NOW_MS + 1005);
    };
    table.faults.push({ before });
    expect(await writer.write(KEY, take(1))).toMatchObject({
      kind: "refused",
      atMs: NOW_MS + 1000,
    });
  });

  it("waits for the next tick when only the exact time holds what it takes", async () => {
    const { writer, table, clock } = newWriter({ tokens: { tpm: 500 } });
    clock.set(NOW_MS + 1001);
    table.put(shardItem({ tokens: { tpm: 400 }, refilledAtMs: NOW_MS + 1 }));
    expect(await writer.write(KEY, take(1400))).toMatchObject({ kind: "applied" });
    expect(readStored(table).bucket.refilledAtMs).toBe(NOW_MS + 1002);
  });

  it("every time fails its acquires, but no member that it did not carry and nothing that ends a lease", async () => {
    const { writer, table } = newWriter(STORED);
    let version = 6;
    const overtake = { before: () => table.put(shardItem({ ...STORED, version: version++ })) };
    table.faults.push({}, ...Array.from({ length: MAX_OVERTAKEN }, () => overtake));
    const [, acquire, end, untried] = await Promise.allSettled([
      writer.write(KEY, take(1)),
      writer.write(KEY, take(1)),
      writer.write(KEY, giveBack(1000)),
      writer.write(KEY, { ...take(1), policy: RAISED }),
    ]);
    expect(acquire).toMatchObject({
      status: "rejected",
      reason: { message: expect.stringContaining("too much contention") },
    });
    expect([end.status, untried.status]).toEqual(["fulfilled", "fulfilled"]);
    expect(getStoredMilli(readStored(table).bucket, 0)).toBe(50_999);
  });
});

describe("a write that got no answer", () => {
  const [applied, arrivedNever] = [{ afterwards: LOST }, { instead: LOST }];

  it.each<[string, Fault]>([
    ["although it was applied", applied],
    ["because it never arrived", arrivedNever],
  ])("is repeated, and happens once, %s", async (_, fault) => {
    const { writer, table } = newWriter(STORED);
    table.faults.push(fault);
    expect(await writer.write(KEY, take(1000))).toMatchObject({ kind: "applied" });
    expect(getStoredMilli(readStored(table).bucket, 0)).toBe(49_000);
  });

  it.each<[string, Fault]>([
    ["although it was applied", applied],
    ["because it never arrived", arrivedNever],
  ])("happens once when its caller tries again, %s", async (_, fault) => {
    const { writer, table } = newWriter(STORED, { maxAttempts: 1 });
    const operation: RepeatableOperation = { history: undefined };
    table.faults.push(fault);
    const end = { ...giveBack(1000), operation };
    await expect(writer.write(KEY, end)).rejects.toMatchObject({ ambiguous: true });
    expect(await writer.write(KEY, end)).toMatchObject({ kind: "applied" });
    expect(getStoredMilli(readStored(table).bucket, 0)).toBe(51_000);
  });

  it("was not applied once a later write of the process was", async () => {
    const { writer, table } = newWriter(STORED, { maxAttempts: 1 });
    const operation: RepeatableOperation = { history: undefined };
    table.faults.push(arrivedNever);
    await expect(writer.write(KEY, { ...giveBack(1000), operation })).rejects.toThrow();
    await writer.write(KEY, take(1));
    expect(operation.history?.fate).toBe("not applied");
  });

  it("is not granted when another process took its slot over", async () => {
    const { writer, table } = lostForGood();
    await expect(writer.write(KEY, take(1000))).rejects.toThrow("outcome is unknown");
    expect(getStoredMilli(readStored(table).bucket, 0)).toBe(50_000);
  });

  it("is not given back twice when that happened", async () => {
    const { writer, table } = lostForGood();
    expect(await writer.write(KEY, giveBack(1000))).toMatchObject({ kind: "applied" });
    expect(getStoredMilli(readStored(table).bucket, 0)).toBe(50_000);
  });

  it("is neither charged again nor assumed to be when that happened to a charge", async () => {
    const { writer, table } = lostForGood();
    const charge = { ...take(1000), kind: "charge", requests: 0 } as const;
    await expect(writer.write(KEY, charge)).rejects.toThrow("outcome is unknown");
    expect(getStoredMilli(readStored(table).bucket, 0)).toBe(50_000);
  });

  it("is charged when that happened, without what it gave back", async () => {
    const { writer, table } = lostForGood({ limits: [TPM, Limit.perMinute("rpm", 60)] });
    const costs = { tpm: 1000, rpm: -1000 };
    await writer.write(KEY, { ...take(0), kind: "overrun", costs });
    expect(readStored(table).bucket.balances.filter((_, index) => index % 3 === 0)).toEqual([
      30_000, 49_000,
    ]);
  });
});

function giveBack(tpm: number): WriteIntent {
  return {
    kind: "giveBack",
    costs: { tpm: -tpm },
    isCascaded: false,
    requests: 0,
    policy: POLICY,
  };
}

function readStored({ items }: ScriptedTable): BucketImage {
  return parseBucketItem([...items.values()][0]!);
}

/** The first attempt never arrives, and another process uses its slot before the second one. */
function lostForGood(further: StoredShard = {}): ScriptedProcess {
  const image = { ...STORED, tokens: { tpm: 50_000, rpm: 30_000 }, ...further };
  const made = newWriter(image);
  const slots = ["other.0001", "other.0001", "other.0001", "other.0001"];
  const before = (): void => made.table.put(shardItem({ ...image, slots }));
  made.table.faults.push({ instead: LOST }, { before });
  return made;
}
