/*
 * Takes whose writes got no answer: what a caller is told, what stays charged, and what a request
 * that arrives late still does. Each test scripts what becomes of one request after the other.
 */
import { seededRandom } from "zae-limiter/testing";
import { describe, expect, it } from "vitest";
import {
  named,
  scriptedProcess,
  ScriptedTable,
  type Fault,
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
import { storedMilli } from "../../../core/bucket/bucket.ts";
import { policyOf } from "../../../core/bucket/policy.ts";
import { imageOf, SLOT_COUNT, slotAttribute, type BucketImage } from "../items/bucket-item.ts";
import { stringOf, type AttributeMap } from "../transport/attribute-values.ts";
import type { WriteIntent } from "./write-intent.ts";

const KEY = shardKey();
const POLICY = policyOf([TPM], "resource");
const LOST = named("Error", { code: "ECONNRESET" });
/** A take of 1000 fits, and does not once another process has taken as much. */
const STORED = { tokens: { tpm: 1500 } };
const TAKEN = { tokens: { tpm: 400 } };
const OTHERS = Array.from({ length: SLOT_COUNT }, () => "other.0001");

describe("a take that got no answer and no longer fits", () => {
  it("is refused when a fence shows that it was not applied", async () => {
    const { writer, table } = process(STORED);
    overtaken(table);
    expect(await writer.write(KEY, take(1000))).toMatchObject({ kind: "refused" });
    expect(table.operations).toHaveLength(3);
    expect(tokens(table)).toBe(400);
  });

  it("changes nothing when it arrives after the fence", async () => {
    const { writer, table } = process(STORED);
    const late = overtaken(table);
    await writer.write(KEY, take(1000));
    rewrite(table, { b_tpm_tk: { N: "1500" } });
    expect(late.arrive()).toBe(false);
    expect(tokens(table)).toBe(1500);
  });

  it("is granted when it arrives before the fence, which shows it", async () => {
    const { writer, table } = process(STORED);
    const late = overtaken(table);
    const before = (): void => {
      rewrite(table, { b_tpm_tk: { N: "1500" } });
      expect(late.arrive()).toBe(true);
    };
    table.faults.push({ before });
    expect(await writer.write(KEY, take(1000))).toMatchObject({ kind: "applied" });
    expect(tokens(table)).toBe(500);
  });

  it("is rejected as unknown when another writer takes its slot over before the fence", async () => {
    const { writer, table } = process(STORED);
    overtaken(table);
    table.faults.push({ before: () => rewrite(table, slotAttributes(OTHERS)) });
    await expect(writer.write(KEY, take(1000))).rejects.toThrow("outcome is unknown");
    expect(tokens(table)).toBe(400);
  });

  it.each<[string, Fault]>([
    ["after it was applied", { afterwards: LOST }],
    ["before it arrived", { instead: LOST }],
  ])("is refused when the fence's own answer is lost %s", async (_, fault) => {
    const { writer, table } = process(STORED);
    overtaken(table);
    table.faults.push(fault);
    expect(await writer.write(KEY, take(1000))).toMatchObject({ kind: "refused" });
    expect(table.operations).toHaveLength(4);
    expect(tokens(table)).toBe(400);
  });

  it("is rejected when every attempt at the fence is lost, and fences no more than it may", async () => {
    const { writer, table } = process(STORED);
    overtaken(table);
    table.faults.push({ instead: LOST }, { instead: LOST }, { instead: LOST });
    await expect(writer.write(KEY, take(1000))).rejects.toMatchObject({ ambiguous: true });
    expect(table.operations).toHaveLength(5);
  });

  it("is refused without a fence when the version has moved on and its slot has not", async () => {
    const { writer, table } = process(STORED);
    await writer.write(KEY, take(1));
    overtaken(table, { sv: { N: "6" } });
    expect(await writer.write(KEY, take(1000))).toMatchObject({ kind: "refused" });
    expect(table.operations).toHaveLength(3);
  });

  it("is refused without a fence when it had to refill and another has", async () => {
    const { writer, table, clock } = process(TAKEN);
    clock.set(NOW_MS + 1000);
    overtaken(table, { rf: { N: String(NOW_MS + 999) }, b_tpm_tk: { N: "300" } });
    expect(await writer.write(KEY, take(1000))).toMatchObject({ kind: "refused" });
    expect(table.operations).toHaveLength(2);
  });

  it("is rejected as unknown when the version has moved on and its slot is empty", async () => {
    const { writer, table } = process(STORED);
    overtaken(table, { sv: { N: "6" } });
    await expect(writer.write(KEY, take(1000))).rejects.toThrow("outcome is unknown");
    expect(table.operations).toHaveLength(2);
  });

  it("needs no fence when something else is written", async () => {
    const { writer, table } = process(STORED);
    table.faults.push({});
    overtaken(table);
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
    const { writer, table } = process(STORED);
    overtaken(table);
    let before: AttributeMap = {};
    table.faults.push({ before: () => void (before = itemOf(table)) });
    await writer.write(KEY, take(1000));
    const after = itemOf(table);
    const changed = Object.keys(after).filter(
      (name) => JSON.stringify(after[name]) !== JSON.stringify(before[name]),
    );
    expect(changed).toHaveLength(2);
    expect(changed).toContain("b_wcu_tc");
    expect(slotsOf(table).filter((id) => id !== undefined)).toHaveLength(1);
    // The write before it failed, and it counts for both.
    expect(Number(after["b_wcu_tc"]!.N) - Number(before["b_wcu_tc"]!.N)).toBe(2);
  });

  it.each<[string, AttributeMap]>([
    ["version", { sv: { N: "6" } }],
    ["creation", { cr: { S: "third.0000" } }],
  ])("is for the %s that it was decided with", async (_, changed) => {
    const { writer, table } = process(STORED);
    await writer.write(KEY, take(1));
    overtaken(table);
    const slots: unknown[] = [];
    const before = (): void => {
      rewrite(table, changed);
      slots.push(slotsOf(table));
    };
    table.faults.push({ before }, { before: () => void slots.push(slotsOf(table)) });
    expect(await writer.write(KEY, take(1000))).toMatchObject({ kind: "refused" });
    if (slots.length > 1) expect(slots[1]).toEqual(slots[0]);
    expect(table.operations.length).toBe(slots.length + 3);
    expect(slotsOf(table)).not.toEqual(changed["sv"] === undefined ? slots[0] : undefined);
  });

  it("creates no item", async () => {
    const { writer, table } = process(STORED);
    overtaken(table);
    table.faults.push({ before: () => table.items.clear() }, { instead: named("Denied") });
    await expect(writer.write(KEY, take(1000))).rejects.toThrow("Denied");
    expect(table.items.size).toBe(0);
  });
});

describe("a creation that got no answer", () => {
  it("was applied when the bucket is its own, whoever has its slot by now", async () => {
    const { writer, table } = process(undefined);
    const before = (): void => {
      const slot = slotsOf(table).findIndex((id) => id !== undefined);
      rewrite(table, { [slotAttribute(slot)]: { S: "other.0001" } });
    };
    table.faults.push({ afterwards: LOST }, { before });
    expect(await writer.write(KEY, take(1000))).toMatchObject({ kind: "applied" });
    expect(tokens(table)).toBe(59_000);
  });

  it("was not applied when another process has created the bucket, which is decided with then", async () => {
    const { writer, table } = process(undefined);
    const before = (): void => table.put(shardItem({ ...STORED, slots: OTHERS }));
    table.faults.push({ instead: LOST }, { before });
    expect(await writer.write(KEY, take(1000))).toMatchObject({ kind: "applied" });
    expect(tokens(table)).toBe(500);
  });

  it("and no longer fits into the bucket of another process is refused after a fence", async () => {
    const { writer, table } = process(undefined);
    const before = (): void => table.put(shardItem({ ...TAKEN, slots: OTHERS }));
    table.faults.push({ instead: LOST }, { before });
    expect(await writer.write(KEY, take(1000))).toMatchObject({ kind: "refused" });
    expect(table.operations).toEqual(["PutItem", "PutItem", "UpdateItem"]);
    expect(tokens(table)).toBe(400);
  });
});

describe("a take that was rejected, and turns out to have been applied", () => {
  it("is given back by the batch that learns of it, in the same write", async () => {
    const { writer, table } = await rejected();
    expect(tokens(table)).toBe(500);
    await writer.write(KEY, take(1));
    expect(tokens(table)).toBe(1499);
    // The lost one, the one that shows it, and one for both.
    expect(table.operations).toHaveLength(3);
    expect(itemOf(table)["gr"]).toEqual({ N: "1" });
    await writer.write(KEY, take(1));
    expect(tokens(table)).toBe(1498);
  });

  it("serves the batch that gives it back", async () => {
    const { writer, table } = await rejected();
    expect(await writer.write(KEY, take(1400))).toMatchObject({ kind: "applied" });
    expect(tokens(table)).toBe(100);
  });

  it("is given back even when the batch takes nothing", async () => {
    const { writer, table } = await rejected();
    table.faults.push({ before: () => rewrite(table, { b_tpm_tk: { N: "100" } }) });
    expect(await writer.write(KEY, take(1200))).toMatchObject({ kind: "refused" });
    expect(tokens(table)).toBe(1100);
  });

  it("is given back once when the answer to that is lost", async () => {
    const { writer, table } = await rejected();
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
    const { writer, table } = await rejected();
    let arrive = (): boolean => true;
    table.faults.push({}, { instead: LOST, late: (later) => (arrive = later) });
    await expect(writer.write(KEY, take(1))).rejects.toThrow();
    expect(tokens(table)).toBe(500);
    await writer.write(KEY, take(10));
    expect(tokens(table)).toBe(1490);
    expect(arrive()).toBe(false);
  });

  it("is not given back again when nobody can tell whether it was", async () => {
    const { writer, table } = await rejected();
    table.faults.push({}, { instead: LOST });
    await expect(writer.write(KEY, take(1))).rejects.toThrow();
    rewrite(table, slotAttributes(OTHERS));
    await writer.write(KEY, take(10));
    await writer.write(KEY, take(10));
    expect(tokens(table)).toBe(480);
  });

  it("stays charged when another writer took its slot over", async () => {
    const { writer, table } = await rejected();
    rewrite(table, slotAttributes(OTHERS));
    await writer.write(KEY, take(1));
    expect(tokens(table)).toBe(499);
  });

  it("stays charged when the shard was split since", async () => {
    const { writer, table } = await rejected();
    rewrite(table, { shard_count: { N: "2" }, sv: { N: "6" } });
    await writer.write(KEY, take(1));
    await writer.write(KEY, take(1));
    expect(tokens(table)).toBe(498);
  });

  it("is charged to no bucket that was created in its place", async () => {
    const { writer, table } = await rejected();
    table.put(shardItem({ ...STORED, creation: "third.0000" }));
    await writer.write(KEY, take(1));
    expect(tokens(table)).toBe(1499);
  });

  /** A call whose only attempt was applied, and got no answer. */
  async function rejected(): Promise<ScriptedProcess> {
    const made = process(STORED, { maxAttempts: 1 });
    made.table.faults.push({ afterwards: LOST });
    await expect(made.writer.write(KEY, take(1000))).rejects.toMatchObject({ ambiguous: true });
    return made;
  }
});

describe("processes whose requests are lost, late or unanswered", () => {
  const RUNS = Number(globalThis.process.env["RUNS"] ?? 60);

  it("never take less than they were granted, and keep little of what they were not", async () => {
    let [unresolved, calls] = [0, 0];
    for (let seed = 0; seed < RUNS; seed += 1) {
      const run = await runOf(seed);
      expect(run.leftMilli, `seed ${seed}: minted`).toBeLessThanOrEqual(run.keptMilli);
      expect(run.leftMilli, `seed ${seed}: lost`).toBeGreaterThanOrEqual(
        run.keptMilli - run.rejectedMilli,
      );
      unresolved += run.rejectedMilli;
      calls += 1;
    }
    expect(calls).toBe(RUNS);
    expect(unresolved).toBeGreaterThan(0);
  }, 60_000);

  /** Three processes, faults of all kinds, and late requests that arrive at any time, or never. */
  async function runOf(
    seed: number,
  ): Promise<{ leftMilli: number; keptMilli: number; rejectedMilli: number }> {
    const random = seededRandom(seed);
    const table = new ScriptedTable();
    const late: (() => boolean)[] = [];
    const item = shardItem({ tokens: { tpm: 20_000 } });
    table.put(item);
    // So slow that only what is taken moves.
    rewrite(table, { b_tpm_ra: { N: "1" }, b_tpm_rp: { N: "86400000000" } });
    const slow = policyOf(
      imageOf(itemOf(table)).bucket.limits.map(({ limit }) => limit),
      "resource",
    );
    const processes = [1, 2, 3].map((offset) =>
      scriptedProcess({ table, seed: seed * 10 + offset, maxAttempts: 2 }),
    );
    let [keptMilli, rejectedMilli] = [20_000, 0];
    for (let turn = 0; turn < 60; turn += 1) {
      const { writer } = processes[Math.floor(random() * 3)]!;
      table.faults.splice(0, Infinity, ...Array.from({ length: 6 }, () => drawn(random, late)));
      if (random() < 0.3 && late.length > 0)
        late.splice(Math.floor(random() * late.length), 1)[0]!();
      const batch = Array.from({ length: 1 + Math.floor(random() * 3) }, () => {
        const costs = { tpm: 1 + Math.floor(random() * 900) };
        const written = writer.write(KEY, { ...take(costs.tpm), policy: slow });
        return written.then(
          ({ kind }) => void (keptMilli -= kind === "applied" ? costs.tpm : 0),
          () => void (rejectedMilli += costs.tpm),
        );
      });
      await Promise.all(batch);
    }
    for (const arrive of late) arrive();
    return { leftMilli: tokens(table), keptMilli, rejectedMilli };
  }

  function drawn(random: () => number, late: (() => boolean)[]): Fault {
    const kind = random();
    if (kind < 0.15) return { instead: LOST, late: (arrive) => void late.push(arrive) };
    return kind < 0.3 ? { afterwards: LOST } : {};
  }
});

/**
 * The first attempt is lost and can be made to arrive, and before the second one another process
 * takes what was left.
 */
function overtaken(
  table: ScriptedTable,
  changed?: AttributeMap,
): { readonly arrive: () => boolean } {
  const late = { arrive: (): boolean => false };
  const before = (): void => rewrite(table, { b_tpm_tk: { N: "400" }, ...changed });
  table.faults.push({ instead: LOST, late: (arrive) => (late.arrive = arrive) }, { before });
  return late;
}

function take(tpm: number): WriteIntent {
  return { kind: "take", costs: { tpm }, requests: 1, policy: () => POLICY };
}

function itemOf({ items }: ScriptedTable): AttributeMap {
  return [...items.values()][0]!;
}

function tokens(table: ScriptedTable): number {
  return storedMilli(imageOf(itemOf(table)).bucket, 0);
}

function slotsOf(table: ScriptedTable): BucketImage["slots"] {
  return Array.from({ length: SLOT_COUNT }, (_, slot) =>
    stringOf(itemOf(table)[slotAttribute(slot)]),
  );
}

function slotAttributes(ids: readonly string[]): AttributeMap {
  return Object.fromEntries(ids.map((id, slot) => [slotAttribute(slot), { S: id }]));
}

/** Another process writes. */
function rewrite(table: ScriptedTable, changed: AttributeMap): void {
  const item = itemOf(table);
  const writes = Number(item["b_wcu_tc"]!.N) + 1;
  table.put({ ...item, b_wcu_tc: { N: String(writes) }, ...changed });
}

/** A process that knows a shard as it is stored. */
function process(
  image: StoredShard | undefined,
  options: { readonly maxAttempts?: number } = {},
): ScriptedProcess {
  const made = scriptedProcess(options);
  if (image === undefined) return made;
  made.table.put(shardItem(image));
  made.known.remember(KEY, shardImage(image), made.known.stampRequest());
  return made;
}
