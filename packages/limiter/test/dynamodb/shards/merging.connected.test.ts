import { expect, it, vi } from "vitest";
import { Limit, RateLimitExceeded, ValidationError, type Amounts } from "zae-limiter";
import { call, take, takeWhatFits } from "../../support/calls.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { HeldTransport } from "../../support/held-transport.ts";
import { numbersIn } from "../../support/proxied-table.ts";
import {
  slow,
  getStoredMilli,
  sum,
  useShards,
  writesShard,
  type ShardProcess,
} from "../../support/shard-processes.ts";
import { openTransport } from "../../support/transports.ts";

const MINUTE_MS = 60_000;

describeWithEngine("a bucket whose shards are merged", (engine) => {
  const { open, openSplit, advance, items, sentBy, table } = useShards(engine);

  /**
   * One call a minute until the process merges four shards into one. Seven minutes are enough,
   * unless this machine is so slow that a look ends in the next minute.
   */
  async function calmUntilMerged(process: ShardProcess, consume: Amounts): Promise<void> {
    const merges = (): number => process.repository.getStatistics().merges;
    for (let minute = 0; minute < 30 && merges() === 0; minute += 1) {
      advance(MINUTE_MS);
      await take(process.limiter, consume);
      await settle();
    }
    await vi.waitUntil(() => merges() === 3, { timeout: 10_000, interval: 5 });
  }

  it("is one bucket again, with all its tokens, and each call is one write", async () => {
    const process = await openSplit(slow(64), { shards: 8, home: 3 });
    await take(process.limiter, { tpm: 10 });
    await merge(process, 4);
    expect(numbersIn(await items(), "shard_count")).toEqual([4, 4, 4, 4]);
    await merge(process);
    expect(numbersIn(await items(), "shard_count")).toEqual([1]);
    expect(getStoredMilli(await process.repository.getBuckets("e"), "tpm")).toEqual([54_000]);
    expect(process.repository.getStatistics()).toMatchObject({ splits: 7, merges: 7 });
    expect(await sentBy(() => take(process.limiter, { tpm: 4 }))).toEqual(["UpdateItem e#0"]);
    expect(await takeWhatFits(process.limiter, { tpm: 10 })).toBe(50);
  });

  it("keeps the shards that are wanted, and says what is wrong with a wish", async () => {
    const process = await openSplit(slow(64), { shards: 4, home: 0 });
    const { repository } = process;
    const before = await items();
    for (const shards of [0, 3, 1.5, -2, Number.NaN, Infinity])
      await expect(repository.mergeBucket!("e", "r", { shards }), String(shards)).rejects.toThrow(
        ValidationError,
      );
    await expect(repository.mergeBucket!("missing", "r", { shards: 1 })).rejects.toThrow(
      /has no bucket for r yet/,
    );
    expect(await repository.mergeBucket!("e", "r", { shards: 8 })).toBe(4);
    expect(await items()).toEqual(before);
  });

  it("merges the pair of shard 0 before the others of a level, and a level before the next", async () => {
    const process = await openSplit(slow(64), { shards: 4, home: 0 });
    const sent = await table.sentDuring(() => merge(process));
    const pairs = sent
      .filter(({ operation }) => operation === "TransactWriteItems")
      .map(({ input }) =>
        [...JSON.stringify(input).matchAll(/BUCKET#e#r#(\d+)"/g)].map(([, shard]) => shard),
      );
    expect(pairs).toEqual([
      ["0", "2"],
      ["1", "3"],
      ["0", "1"],
    ]);
  });

  it("serves processes that remember its shards, and none splits it for a home of its own", async () => {
    const merging = await openSplit(slow(64), { shards: 4, home: 0 });
    const others = await Promise.all([1, 2, 3].map((home) => open(home)));
    for (const { limiter } of others) await take(limiter, { tpm: 1 });
    await merge(merging);
    for (const { limiter } of others) await take(limiter, { tpm: 1 });
    expect(numbersIn(await items(), "shard_count")).toEqual([1]);
    // More than a share: one that remembers shards gathers it, and must not find those.
    await take(others[0]!.limiter, { tpm: 40 });
    expect(getStoredMilli(await merging.repository.getBuckets("e"), "tpm")).toEqual([18_000]);
    for (const { limiter } of others)
      await expect(take(limiter, { tpm: 19 })).rejects.toThrow(RateLimitExceeded);
  });

  it("is not split again by calls that come while their process learns of the merge", async () => {
    const transport = new HeldTransport(await openTransport("lean", table.proxy));
    const late = await open(1, { transport });
    const merging = await openSplit(slow(64), { shards: 2, home: 0 });
    await take(late.limiter, { tpm: 1 });
    await merge(merging);
    let [updates, second] = [0, Promise.resolve()];
    // Its home is gone by now, and it still takes shard 0 for one of two.
    transport.before = async (operation) => {
      if (operation !== "UpdateItem" || ++updates !== 2) return;
      second = take(late.limiter, { tpm: 1 });
      await settle();
    };
    await take(late.limiter, { tpm: 1 });
    await second;
    expect(updates).toBeGreaterThan(1);
    expect(numbersIn(await items(), "shard_count")).toEqual([1]);
    expect(late.repository.getStatistics().splits).toBe(0);
    transport.close();
  });

  it("can be split again, and a write to a shard of its earlier life is not applied to the later one", async () => {
    const transport = new HeldTransport(await openTransport("lean", table.proxy));
    const late = await open(1, { transport });
    const merging = await openSplit(slow(64), { shards: 2, home: 0 });
    await take(late.limiter, { tpm: 1 });
    const held = transport.hold("UpdateItem");
    const taking = take(late.limiter, { tpm: 2 });
    await held.arrived;
    await merge(merging);
    await merging.repository.splitBucket!("e", "r", { shards: 2 });
    held.release();
    await taking;
    expect(late.repository.getStatistics().failedConditions).toBeGreaterThan(0);
    expect(sum(getStoredMilli(await merging.repository.getBuckets("e"), "tpm"))).toBe(61_000);
    transport.close();
  });

  it("gets back tokens taken from its shards, and is charged what they cost more", async () => {
    const process = await openSplit(slow(64), { shards: 4, home: 3 });
    const { limiter, repository } = process;
    const [back, less, more, debt] = await Promise.all([
      limiter.acquire(call({ tpm: 3 })),
      limiter.acquire(call({ tpm: 30 })),
      limiter.acquire(call({ tpm: 5 })),
      limiter.acquire(call({ tpm: 1 })),
    ]);
    await merge(process, 2);
    await back.rollback();
    less.settle({ tpm: 10 });
    await less.commit();
    await merge(process);
    more.settle({ tpm: 8 });
    await more.commit();
    expect(getStoredMilli(await repository.getBuckets("e"), "tpm")).toEqual([45_000]);
    debt.settle({ tpm: 60 });
    await debt.commit();
    expect(await repository.getBuckets("e")).toMatchObject([
      { tokensMilli: 64_000 - 10_000 - 8000 - 60_000, totalConsumedMilli: 78_000 },
    ]);
  });

  it.each(["lost-reply", "lost-request"] as const)(
    "knows what became of writes to a shard that was merged when %s hit them",
    async (fault) => {
      const transport = new HeldTransport(await openTransport("lean", table.proxy));
      const late = await open(1, { transport });
      const merging = await openSplit(slow(64), { shards: 2, home: 0 });
      const first = await late.limiter.acquire(call({ tpm: 5 }));
      /** Merges the shards between the first attempt of a write to shard 1 and the second. */
      const betweenAttempts = async <T>(work: () => Promise<T>): Promise<T> => {
        let [hits, merged] = [0, Promise.resolve()];
        table.proxy.decide = (sent) =>
          writesShard(sent, 1) && sent.operation === "UpdateItem" && hits++ === 0
            ? fault
            : undefined;
        transport.before = async () => {
          if (hits === 1) merged = hits++ === 1 ? merge(merging) : merged;
          await merged;
        };
        const result = await work();
        expect(hits).toBeGreaterThan(1);
        transport.before = async () => {};
        await merging.repository.splitBucket!("e", "r", { shards: 2 });
        // Its home is there again, which it learns on the way to the other shard.
        for (let calls = 0; calls < 2; calls += 1)
          await (await late.limiter.acquire(call({ tpm: 1 }))).rollback();
        return result;
      };
      const state = async (): Promise<readonly number[]> => [
        sum(getStoredMilli(await merging.repository.getBuckets("e"), "tpm")),
        sum(numbersIn(await items(), "gr")),
      ];
      const granted = await betweenAttempts(() => late.limiter.acquire(call({ tpm: 3 })));
      expect(await state()).toEqual([56_000, 2]);
      await take(late.limiter, { tpm: 1 });
      await betweenAttempts(() => first.rollback());
      expect(await state()).toEqual([60_000, 2]);
      const more = await late.limiter.acquire(call({ tpm: 2 }));
      more.settle({ tpm: 10 });
      await betweenAttempts(() => more.commit());
      expect(await state()).toEqual([50_000, 3]);
      await granted.rollback();
      expect(await state()).toEqual([53_000, 2]);
      transport.close();
    },
  );

  it("may expire once it is whole, unless its entity has limits of its own", async () => {
    const process = await openSplit(Limit.perMinute("tpm", 64), { shards: 2, home: 0 });
    await merge(process);
    expect(numbersIn(await items(), "ttl")).toEqual([expect.any(Number)]);
    await process.repository.splitBucket!("e", "r", { shards: 2 });
    await process.repository.setLimits("e", [Limit.perMinute("tpm", 64)], { resource: "r" });
    await merge(process);
    for (const item of await items()) expect(item).not.toHaveProperty("ttl");
  });

  it("is merged by a process that finds it calm for five minutes, and not before", async () => {
    const process = await openSplit(Limit.perMinute("tpm", 64), { shards: 4, home: 2 });
    const rest = await sentBy(async () => {
      for (let minute = 0; minute < 5; minute += 1) {
        for (let step = 0; step < 6; step += 1) {
          advance(MINUTE_MS / 6);
          await take(process.limiter, { tpm: 1 });
        }
        await settle();
      }
    });
    expect(numbersIn(await items(), "shard_count")).toEqual([4, 4, 4, 4]);
    // A look a minute, and the configuration is read again as often.
    expect(rest.filter((operation) => operation === "BatchGetItem").length).toBeLessThanOrEqual(12);
    await calmUntilMerged(process, { tpm: 1 });
    expect(numbersIn(await items(), "shard_count")).toEqual([1]);
  });

  it("is merged too when every call takes from several shards", async () => {
    const process = await openSplit(Limit.perMinute("tpm", 64), { shards: 4, home: 2 });
    await calmUntilMerged(process, { tpm: 40 });
    expect(numbersIn(await items(), "shard_count")).toEqual([1]);
  });

  it("gets the limits of the configuration, not those that the merging process remembers", async () => {
    const merging = await openSplit(slow(64), { shards: 2, home: 0 });
    const other = await open(1);
    await other.repository.setSystemDefaults([slow(32)]);
    await take(other.limiter, { tpm: 1 });
    await merge(merging);
    expect(numbersIn(await items(), "b_tpm_cp")).toEqual([32_000]);
  });

  it("keeps the ids of merged shards for a minute, and then removes them", async () => {
    const process = await openSplit(slow(64), { shards: 2, home: 1 });
    await merge(process);
    expect((await items())[0]).toHaveProperty("mi");
    advance(MINUTE_MS - 10);
    await take(process.limiter, { tpm: 1 });
    expect((await items())[0]).toHaveProperty("mi");
    advance(20);
    await take(process.limiter, { tpm: 1 });
    expect((await items())[0]).not.toHaveProperty("mi");
    const sent = await table.sentDuring(() => take(process.limiter, { tpm: 1 }));
    expect(JSON.stringify(sent)).not.toContain('"mi"');
  });

  it("is merged by one of several processes that try at once, and loses nothing", async () => {
    const processes = await Promise.all([0, 1, 2].map((home) => open(home)));
    const [first] = processes as [ShardProcess];
    await first.repository.setSystemDefaults([slow(64)]);
    await take(first.limiter, { tpm: 1 });
    await first.repository.splitBucket!("e", "r", { shards: 8 });
    await Promise.all(processes.map((process) => merge(process)));
    expect(sum(processes.map(({ repository }) => repository.getStatistics().merges))).toBe(7);
    expect(getStoredMilli(await first.repository.getBuckets("e"), "tpm")).toEqual([63_000]);
  });

  it("keeps the ids of all shards that one merge of 16 has removed", async () => {
    const process = await openSplit(slow(640), { shards: 16, home: 2 });
    await merge(process);
    const [{ mi }] = (await items()) as [{ readonly mi: { readonly L: readonly { S: string }[] } }];
    const shards = mi.L.map(({ S }) => Number(S.split(":")[0]));
    expect(shards.toSorted((left, right) => left - right)).toEqual(
      Array.from({ length: 15 }, (_, index) => index + 1),
    );
  });

  it("is not merged while something is written to its halves, and the writer tries again", async () => {
    const process = await openSplit(slow(64), { shards: 2, home: 0 });
    const other = await open(1);
    await take(other.limiter, { tpm: 1 });
    let taken = 0;
    table.proxy.decide = (sent) => {
      const isMerge = sent.operation === "TransactWriteItems" && writesShard(sent, 1);
      if (!isMerge || taken === 2) return undefined;
      taken += 1;
      return "conflict";
    };
    await merge(process);
    expect(taken).toBe(2);
    expect(getStoredMilli(await process.repository.getBuckets("e"), "tpm")).toEqual([63_000]);
  });
});

async function merge({ repository }: ShardProcess, shards = 1): Promise<void> {
  expect(await repository.mergeBucket!("e", "r", { shards })).toBe(shards);
}

/** Lets background work come to its end, on most machines. */
async function settle(): Promise<void> {
  await new Promise((resolve) => {
    setTimeout(resolve, 30);
  });
}
