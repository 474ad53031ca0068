import { describe, expect, it } from "vitest";
import { Limit, RateLimitExceeded, type ChargeRequest } from "zae-limiter";
import { call, take } from "../../support/calls.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { onWrites } from "../../support/fault-proxy.ts";
import {
  slow,
  getStoredMilli,
  sum,
  useShards,
  type ShardProcess,
} from "../../support/shard-processes.ts";
import { numbersIn } from "../../support/proxied-table.ts";

describeWithEngine("a charge for what already happened", (engine) => {
  const shards = useShards(engine);
  const { open, openSplit, sentBy, items, table } = shards;

  describe("costs", () => {
    it("one write for many charges and acquires that meet", async () => {
      const process = await open();
      await process.repository.setSystemDefaults([slow(100)]);
      await take(process.limiter, { tpm: 1 });
      let granted = 0;
      const takeOne = async (): Promise<void> => {
        const verdict = await process.limiter.tryAcquire(call({ tpm: 1 }));
        if (verdict.granted) granted += 1;
      };
      const sent = await sentBy(() =>
        Promise.all(
          Array.from({ length: 50 }, (_, index) =>
            index % 5 === 0 ? takeOne() : process.limiter.charge(charge(3)),
          ),
        ),
      );
      expect(sent.length).toBeLessThanOrEqual(4);
      expect(await total(process)).toBe(-21_000 - granted * 1000);
      expect(numbersIn(await items(), "gr")).toEqual([1 + granted]);
    });
  });

  describe("of a bucket with shards", () => {
    it("is paid by one shard that can, home first, in one request", async () => {
      const process = await openSplit(slow(40), { shards: 4, home: 1 });
      expect(await sentBy(() => process.limiter.charge(charge(8)))).toEqual(["UpdateItem e#1"]);
      expect(await sentBy(() => process.limiter.charge(charge(9)))).toEqual(["UpdateItem e#2"]);
      expect(await total(process)).toBe(23_000);
    });

    it("is paid by all when none can alone, and owed by all in equal parts", async () => {
      const process = await openSplit(slow(40), { shards: 4, home: 1 });
      await process.limiter.charge(charge(25));
      expect(await total(process)).toBe(15_000);
      await process.limiter.charge(charge(55));
      expect(getStoredMilli(await process.repository.getBuckets("e"), "tpm")).toEqual(
        Array.from({ length: 4 }, () => -10_000),
      );
      expect(await table.consumed(process.repository)).toBe(80);
      const other = await open(3);
      await expect(take(other.limiter, { tpm: 0 })).rejects.toThrow(RateLimitExceeded);
    });

    it("is counted once by each limit that counts it, as a take is", async () => {
      const counting = Limit.custom({ ...slow(80), name: "tpd", counts: "tpm" });
      const process = await openSplit(slow(40), { shards: 4, home: 1 });
      await process.repository.setSystemDefaults([slow(40), counting]);
      await process.limiter.charge(charge(25));
      expect(await process.limiter.available("e", "r")).toEqual({ tpm: 15, tpd: 55 });
      // No shard holds so much alone.
      const lease = await process.limiter.acquire(call({ tpm: 13 }));
      expect(await process.limiter.available("e", "r")).toEqual({ tpm: 2, tpd: 42 });
      lease.settle({ tpm: 9 });
      await lease.commit();
      expect(await process.limiter.available("e", "r")).toEqual({ tpm: 6, tpd: 46 });
    });

    it("is borne under the limits of today by every shard", async () => {
      const process = await openSplit(slow(400), { shards: 4, home: 2 });
      await process.repository.setSystemDefaults([slow(40), Limit.perDay("rpd", 8)]);
      const request = { ...charge(60), amounts: { tpm: 60, rpd: 12 } };
      await process.limiter.charge(request);
      const buckets = await process.repository.getBuckets("e");
      expect(getStoredMilli(buckets, "tpm")).toEqual([-5000, -5000, -5000, -5000]);
      expect(getStoredMilli(buckets, "rpd")).toEqual([-1000, -1000, -1000, -1000]);
    });

    it("finds the shards that were merged meanwhile", async () => {
      const process = await openSplit(slow(40), { shards: 4, home: 3 });
      const other = await open(0);
      await other.repository.mergeBucket!("e", "r", { shards: 1 });
      await process.limiter.charge(charge(5));
      await process.limiter.charge(charge(50));
      expect(getStoredMilli(await process.repository.getBuckets("e"), "tpm")).toEqual([-15_000]);
    });

    it("begins a new bucket when that was deleted meanwhile", async () => {
      const process = await openSplit(slow(40), { shards: 4, home: 3 });
      const other = await open(0);
      await other.repository.deleteEntity("e");
      await process.limiter.charge(charge(50));
      expect(getStoredMilli(await process.repository.getBuckets("e"), "tpm")).toEqual([-10_000]);
    });
  });

  it("does not charge the entity again while its parent cannot be written", async () => {
    const process = await open(0, { maxShards: 1 });
    await process.repository.setSystemDefaults([slow(100)]);
    await family(process);
    await process.limiter.charge(charge(1));
    const ofParent = onWrites(({ PK }) => PK.S.includes("#p#"), "internal");
    table.proxy.decide = ofParent;
    expect((await failure(process.limiter.charge(charge(10)))).message).toContain("in part");
    let refusals = 4;
    table.proxy.decide = (request) => {
      const fault = refusals > 0 ? ofParent(request) : undefined;
      if (fault !== undefined) refusals -= 1;
      return fault;
    };
    await process.limiter.charge(charge(100));
    expect(await table.consumed(process.repository)).toBe(111);
    expect(await table.consumed(process.repository, "p")).toBe(101);
  });
});

/** What all shards hold. */
async function total({ repository }: ShardProcess): Promise<number> {
  return sum(getStoredMilli(await repository.getBuckets("e"), "tpm"));
}

/** An entity that cascades to a parent. */
async function family({ repository }: ShardProcess): Promise<void> {
  await repository.createEntity("p");
  await repository.createEntity("e", { parentId: "p", cascade: true });
}

function charge(tpm: number, entityId = "e"): ChargeRequest {
  return { entityId, resource: "r", amounts: { tpm } };
}

/** The error that a charge fails with. */
async function failure(charging: Promise<void>): Promise<Error> {
  return charging.then(
    () => expect.fail("was charged"),
    (error: unknown) => error as Error,
  );
}
