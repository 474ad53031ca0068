import { expect, it } from "vitest";
import type { LimitStatus } from "../../../src/core/bucket/decision.ts";
import type { Receipt } from "../../../src/repository/port.ts";
import { grant } from "../../support/bucket-process.ts";
import { describeWithEngine } from "../../support/engine.ts";
import {
  CAPACITY,
  toKey,
  request,
  useShardBuckets,
  type RecordedProcess,
} from "../../support/shard-buckets.ts";

/** As many images as a process keeps. */
const KEPT = 10_000;

describeWithEngine("what is left after a grant", (engine) => {
  const { clock, open, newEntity, split } = useShardBuckets(engine);

  it("is the sum of all shards, and of those that are known when others are not", async () => {
    const { entityId } = await split(4);
    const process = open(2);
    const receipt = await grant(process, request(entityId, 40));
    expect(await remembered(process, receipt)).toEqual([CAPACITY - 40]);
    for (let index = 0; index < KEPT; index += 1) {
      if (index % 1000 === 0)
        for (const shard of [0, 2]) process.known.entry(toKey(entityId, shard));
      process.known.entry(toKey(`many-${index}`, 0));
    }
    expect(process.known.get(toKey(entityId, 0))).toMatchObject({ isWhole: false });
    expect(await remembered(process, receipt)).toEqual([CAPACITY / 2 - 40]);
  });

  it("counts what was gathered from several shards, which no reply shows", async () => {
    const { entityId, maker } = await split(4);
    const process = open(1);
    // One after the other: a read under way would count what it shows already a second time.
    const first = await grant(process, request(entityId, CAPACITY / 2));
    const second = await grant(process, request(entityId, 200));
    const left = [CAPACITY / 2 - 200];
    expect(await remembered(process, first)).toEqual(left);
    expect(await remembered(process, second)).toEqual(left);
    const third = await grant(process, request(entityId, 250));
    expect(await remembered(process, third)).toEqual([30]);
    await process.buckets.read(request(entityId, 0));
    expect(await remembered(process, third)).toEqual([30]);
    await grant(maker, request(entityId, 30));
    await process.buckets.read(request(entityId, 0));
    expect(await remembered(process, third)).toEqual([0]);
    await clock.advance(1000);
    expect(await remembered(process, third)).toEqual([CAPACITY / 60]);
  });

  it("is as the take left it when the bucket was dropped from memory", async () => {
    const process = open(0);
    const entityId = newEntity();
    const { entityId: sharded } = await split(4);
    const receipts = [
      await grant(process, request(entityId, 60)),
      await grant(process, request(sharded, CAPACITY / 2)),
    ];
    for (let index = 0; index < KEPT; index += 1) process.known.entry(toKey(`many-${index}`, 0));
    for (const id of [entityId, sharded])
      expect(process.known.get(toKey(id, 0))).toMatchObject({ seenAt: undefined });
    expect(await remembered(process, receipts[0]!)).toEqual([CAPACITY - 60]);
    await clock.advance(1000);
    expect(await remembered(process, receipts[0]!)).toEqual([CAPACITY - 60 + CAPACITY / 60]);
    const [left] = await remembered(process, receipts[1]!);
    expect(left).toBeLessThanOrEqual(CAPACITY / 2);
  });
});

/** What is left of each limit, which no request may be sent for. */
async function remembered(process: RecordedProcess, receipt: Receipt): Promise<readonly number[]> {
  let statuses: readonly LimitStatus[] = [];
  const requests = await process.listRequests(async () => {
    statuses = process.buckets.remembered(receipt);
  });
  expect(requests).toEqual([]);
  return statuses.map(({ available }) => available);
}
