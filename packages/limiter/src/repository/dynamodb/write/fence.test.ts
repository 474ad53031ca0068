/*
 * Takes whose writes got no answer and that no longer fit. Each test scripts what becomes of one
 * request after the other.
 */
import { describe, expect, it } from "vitest";
import { update } from "../../../../test/support/expression-evaluator.ts";
import {
  KEY,
  LOST,
  newMarker,
  newWriter,
  slotAttributes,
  take,
} from "../../../../test/support/scripted-writes.ts";
import {
  createError,
  type ScriptedTable,
  type Fault,
} from "../../../../test/support/scripted-table.ts";
import {
  NOW_MS,
  shardImage,
  shardItem,
  type StoredShard,
} from "../../../../test/support/shard-images.ts";
import { getStoredMilli } from "../../../core/bucket/bucket.ts";
import {
  parseBucketItem,
  SLOT_COUNT,
  slotAttribute,
  type BucketImage,
} from "../items/bucket-item.ts";
import { getNumber, getString, type AttributeMap } from "../transport/attribute-values.ts";
import { buildFence } from "./fence.ts";

/** A take of 1000 fits, and does not once another process has taken as much. */
const STORED = { tokens: { tpm: 1500 } };
const TAKEN = { tokens: { tpm: 400 } };
const OTHERS = Array.from({ length: SLOT_COUNT }, () => "other.0001");

describe("a take that got no answer and no longer fits", () => {
  it("is refused when a fence shows that it was not applied", async () => {
    const { writer, table } = newWriter(STORED);
    overtake(table);
    expect(await writer.write(KEY, take(1000))).toMatchObject({ kind: "refused" });
    expect(table.operations).toHaveLength(3);
    expect(tokens(table)).toBe(400);
  });

  it("changes nothing when it arrives after the fence", async () => {
    const { writer, table } = newWriter(STORED);
    const late = overtake(table);
    await writer.write(KEY, take(1000));
    table.rewrite({ b_tpm_tk: { N: "1500" } });
    expect(late.arrive()).toBe(false);
    expect(tokens(table)).toBe(1500);
  });

  it.each([
    ["free", STORED, 0],
    ["its own already", { tokens: { tpm: 2500 } }, 1],
  ] as const)(
    "is granted when it arrives before the fence, which shows it, where the slot was %s",
    async (_, stored, earlierTakes) => {
      const { writer, table } = newWriter(stored);
      for (let takes = 0; takes < earlierTakes; takes += 1) await writer.write(KEY, take(1000));
      const late = overtake(table);
      const before = (): void => {
        table.rewrite({ b_tpm_tk: { N: "1500" } });
        expect(late.arrive()).toBe(true);
      };
      table.faults.push({ before });
      expect(await writer.write(KEY, take(1000))).toMatchObject({ kind: "applied" });
      expect(tokens(table)).toBe(500);
    },
  );

  it("is rejected as unknown when another writer takes its slot over before the fence", async () => {
    const { writer, table } = newWriter(STORED);
    overtake(table);
    table.faults.push({ before: () => table.rewrite(slotAttributes(OTHERS)) });
    await expect(writer.write(KEY, take(1000))).rejects.toThrow("outcome is unknown");
    expect(tokens(table)).toBe(400);
  });

  it.each<[string, Fault]>([
    ["after it was applied", { afterwards: LOST }],
    ["before it arrived", { instead: LOST }],
  ])("is refused when the fence's own answer is lost %s", async (_, fault) => {
    const { writer, table } = newWriter(STORED);
    overtake(table);
    table.faults.push(fault);
    expect(await writer.write(KEY, take(1000))).toMatchObject({ kind: "refused" });
    expect(table.operations).toHaveLength(4);
    expect(tokens(table)).toBe(400);
  });

  it("is rejected when every attempt at the fence is lost, and fences no more than it may", async () => {
    const { writer, table } = newWriter(STORED);
    overtake(table);
    table.faults.push({ instead: LOST }, { instead: LOST }, { instead: LOST });
    await expect(writer.write(KEY, take(1000))).rejects.toMatchObject({ ambiguous: true });
    expect(table.operations).toHaveLength(5);
  });

  it("is refused without a fence when the version has moved on and its slot has not", async () => {
    const { writer, table } = newWriter(STORED);
    await writer.write(KEY, take(1));
    overtake(table, { sv: { N: "6" } });
    expect(await writer.write(KEY, take(1000))).toMatchObject({ kind: "refused" });
    expect(table.operations).toHaveLength(3);
  });

  it("is refused without a fence when it had to refill and another has", async () => {
    const { writer, table, clock } = newWriter(TAKEN);
    clock.set(NOW_MS + 1000);
    overtake(table, { rf: { N: String(NOW_MS + 999) }, b_tpm_tk: { N: "300" } });
    expect(await writer.write(KEY, take(1000))).toMatchObject({ kind: "refused" });
    expect(table.operations).toHaveLength(2);
  });

  it("is rejected as unknown when the version has moved on and its slot is empty", async () => {
    const { writer, table } = newWriter(STORED);
    overtake(table, { sv: { N: "6" } });
    await expect(writer.write(KEY, take(1000))).rejects.toThrow("outcome is unknown");
    expect(table.operations).toHaveLength(2);
  });

  it("needs no fence when something else is written", async () => {
    const { writer, table } = newWriter(STORED);
    table.faults.push({});
    overtake(table);
    const [, refused, granted] = await Promise.all([
      writer.write(KEY, take(1)),
      writer.write(KEY, take(1000)),
      writer.write(KEY, take(100)),
    ]);
    expect([refused.kind, granted.kind]).toEqual(["refused", "applied"]);
    expect(table.operations).toHaveLength(4);
    expect(tokens(table)).toBe(300);
  });
});

