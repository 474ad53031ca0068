import { expect, it } from "vitest";
import { CalmMerger } from "../../../src/repository/dynamodb/aggregator/shards/calm-merger.ts";
import { grant } from "../../support/bucket-process.ts";
import { ChangeRecords } from "../../support/bucket-changes.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { numbersIn } from "../../support/proxied-table.ts";
import { request, useShardBuckets } from "../../support/shard-buckets.ts";
import { sum } from "../../support/shard-processes.ts";

const MINUTE_MS = 60_000;

describeWithEngine("an aggregator where processes live for a moment", (engine) => {
  const { clock, connection, open, split, items } = useShardBuckets(engine);
  const records = new ChangeRecords();

  it("merges a bucket that has been calm for five minutes, and nothing is won or lost", async () => {
    const { entityId } = await split(4);
    const merger = new CalmMerger({ connection: connection(), ttlMultiplier: 7 });
    for (let minute = 0; minute <= 6; minute += 1) {
      await grant(open(minute % 4), request(entityId, 3));
      const all = await items(entityId, 64);
      expect(all).toHaveLength(4);
      await merger.look(all.map((item) => records.get(item, item, clock.now())));
      if (minute < 6) await clock.advance(MINUTE_MS);
    }
    const [merged, ...others] = await items(entityId, 64);
    expect(others).toEqual([]);
    expect(numbersIn([merged!], "shard_count")).toEqual([1]);
    // Whole again, the bucket may expire; all that was taken in the last minute is still missing.
    expect(merged).toHaveProperty("ttl");
    expect({
      tokens: sum(numbersIn([merged!], "b_rpm_tk")),
      consumed: sum(numbersIn([merged!], "b_rpm_tc")),
      requests: sum(numbersIn([merged!], "gr")),
    }).toEqual({ consumed: 21_000, requests: 8, tokens: 957_000 });
  });
});
