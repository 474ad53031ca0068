import { expect, it } from "vitest";
import { bucketProcess, grant, requestFor } from "../../../../test/support/bucket-process.ts";
import { ScriptedTable, SkippingClock } from "../../../../test/support/scripted-table.ts";
import { NOW_MS } from "../../../../test/support/shard-images.ts";
import { RateLimiterUnavailable } from "../../../core/errors.ts";
import { Limit } from "../../../core/limit.ts";

it("a process bounds its acquires and charges in progress, but no end of a lease", async () => {
  const process = bucketProcess({
    transport: new ScriptedTable(),
    tableName: "table",
    clock: new SkippingClock(NOW_MS),
    seed: 1,
    config: () => ({ limits: [Limit.perDay("tpm", 100)] }),
    maxShards: 1,
    maxUnderWay: 3,
  });
  const { buckets } = process;
  const lease = await grant(process, call(10));
  const outcomes = await Promise.allSettled([
    buckets.consume(call(1)),
    buckets.consume(call(20)),
    buckets.charge(call(30)),
    ...(["consume", "charge"] as const).map(async (name) => buckets[name](call(40))),
    buckets.giveBack(lease),
  ]);
  expect(outcomes.map(({ status }) => status)).toEqual([
    "fulfilled",
    "fulfilled",
    "fulfilled",
    "rejected",
    "rejected",
    "fulfilled",
  ]);
  const { reason } = outcomes[4] as PromiseRejectedResult;
  expect(reason).toBeInstanceOf(RateLimiterUnavailable);
  expect(String(reason)).toContain("overloaded: 3 calls are waiting");
  expect(await buckets.consume(call(49))).toMatchObject({ granted: true });
  expect(await buckets.consume(call(1))).toMatchObject({ granted: false });
});

function call(tpm: number): ReturnType<typeof requestFor> {
  return requestFor("e", { tpm });
}
