/*
 * Takes that were rejected, though their writes were or may have been applied.
 */
import { describe, expect, it } from "vitest";
import {
  KEY,
  LOST,
  newWriter,
  slotAttributes,
  take,
} from "../../../../test/support/scripted-writes.ts";
import { ScriptedTable, type ScriptedProcess } from "../../../../test/support/scripted-table.ts";
import { shardImage, shardItem, TPM } from "../../../../test/support/shard-images.ts";
import { getStoredMilli } from "../../../core/bucket/bucket.ts";
import { Limit } from "../../../core/limit.ts";
import { buildPolicy, type Policy } from "../../../core/bucket/policy.ts";
import { parseBucketItem, SLOT_COUNT } from "../items/bucket-item.ts";
import { getNumber } from "../transport/attribute-values.ts";

/** A take of 1000 fits, and does not once another process has taken as much. */
const STORED = { tokens: { tpm: 1500 } };
const OTHER = Limit.perDay("ipd", 9);
const OTHERS = Array.from({ length: SLOT_COUNT }, () => "other.0001");

describe("a take that was rejected, and turns out to have been applied", () => {
  it("is given back by the batch that learns of it, in the same write", async () => {
    const { writer, table } = await reject();
    expect(tokens(table)).toBe(500);
    await writer.write(KEY, take(1));
    expect(tokens(table)).toBe(1499);
    // The lost one, the one that shows it, and one for both.
    expect(table.operations).toHaveLength(3);
    expect(table.item["gr"]).toEqual({ N: "1" });
    await writer.write(KEY, take(1));
    expect(tokens(table)).toBe(1498);
  });

  it("is given back as it was counted, apart from what others lost by cascade", async () => {
    const { writer, table } = newWriter({ tokens: { tpm: 9000 } }, { maxAttempts: 1 });
    table.faults.push({}, { afterwards: LOST });
    // While the first is under way, the others wait, and share the second write.
    const calls = [take(500), take(1000), { ...take(2000), isCascaded: true }];
    const ended = await Promise.allSettled(calls.map(async (call) => writer.write(KEY, call)));
    expect(ended.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected"]);
    expect(readCounted(table)).toEqual([3500, 2000, 3, 1]);
    await writer.write(KEY, { ...take(7), isCascaded: true });
    expect(readCounted(table)).toEqual([507, 7, 2, 1]);
    expect(tokens(table)).toBe(8493);
  });

  it("is given back without a balance that it had not taken from", async () => {
    const shown = { tokens: { tpm: 1500, ipd: 5 }, limits: [TPM, OTHER] };
    const { writer, table, known } = newWriter(shown, { maxAttempts: 1 });
    table.rewrite({ b_ipd_hd: { N: "1" } });
    known.remember(KEY, parseBucketItem(table.item), known.stampRequest());
    table.faults.push({ afterwards: LOST });
    const counting = { ...take(1000), costs: { tpm: 1000, ipd: 2000 } };
    await expect(writer.write(KEY, counting)).rejects.toMatchObject({ ambiguous: true });
    expect(getNumber(table.item["b_ipd_tc"])).toBe(2000);
    await writer.write(KEY, take(1));
    expect(getNumber(table.item["b_tpm_tk"])).toBe(1499);
    expect(getNumber(table.item["b_ipd_tk"])).toBe(5);
    expect(getNumber(table.item["b_ipd_tc"])).toBe(0);
  });

  it("is given back to the limits that counted it", async () => {
    const ipd = { ...OTHER, counts: "tpm" };
    const policy = buildPolicy([TPM, ipd], "resource");
    const limits = [TPM, ipd];
    const shown = { tokens: { tpm: 9000, ipd: 9000 }, limits };
    const { writer, table } = newWriter(shown, { maxAttempts: 1 });
    table.faults.push({}, { afterwards: LOST });
    const all = [{ tpm: 100 }, { tpm: 1000 }, { tpm: 2000, ipd: 5 }];
    await Promise.allSettled(
      all.map(async (costs) => writer.write(KEY, { ...take(0), costs, policy })),
    );
    expect(readTokens(table)).toEqual([5900, 7895]);
    await writer.write(KEY, { ...take(1), policy });
    expect(readTokens(table)).toEqual([8899, 8899]);
  });

  it("serves the batch that gives it back", async () => {
    const { writer, table } = await reject();
    expect(await writer.write(KEY, take(1400))).toMatchObject({ kind: "applied" });
    expect(tokens(table)).toBe(100);
  });

  it("is given back even when the batch takes nothing", async () => {
    const { writer, table } = await reject();
    table.faults.push({ before: () => table.rewrite({ b_tpm_tk: { N: "100" } }) });
    expect(await writer.write(KEY, take(1200))).toMatchObject({ kind: "refused" });
    expect(tokens(table)).toBe(1100);
  });

  it("is given back once when the answer to that is lost", async () => {
    const { writer, table } = await reject();
    table.faults.push({}, { afterwards: LOST });
    await expect(writer.write(KEY, take(1))).rejects.toThrow();
    expect(tokens(table)).toBe(1499);
    // The second one was rejected and applied as well.
    await writer.write(KEY, take(10));
    expect(tokens(table)).toBe(1490);
    await writer.write(KEY, take(10));
    expect(tokens(table)).toBe(1480);
  });

  it("is given back once when the write of that never arrives, or arrives late", async () => {
    const { writer, table } = await reject();
    const late: (() => boolean)[] = [];
    table.faults.push({}, { instead: LOST, late: (arrive) => void late.push(arrive) });
    await expect(writer.write(KEY, take(1))).rejects.toThrow();
    expect(tokens(table)).toBe(500);
    await writer.write(KEY, take(10));
    expect(tokens(table)).toBe(1490);
    expect(late[0]!()).toBe(false);
  });

  it("is not given back again when it is unknown whether it was", async () => {
    const { writer, table } = await reject();
    table.faults.push({}, { instead: LOST });
    await expect(writer.write(KEY, take(1))).rejects.toThrow();
    table.rewrite(slotAttributes(OTHERS));
    await writer.write(KEY, take(10));
    await writer.write(KEY, take(10));
    expect(tokens(table)).toBe(480);
  });

  it("is given back although an older answer came in between", async () => {
    let isOvertaken = false;
    const resolveFor = async (policy: Policy): Promise<Policy> => {
      if (isOvertaken) known.remember(KEY, shardImage({ version: 4 }), known.stampRequest());
      isOvertaken = false;
      return policy;
    };
    const { writer, table, known } = await reject({ resolver: { resolveFor } });
    await known.read(KEY);
    isOvertaken = true;
    await writer.write(KEY, take(1));
    await writer.write(KEY, take(1));
    expect(tokens(table)).toBe(1498);
  });

  it("is not given back when it was granted after all", async () => {
    const { writer, table } = newWriter(STORED);
    table.faults.push({ afterwards: LOST });
    expect(await writer.write(KEY, take(1000))).toMatchObject({ kind: "applied" });
    await writer.write(KEY, take(1));
    expect(tokens(table)).toBe(499);
  });

  it("stays charged when another writer took its slot over", async () => {
    const { writer, table } = await reject();
    table.rewrite(slotAttributes(OTHERS));
    await writer.write(KEY, take(1));
    expect(tokens(table)).toBe(499);
  });

  it("stays charged when the shard was split since", async () => {
    const { writer, table } = await reject();
    table.rewrite({ shard_count: { N: "2" }, sv: { N: "6" } });
    await writer.write(KEY, take(1));
    await writer.write(KEY, take(1));
    expect(tokens(table)).toBe(498);
  });

  it("is charged to no bucket that was created in its place", async () => {
    const { writer, table } = await reject();
    table.put(shardItem({ ...STORED, creation: "third.0000" }));
    await writer.write(KEY, take(1));
    expect(tokens(table)).toBe(1499);
  });
});

/** A call whose only attempt was applied, and got no answer. */
async function reject(options: Parameters<typeof newWriter>[1] = {}): Promise<ScriptedProcess> {
  const made = newWriter(STORED, { maxAttempts: 1, ...options });
  made.table.faults.push({ afterwards: LOST });
  await expect(made.writer.write(KEY, take(1000))).rejects.toMatchObject({ ambiguous: true });
  return made;
}

/** Consumed and granted, each in all and by cascade. */
function readCounted({ item }: ScriptedTable): readonly unknown[] {
  return ["b_tpm_tc", "b_tpm_cc", "gr", "gc"].map((name) => getNumber(item[name]));
}

function readTokens({ item }: ScriptedTable): readonly unknown[] {
  return ["b_tpm_tk", "b_ipd_tk"].map((name) => getNumber(item[name]));
}

function tokens(table: ScriptedTable): number {
  return getStoredMilli(parseBucketItem(table.item).bucket, 0);
}
