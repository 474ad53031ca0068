import { describe, expect, it } from "vitest";
import {
  bucketProcess,
  NAMESPACE_ID,
  requestFor,
  type BucketProcess,
} from "../../../../test/support/bucket-process.ts";
import {
  createError,
  ScriptedTable,
  SkippingClock,
  type Fault,
} from "../../../../test/support/scripted-table.ts";
import { NOW_MS } from "../../../../test/support/shard-images.ts";
import { PermissionDenied } from "../../../core/errors.ts";
import { Limit } from "../../../core/limit.ts";
import { buildPolicy } from "../../../core/bucket/policy.ts";
import { bucketKey } from "../items/bucket-key.ts";
import { buildEnds } from "./lease-end.ts";
import type { ReceiptPart } from "./receipt.ts";

it("gives back several takes of a lease in one write, unless their sum is not exact", () => {
  const most = Number.MAX_SAFE_INTEGER;
  const given = [-1000, -(most - 1000), -1, -most].map((tpm, index) => ({
    part: PART,
    amounts: { tpm },
    requests: -index,
  }));
  expect(buildEnds(given).map(({ costs, requests }) => [costs, requests])).toEqual([
    [{ tpm: -most }, -1],
    [{ tpm: -1 }, -2],
    [{ tpm: -most }, -3],
  ]);
});

it("what a lease took before a deletion or a split, and after it, goes back apart", () => {
  const parts = [
    PART,
    { ...PART, incarnation: { ...PART.incarnation, creation: "d" } },
    { ...PART, incarnation: { ...PART.incarnation, divisor: 2 } },
  ];
  const ends = buildEnds([...parts, ...parts].map((part) => ({ part, amounts: { tpm: -1000 } })));
  expect(ends.map(({ part, costs }) => [part, costs])).toEqual(
    parts.map((part) => [part, { tpm: -2000 }]),
  );
});

describe("a charge", () => {
  it("is written once, however many answers are lost before one comes", async () => {
    const { process, table } = newProcess();
    table.faults.push(LOST, ...times(7, GONE));
    await process.buckets.charge(requestFor("e", { tpm: 100 }));
    table.faults.push(LOST, ...times(7, GONE));
    await process.buckets.charge(requestFor("e", { tpm: 7 }));
    expect(await getBalance(process)).toBe(-47_000);
  });

  it("says that the outcome is unknown when none comes, and is not written again by the next", async () => {
    const { process, table } = newProcess();
    table.faults.push(LOST, ...times(8, GONE));
    await expect(process.buckets.charge(requestFor("e", { tpm: 100 }))).rejects.toThrow(
      "may have been written, wholly or in part: charging again could charge it twice",
    );
    await process.buckets.charge(requestFor("e", { tpm: 7 }));
    expect(await getBalance(process)).toBe(-47_000);
  });

  it("says that nothing was charged when it was not", async () => {
    const { process, table } = newProcess();
    table.faults.push(...times(9, { instead: createError("ThrottlingException") }));
    const charging = process.buckets.charge(requestFor("e", { tpm: 100 }));
    await expect(charging).rejects.toThrow(/^Nothing was charged\./);
    expect(table.items.size).toBe(0);
  });

  it("that is denied for one of its buckets says that another may have been written", async () => {
    const { process, table } = newProcess();
    const { resources, ...request } = requestFor("e", { tpm: 100 });
    const both = { ...request, resources: [...resources, { resource: "r2", amounts: { tpm: 1 } }] };
    const denied = { instead: createError("AccessDeniedException") };
    table.faults.push(denied, denied);
    await expect(process.buckets.charge(both)).rejects.toThrow(PermissionDenied);
    table.faults.push(denied);
    await expect(process.buckets.charge(both)).rejects.toThrow(
      "may have been written, wholly or in part: charging again could charge it twice",
    );
    expect(table.items.size).toBe(1);
  });
});

const RESET = createError("Error", { code: "ECONNRESET" });
const LOST: Fault = { afterwards: RESET };
const GONE: Fault = { instead: RESET };

function times(count: number, fault: Fault): readonly Fault[] {
  return Array.from({ length: count }, () => fault);
}

function newProcess(): { readonly process: BucketProcess; readonly table: ScriptedTable } {
  const table = new ScriptedTable();
  const process = bucketProcess({
    transport: table,
    tableName: "table",
    clock: new SkippingClock(NOW_MS),
    seed: 1,
    config: () => ({ limits: [Limit.perDay("tpm", 60)] }),
    maxShards: 1,
  });
  return { process, table };
}

async function getBalance({ known }: BucketProcess): Promise<number> {
  const key = bucketKey(
    { namespaceId: NAMESPACE_ID, entityId: "e", resource: "r", shard: 0 },
    undefined,
  );
  return (await known.readAll(key)).shards[0]!.image.bucket.balances[0]!;
}

const KEY = bucketKey({ namespaceId: "n", entityId: "e", resource: "r", shard: 0 }, undefined);
const PART: ReceiptPart = {
  key: KEY,
  entityId: "e",
  resource: "r",
  policy: buildPolicy([Limit.perSecond("tpm", 1)], "system"),
  amounts: { tpm: 1000 },
  requests: 1,
  isCascaded: false,
  incarnation: { creation: "c", divisor: 1, splitAtMs: undefined, expiredBySeconds: undefined },
};