describe("a fence", () => {
  it("writes an id and the counter of write units, and nothing else", async () => {
    const { writer, table } = newWriter(STORED);
    overtake(table);
    let before: AttributeMap = {};
    table.faults.push({ before: () => void (before = table.item) });
    await writer.write(KEY, take(1000));
    const after = table.item;
    const changed = Object.keys(after).filter(
      (name) => JSON.stringify(after[name]) !== JSON.stringify(before[name]),
    );
    expect(changed).toHaveLength(2);
    expect(changed).toContain("b_wcu_tc");
    expect(listSlots(table).filter((id) => id !== undefined)).toHaveLength(1);
    // The write before it failed, and it counts for both.
    expect(getNumber(after["b_wcu_tc"])! - getNumber(before["b_wcu_tc"])!).toBe(2);
  });

  it.each<[string, StoredShard]>([
    ["version", { version: 6 }],
    ["creation", { creation: "third.0000" }],
    ["slot", { slots: ["other.0002"] }],
  ])("is for the %s that it was decided with", (_, changed) => {
    const seen = { ...STORED, slots: ["other.0001"] };
    const fence = buildFence(shardImage(seen), {
      key: KEY,
      nowMs: NOW_MS,
      outcomes: newMarker({ slot: 0 }),
      writeUnits: 1,
    })!;
    expect(update(shardItem(seen), fence.request.input("limits"))).toMatchObject({
      o0: { S: fence.mark!.id },
    });
    expect(
      update(shardItem({ ...seen, ...changed }), fence.request.input("limits")),
    ).toBeUndefined();
    expect(update({}, fence.request.input("limits"))).toBeUndefined();
  });

  it("creates no item", async () => {
    const { writer, table } = newWriter(STORED);
    overtake(table);
    table.faults.push({ before: () => table.items.clear() }, { instead: createError("Denied") });
    await expect(writer.write(KEY, take(1000))).rejects.toThrow("Denied");
    expect(table.items.size).toBe(0);
  });
});

describe("a creation that got no answer", () => {
  it("was applied when the bucket is its own, whichever write has its slot by now", async () => {
    const { writer, table } = newWriter(undefined);
    const before = (): void => {
      const slot = listSlots(table).findIndex((id) => id !== undefined);
      table.rewrite({ [slotAttribute(slot)]: { S: "other.0001" } });
    };
    table.faults.push({ afterwards: LOST }, { before });
    expect(await writer.write(KEY, take(1000))).toMatchObject({ kind: "applied" });
    expect(tokens(table)).toBe(59_000);
  });

  it("was not applied when another process has created the bucket, which is decided with then", async () => {
    const { writer, table } = newWriter(undefined);
    const before = (): void => table.put(shardItem({ ...STORED, slots: OTHERS }));
    table.faults.push({ instead: LOST }, { before });
    expect(await writer.write(KEY, take(1000))).toMatchObject({ kind: "applied" });
    expect(tokens(table)).toBe(500);
  });

  it("and no longer fits into the bucket of another process is refused after a fence", async () => {
    const { writer, table } = newWriter(undefined);
    const before = (): void => table.put(shardItem({ ...TAKEN, slots: OTHERS }));
    table.faults.push({ instead: LOST }, { before });
    expect(await writer.write(KEY, take(1000))).toMatchObject({ kind: "refused" });
    expect(table.operations).toEqual(["PutItem", "PutItem", "UpdateItem"]);
    expect(tokens(table)).toBe(400);
  });
});

/**
 * The first attempt is lost and can be made to arrive, and before the second one another process
 * takes what was left.
 */
function overtake(
  table: ScriptedTable,
  changed?: AttributeMap,
): { readonly arrive: () => boolean } {
  const late = { arrive: (): boolean => false };
  const before = (): void => table.rewrite({ b_tpm_tk: { N: "400" }, ...changed });
  table.faults.push({ instead: LOST, late: (arrive) => (late.arrive = arrive) }, { before });
  return late;
}

function tokens(table: ScriptedTable): number {
  return getStoredMilli(parseBucketItem(table.item).bucket, 0);
}

function listSlots(table: ScriptedTable): BucketImage["slots"] {
  return Array.from({ length: SLOT_COUNT }, (_, slot) =>
    getString(table.item[slotAttribute(slot)]),
  );
}
