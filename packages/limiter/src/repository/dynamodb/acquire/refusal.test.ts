import { describe, expect, it } from "vitest";
import {
  createError,
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
import { buildPolicy, type Policy } from "../../../core/bucket/policy.ts";
import { Refusals } from "./refusal.ts";
import type { WantedClaim } from "./wanted-claim.ts";

const MEMORY_MS = 1000;
const POLICY = buildPolicy([TPM], "resource");
const RAISED = buildPolicy([Limit.perMinute("tpm", 120)], "resource");
const EMPTY = { tokens: { tpm: 500 } };

describe("what is remembered of a bucket", () => {
  it("may refuse a call while it is fresh", () => {
    const { refusals, clock } = remembering([EMPTY]);
    const call = { claims: [wanting(1)], begun: 2 };
    expect(refusals.mayRefuse(call)).toBe(true);
    clock.set(NOW_MS + MEMORY_MS - 1);
    expect(refusals.mayRefuse(call)).toBe(true);
    clock.set(NOW_MS + MEMORY_MS);
    expect(refusals.mayRefuse(call)).toBe(false);
  });

  it("may refuse a call that it was asked for by, however old it is", () => {
    const { refusals, clock } = remembering([EMPTY]);
    clock.set(NOW_MS + MEMORY_MS);
    expect(refusals.mayRefuse({ claims: [wanting(1)], begun: 1 })).toBe(true);
  });

  it("may not refuse when the clock was set back since", () => {
    const { refusals, clock } = remembering([EMPTY]);
    clock.set(NOW_MS - 1);
    expect(refusals.mayRefuse({ claims: [wanting(1)], begun: 2 })).toBe(false);
  });

  it("may not refuse when a shard is missing, or another bucket of the call was never asked for", () => {
    const half = remembering([{ ...EMPTY, divisor: 2 }]);
    expect(half.refusals.mayRefuse({ claims: [wanting(1)], begun: 1 })).toBe(false);
    const { refusals } = remembering([EMPTY]);
    const parent = { ...wanting(1), key: shardKey(0, "parent") };
    expect(refusals.mayRefuse({ claims: [wanting(1), parent], begun: 1 })).toBe(false);
  });
});

describe("a refusal", () => {
  it("names what was short then, and what is left of the wait, a millisecond at least", () => {
    const { refusals } = remembering([EMPTY]);
    const call = { claims: [wanting(2)], begun: 2 };
    // A token is earned in a second, so the second one is there in 1.5 s.
    for (const [lateMs, retryAfterSeconds] of [
      [0, 1.5],
      [1, 1.499],
      [1499, 0.001],
      [1500, 0.001],
      [9000, 0.001],
    ] as const)
      expect(refusals.refuse(call, NOW_MS, NOW_MS + lateMs)).toMatchObject({
        granted: false,
        statuses: [{ limitName: "tpm", exceeded: true, available: 0, retryAfterSeconds }],
      });
    const never = { claims: [wanting(61)], begun: 2 };
    expect(refusals.refuse(never, NOW_MS, NOW_MS + 10)).toMatchObject({
      statuses: [{ retryAfterSeconds: Infinity }],
    });
  });

  it("shows every limit, at once, and counts when it was asked for before the call", async () => {
    const { refusals, counts } = remembering([EMPTY]);
    const outcome = refusals.refuse({ claims: [wanting(1)], begun: 2 }, NOW_MS, NOW_MS);
    expect(outcome).toMatchObject({
      granted: false,
      statuses: [{ available: 0, requested: 1, exceeded: true, retryAfterSeconds: 0.5 }],
    });
    expect(counts.refusalsFromMemory).toBe(1);
    await refusals.refuse({ claims: [wanting(1)], begun: 1 }, NOW_MS, NOW_MS);
    expect(counts.refusalsFromMemory).toBe(1);
  });

  it("is none when the bucket holds the call by now", () => {
    const { refusals, counts } = remembering([EMPTY]);
    const laterMs = NOW_MS + 500;
    expect(refusals.refuse({ claims: [wanting(1)], begun: 2 }, laterMs, laterMs)).toBeUndefined();
    expect(counts.refusalsFromMemory).toBe(0);
  });

  it("adds up what all shards hold", () => {
    const { refusals } = remembering([
      { ...EMPTY, divisor: 2 },
      { ...EMPTY, divisor: 2, shard: 1 },
    ]);
    const call = { claims: [wanting(2)], begun: 2 };
    expect(refusals.statuses(call.claims, NOW_MS)).toMatchObject([{ available: 1 }]);
  });

  it("writes changed limits to every shard that shows others, before the caller gets it", async () => {
    const { refusals, table, known } = remembering([
      { ...EMPTY, divisor: 2, limits: RAISED.limits },
      { ...EMPTY, divisor: 2, shard: 1 },
    ]);
    const outcome = refusals.refuse({ claims: [wanting(9, RAISED)], begun: 2 }, NOW_MS, NOW_MS);
    expect(await outcome).toMatchObject({ granted: false });
    expect(table.operations).toEqual(["UpdateItem"]);
    expect(known.getImage(shardKey(1))?.bucket.limits[0]!.limit).toEqual(RAISED.limits[0]);
  });

  it("is returned although its limits could not be written, if that is the table's fault", async () => {
    const call = { claims: [wanting(1, RAISED)], begun: 2 };
    const away = remembering([EMPTY]);
    away.table.faults.push({ instead: createError("ThrottlingException") });
    expect(await away.refusals.refuse(call, NOW_MS, NOW_MS)).toMatchObject({ granted: false });
    const denied = remembering([EMPTY]);
    denied.table.faults.push({ instead: createError("AccessDeniedException") });
    await expect(denied.refusals.refuse(call, NOW_MS, NOW_MS)).rejects.toThrow(
      "AccessDeniedException",
    );
  });
});

function wanting(tpm: number, policy: Policy = POLICY): WantedClaim {
  const costs = { tpm: tpm * 1000 };
  return {
    key: shardKey(),
    amounts: { tpm },
    costs,
    policy,
    parentId: undefined,
    isCascaded: false,
  };
}

/** A process that has just asked for these shards, by its first request. */
function remembering(shards: readonly StoredShard[]): Omit<ScriptedProcess, "counts"> & {
  readonly refusals: Refusals;
  readonly counts: { refusalsFromMemory: number };
} {
  const process = scriptedProcess({ maxAttempts: 1 });
  const { known, table, writer, clock } = process;
  const sent = known.stampRequest();
  for (const stored of shards) {
    table.put(shardItem(stored));
    known.remember(shardKey(stored.shard), shardImage(stored), sent);
  }
  const counts = { refusalsFromMemory: 0 };
  const refusals = new Refusals({
    known,
    writer,
    clock,
    refusalMemoryMs: MEMORY_MS,
    counts,
  });
  return { ...process, refusals, counts };
}
