import { expect, it } from "vitest";
import { Limit } from "../../../core/limit.ts";
import { policyOf } from "../../../core/bucket/policy.ts";
import { bucketKey } from "../items/bucket-key.ts";
import { endsOf } from "./lease-end.ts";
import type { ReceiptPart } from "./receipt.ts";

it("gives back several takes of a lease in one write, unless their sum is not exact", () => {
  const most = Number.MAX_SAFE_INTEGER;
  const given = [-1000, -(most - 1000), -1, -most].map((tpm, index) => ({
    part: PART,
    amounts: { tpm },
    requests: -index,
  }));
  expect(endsOf(given).map(({ costs, requests }) => [costs, requests])).toEqual([
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
  const ends = endsOf([...parts, ...parts].map((part) => ({ part, amounts: { tpm: -1000 } })));
  expect(ends.map(({ part, costs }) => [part, costs])).toEqual(
    parts.map((part) => [part, { tpm: -2000 }]),
  );
});

const KEY = bucketKey({ namespaceId: "n", entityId: "e", resource: "r", shard: 0 }, undefined);
const PART: ReceiptPart = {
  key: KEY,
  entityId: "e",
  resource: "r",
  policy: policyOf([Limit.perSecond("tpm", 1)], "system"),
  amounts: { tpm: 1000 },
  requests: 1,
  isCascaded: false,
  incarnation: { creation: "c", divisor: 1, splitAtMs: undefined, expiredBySeconds: undefined },
};
