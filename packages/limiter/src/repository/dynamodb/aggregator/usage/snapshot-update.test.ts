import { describe, expect, it } from "vitest";
import { bucketItem, buildRecord } from "../../../../../test/support/usage-process.ts";
import { snapshotUpdate, writableSums } from "./snapshot-update.ts";
import { usageSums, type UsageSum } from "./usage-sums.ts";

/** The sum of buckets that consume all limits, own and cascaded, on so many shards. */
function addUp({ shards, limits }: { readonly shards: number; readonly limits: number }): UsageSum {
  const totals = Array.from({ length: limits }, (_, limit) => [
    [`b_limit-${limit}_tc`, 2 + limit],
    [`b_limit-${limit}_cc`, 1000 + limit],
  ]).flat();
  const attributes = { ...Object.fromEntries(totals), gr: 1, gc: 1 } as Record<string, number>;
  const records = Array.from({ length: shards }, (_, shard) =>
    buildRecord({ after: bucketItem(attributes, shard), atMs: 0, number: shard + 1 }),
  );
  return usageSums(records, ["hourly"]).sums[0]!;
}

describe("the write of a snapshot", () => {
  it("fits DynamoDB's limits for a bucket with 32 limits on 64 shards", () => {
    const sums = writableSums(addUp({ shards: 64, limits: 32 }));
    expect(sums).toHaveLength(1);
    const update = snapshotUpdate(sums[0]!, 90) as Readonly<Record<string, string>>;
    expect(Buffer.byteLength(update["UpdateExpression"]!)).toBeLessThan(4096);
    expect(Buffer.byteLength(update["ConditionExpression"]!)).toBeLessThan(4096);
    const operators = update["ConditionExpression"]!.match(/attribute_not_exists|OR|AND|</g)!;
    expect(operators.length).toBeLessThan(300);
  });

  it("is divided by shards where there are more, without losing any", () => {
    const sum = addUp({ shards: 150, limits: 1 });
    const sums = writableSums(sum);
    expect(sums.length).toBeGreaterThan(2);
    expect(sums.flatMap(({ parts }) => parts)).toEqual(sum.parts);
  });

  it("adds totals beyond the safe range exactly", () => {
    const records = [0, 1].map((shard) =>
      buildRecord({ after: bucketItem({ b_rpm_tc: 2 ** 53 - 1 }, shard), atMs: 0, number: 1 }),
    );
    const [sum] = usageSums(records, ["hourly"]).sums;
    expect(JSON.stringify(snapshotUpdate(sum!, 90))).toContain('{"N":"18014398509481982"}');
  });
});
