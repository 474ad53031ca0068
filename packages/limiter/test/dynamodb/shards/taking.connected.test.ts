import { describe, expect, it } from "vitest";
import { Limit, RateLimitExceeded, RateLimiterUnavailable, type RateLimiter } from "zae-limiter";
import { numberOf } from "../../../src/repository/dynamodb/transport/attribute-values.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { HeldTransport } from "../../support/held-transport.ts";
import {
  call,
  slow,
  splitsOf,
  storedMilli,
  suffering,
  take,
  useShards,
  type ShardProcess,
} from "../../support/shard-processes.ts";
import { openTransport } from "../../support/transports.ts";

describeWithEngine("faults of the original's shards", (engine) => {
  const shards = useShards(engine);
  const { open, advance, sentBy, items, busySecond, table } = shards;

  /** A bucket that has been split, and a process at home on one of its shards. */
  async function split(
    limit: Limit,
    { count, home }: { readonly count: number; readonly home: number },
  ): Promise<ShardProcess> {
    const process = await open(home);
    await process.repository.setSystemDefaults([limit]);
    await (await process.limiter.acquire(call({ [limit.name]: 1 }))).rollback();
    await process.repository.splitBucket!("e", "r", { shards: count });
    // A process knows where it lives once it has been there.
    await (await process.limiter.acquire(call({ [limit.name]: 1 }))).rollback();
    return process;
  }

  it("refills whichever shard is touched, in the write that takes [W-04]", async () => {
    const { limiter } = await split(Limit.perSecond("rps", 4), { count: 4, home: 3 });
    await takeAll(limiter, "rps");
    for (let second = 1; second <= 30; second += 1) {
      advance(1000);
      expect(await sentBy(() => take(limiter, { rps: 1 }))).toEqual(["UpdateItem e#3"]);
    }
    // The three others have earned their shares all the while.
    expect(await limiter.available("e", "r")).toEqual({ rps: 3 });
    await take(limiter, { rps: 3 });
    await expect(take(limiter, { rps: 1 })).rejects.toThrow(RateLimitExceeded);
  });

  it("lets no shard expire, and makes one that is missing when somebody comes home to it [W-05]", async () => {
    const process = await split(Limit.perMinute("rpm", 100), { count: 2, home: 1 });
    advance(2000);
    const other = await open(0);
    await (await other.limiter.acquire(call({ rpm: 1 }))).rollback();
    await busySecond(0, 900);
    await take(other.limiter, { rpm: 1 });
    await splitsOf(other, 1);
    // Shard 0 was doubled, shard 1 was not: there is no shard 3 yet.
    expect((await items()).map((item) => numberOf(item["shard_count"]))).toEqual([4, 2, 4]);
    advance(366 * 86_400_000);
    const late = await open(3);
    await take(late.limiter, { rpm: 1 });
    await take(late.limiter, { rpm: 1 });
    const stored = await items();
    expect(stored.map((item) => [numberOf(item["shard_count"]), item["ttl"]])).toEqual(
      Array.from({ length: 4 }, () => [4, undefined]),
    );
    expect(storedMilli(await late.repository.getBuckets("e"), "rpm")[3]).toBe(23_000);
    await take(process.limiter, { rpm: 98 });
    await expect(take(process.limiter, { rpm: 1 })).rejects.toThrow(RateLimitExceeded);
  });

  it("takes, takes more, settles and gives back on the shard that a process calls home [W-06]", async () => {
    const { limiter } = await split(slow(1000), { count: 4, home: 1 });
    const sent = await sentBy(async () => {
      const settled = await limiter.acquire(call({ tpm: 10 }));
      await settled.consume({ tpm: 5 });
      settled.settle({ tpm: 40 });
      await settled.commit();
      await (await limiter.acquire(call({ tpm: 10 }))).rollback();
    });
    expect(sent).toEqual(Array.from({ length: 5 }, () => "UpdateItem e#1"));
  });

  it("grants the capacity and what the limit earns, with any number of shards and processes [W-07]", async () => {
    const first = await split(Limit.perMinute("rpm", 240), { count: 4, home: 0 });
    const processes = [first, await open(1), await open(2), await open(3)];
    let granted = await takeAll(first.limiter, "rpm");
    expect(granted).toBe(240);
    for (let second = 1; second <= 20; second += 1) {
      advance(1000);
      for (const { limiter } of processes.slice(second % 4))
        granted += await takeWhatFits(limiter, { rpm: 1 });
    }
    expect(granted).toBe(240 + 4 * 20);
    // Nothing is left, anywhere, and the next token is whole in a quarter of a second: the shards
    // earn it together.
    for (const { limiter } of processes)
      expect(await limiter.available("e", "r")).toEqual({ rpm: 0 });
    const refusal = await first.limiter.acquire(call({ rpm: 1 })).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ retryAfterSeconds: 0.25 });
  });

  it("grants no more and no less when a bucket is split again and again under load [W-08]", async () => {
    const { limiter, repository } = await open();
    await repository.setSystemDefaults([Limit.perMinute("rpm", 240)]);
    let granted = 0;
    for (let second = 0; second < 30; second += 1) {
      granted += await takeWhatFits(limiter, { rpm: 12 });
      granted += await takeWhatFits(limiter, { rpm: 1 });
      if (second % 6 === 0) await repository.splitBucket!("e", "r", { shards: 2 ** (second / 6) });
      advance(1000);
    }
    expect(granted).toBe(240 + 4 * 29);
  });

  it("has no shards of less than a token, and finds every token for calls of any size [W-09]", async () => {
    const { limiter, repository } = await split(slow(11), { count: 8, home: 5 });
    await expect(repository.splitBucket!("e", "r", { shards: 16 })).rejects.toThrow(
      "shares below one token",
    );
    expect(
      storedMilli(await repository.getBuckets("e"), "tpm").reduce((sum, milli) => sum + milli, 0),
    ).toBe(11_000);
    const all = await limiter.acquire(call({ tpm: 11 }));
    await expect(take(limiter, { tpm: 1 })).rejects.toThrow(RateLimitExceeded);
    await all.rollback();
    await take(limiter, { tpm: 7 });
    expect(await takeWhatFits(limiter, { tpm: 1 })).toBe(4);
  });

  it("a lease from another shard than home is adjusted and rolled back like any other [W-10]", async () => {
    const { limiter, repository } = await split(slow(10), { count: 2, home: 0 });
    await take(limiter, { tpm: 5 });
    await limiter.acquire(call({ tpm: 2 }), async (lease) => lease.adjust({ tpm: 1 }));
    const failing = limiter.acquire(call({ tpm: 2 }), async () =>
      Promise.reject(new Error("the work failed")),
    );
    await expect(failing).rejects.toThrow("the work failed");
    expect(storedMilli(await repository.getBuckets("e"), "tpm")).toEqual([0, 2000]);
  });

  it("charges the parent also when the entity takes from another shard than home [W-11]", async () => {
    const { limiter, repository } = await open();
    await repository.createEntity("p");
    await repository.createEntity("e", { parentId: "p", cascade: true });
    await repository.setLimits("e", [slow(10)]);
    await repository.setLimits("p", [slow(8)]);
    await take(limiter, { tpm: 5 });
    await repository.splitBucket!("e", "r", { shards: 2 });
    expect(storedMilli(await repository.getBuckets("e"), "tpm")).toEqual([2500, 2500]);
    for (const tpm of [2, 1]) await take(limiter, { tpm });
    expect(storedMilli(await repository.getBuckets("e"), "tpm")).toEqual([500, 1500]);
    expect(storedMilli(await repository.getBuckets("p"), "tpm")).toEqual([0]);
    await expect(take(limiter, { tpm: 1 })).rejects.toMatchObject({
      primaryViolation: { entityId: "p" },
    });
  });

  describe("what was taken goes back to the shards that it came from", () => {
    it("when a lease is rolled back or settled for less [W-12]", async () => {
      const { limiter, repository } = await split(slow(40), { count: 4, home: 1 });
      const state = async (): Promise<unknown> =>
        (await repository.getBuckets("e")).map(({ tokensMilli, totalConsumedMilli }) => [
          tokensMilli,
          totalConsumedMilli,
        ]);
      await take(limiter, { tpm: 3 });
      const before = await state();
      // One shard holds the first, none holds the second.
      for (const tpm of [4, 30]) {
        await (await limiter.acquire(call({ tpm }))).rollback();
        expect(await state()).toEqual(before);
        const lease = await limiter.acquire(call({ tpm }));
        lease.settle({ tpm: 0 });
        await lease.commit();
        expect(await state()).toEqual(before);
      }
    });

    it("when the bucket was split after they had been seen and before they were taken [W-12]", async () => {
      const transport = new HeldTransport(await openTransport("SDK's", table.proxy));
      const { limiter, repository } = await open(0, { transport });
      const other = await open(1);
      await repository.setSystemDefaults([slow(100)]);
      const before = await limiter.acquire(call({ tpm: 20 }));
      const held = transport.hold("TransactWriteItems");
      const splitting = repository.splitBucket!("e", "r", { shards: 2 });
      await held.arrived;
      const between = await other.limiter.acquire(call({ tpm: 30 }));
      held.release();
      await splitting;
      // What was taken in between is missing in one half only: in equal parts it would not fit the
      // other.
      expect(storedMilli(await repository.getBuckets("e"), "tpm")).toEqual([10_000, 40_000]);
      await between.rollback();
      await before.rollback();
      expect(storedMilli(await repository.getBuckets("e"), "tpm")).toEqual([50_000, 50_000]);
      transport.close();
    });

    it("when the other side of a cascade could not be written [W-12]", async () => {
      const { limiter, repository } = await split(slow(40), { count: 4, home: 2 });
      await repository.createEntity("p");
      await repository.createEntity("e", { parentId: "p", cascade: true });
      await take(limiter, { tpm: 1 });
      const before = storedMilli(await repository.getBuckets("e"), "tpm");
      table.proxy.decide = suffering("internal", "#p#r#0");
      await expect(take(limiter, { tpm: 5 })).rejects.toThrow(RateLimiterUnavailable);
      expect(storedMilli(await repository.getBuckets("e"), "tpm")).toEqual(before);
    });
  });

  it("brings changed limits to every shard [W-15]", async () => {
    const { limiter, repository } = await split(Limit.perMinute("rpm", 100), { count: 2, home: 0 });
    const other = await open(1);
    await take(other.limiter, { rpm: 10 });
    await repository.setSystemDefaults([Limit.perMinute("rpm", 500)]);
    advance(61_000);
    expect(await other.limiter.available("e", "r")).toEqual({ rpm: 100 });
    for (const process of [limiter, other.limiter]) await take(process, { rpm: 1 });
    expect((await items()).map((item) => [numberOf(item["b_rpm_cp"]), item["ttl"]])).toEqual([
      [500_000, undefined],
      [500_000, undefined],
    ]);
    advance(60_000);
    expect(await other.limiter.available("e", "r")).toEqual({ rpm: 500 });
    await repository.setSystemDefaults([Limit.perMinute("rpm", 10)]);
    advance(61_000);
    await expect(take(other.limiter, { rpm: 11 })).rejects.toThrow(RateLimitExceeded);
    expect(
      (await takeWhatFits(limiter, { rpm: 1 })) + (await takeWhatFits(other.limiter, { rpm: 1 })),
    ).toBe(10);
    expect((await items()).map((item) => numberOf(item["b_rpm_cp"]))).toEqual([10_000, 10_000]);
  });
});

/** Takes again and again until it is refused; tells how much it got in all. */
async function takeWhatFits(
  limiter: RateLimiter,
  consume: Record<string, number>,
): Promise<number> {
  for (let granted = 0; ; granted += Object.values(consume)[0]!) {
    const taken = await take(limiter, consume).then(
      () => true,
      (error: unknown) => {
        if (!(error instanceof RateLimitExceeded)) throw error;
        return false;
      },
    );
    if (!taken) return granted;
  }
}

/** Takes all that is there; tells how much it was. */
async function takeAll(limiter: RateLimiter, limitName: string): Promise<number> {
  const { [limitName]: left = 0 } = await limiter.available("e", "r");
  await take(limiter, { [limitName]: left });
  return left;
}
