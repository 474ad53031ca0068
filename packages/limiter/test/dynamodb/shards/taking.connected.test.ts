import { expect, it } from "vitest";
import { Limit, RateLimitExceeded, type RateLimiter } from "zae-limiter";
import type { AttributeMap } from "../../../src/repository/dynamodb/transport/attribute-values.ts";
import { call, take, takeWhatFits } from "../../support/calls.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { HeldTransport } from "../../support/held-transport.ts";
import { buildBucket, numbersIn } from "../../support/proxied-table.ts";
import { slow, getStoredMilli, sum, useShards } from "../../support/shard-processes.ts";
import { openTransport } from "../../support/transports.ts";

describeWithEngine("taking from a bucket with shards", (engine) => {
  const { open, openSplit, advance, sentBy, items, table } = useShards(engine);

  async function setTokens(
    { PK, SK }: AttributeMap,
    attribute: string,
    milli: number,
  ): Promise<void> {
    await table.raw("UpdateItem", {
      Key: { PK, SK },
      UpdateExpression: "SET #tokens = :milli",
      ExpressionAttributeNames: { "#tokens": attribute },
      ExpressionAttributeValues: { ":milli": { N: String(milli) } },
    });
  }

  it("whichever shard is touched is refilled, in the write that takes [W-04]", async () => {
    const { limiter } = await openSplit(Limit.perSecond("rps", 4), { shards: 4, home: 3 });
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

  it("a process takes, takes more, settles and gives back on its home shard [W-06]", async () => {
    const { limiter } = await openSplit(slow(1000), { shards: 4, home: 1 });
    const sent = await sentBy(async () => {
      const settled = await limiter.acquire(call({ tpm: 10 }));
      await settled.consume({ tpm: 5 });
      settled.settle({ tpm: 40 });
      await settled.commit();
      await (await limiter.acquire(call({ tpm: 10 }))).rollback();
    });
    expect(sent).toEqual(Array.from({ length: 5 }, () => "UpdateItem e#1"));
  });

  it("all shards grant together the capacity and what the limit earns, to any number of processes [W-07]", async () => {
    const first = await openSplit(Limit.perMinute("rpm", 240), { shards: 4, home: 0 });
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

  it("a bucket that is split again and again under load grants no more and no less [W-08]", async () => {
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

  it("no shard holds less than a token, and calls of any size find every token [W-09]", async () => {
    const { limiter, repository } = await openSplit(slow(11), { shards: 8, home: 5 });
    await expect(repository.splitBucket!("e", "r", { shards: 16 })).rejects.toThrow(
      "shares below one token",
    );
    expect(sum(getStoredMilli(await repository.getBuckets("e"), "tpm"))).toBe(11_000);
    const all = await limiter.acquire(call({ tpm: 11 }));
    await expect(take(limiter, { tpm: 1 })).rejects.toThrow(RateLimitExceeded);
    await all.rollback();
    await take(limiter, { tpm: 7 });
    expect(await takeWhatFits(limiter, { tpm: 1 })).toBe(4);
  });

  it("calls take what the shards hold above their shares of what they leave, and nothing else", async () => {
    const { limiter } = await openSplit(slow(1000), { shards: 4, home: 1 });
    const takeLeaving = async (tpm: number): Promise<boolean> => {
      const verdict = await limiter.tryAcquire({ ...call({ tpm }), leave: { tpm: 400 } });
      if (verdict.granted) await verdict.lease.commit();
      else expect(verdict.refusal.primaryViolation.leaves).toBe(400);
      return verdict.granted;
    };
    // 150 of each shard's 250: the first comes from one shard, the others from several.
    for (const tpm of [150, 151, 200, 99]) expect(await takeLeaving(tpm)).toBe(true);
    expect(await takeLeaving(1)).toBe(false);
    expect(await limiter.available("e", "r")).toEqual({ tpm: 400 });
    expect(await takeWhatFits(limiter, { tpm: 100 })).toBe(400);
  });

  it("a lease from another shard than home is adjusted and rolled back like any other [W-10]", async () => {
    const { limiter, repository } = await openSplit(slow(10), { shards: 2, home: 0 });
    await take(limiter, { tpm: 5 });
    await limiter.acquire(call({ tpm: 2 }), async (lease) => lease.adjust({ tpm: 1 }));
    const failing = limiter.acquire(call({ tpm: 2 }), async () =>
      Promise.reject(new Error("the work failed")),
    );
    await expect(failing).rejects.toThrow("the work failed");
    expect(getStoredMilli(await repository.getBuckets("e"), "tpm")).toEqual([0, 2000]);
  });

  it("a cascade is charged to any shards of child and parent, and goes back to them [W-11, W-13]", async () => {
    const { limiter, repository } = await open();
    await repository.createEntity("p");
    await repository.setSystemDefaults([slow(60)]);
    await repository.setLimits("p", [slow(90)]);
    for (const id of ["e", "f"])
      await repository.createEntity(id, { parentId: "p", cascade: true });
    await take(limiter, { tpm: 1 });
    await repository.splitBucket!("e", "r", { shards: 4 });
    await repository.splitBucket!("p", "r", { shards: 8 });
    const stored = async (entityId: string): Promise<number> =>
      sum(getStoredMilli(await repository.getBuckets(entityId), "tpm")) / 1000;
    // No shard of either holds so much alone.
    const lease = await limiter.acquire(call({ tpm: 40 }));
    expect([await stored("e"), await stored("p")]).toEqual([19, 49]);
    await lease.rollback();
    expect([await stored("e"), await stored("p")]).toEqual([59, 89]);
    // Home holds 14 of them once, and another shard must then.
    await take(limiter, { tpm: 14 });
    const sent = await sentBy(() => take(limiter, { tpm: 14 }));
    expect(sent).toContainEqual(expect.stringMatching(/^UpdateItem e#[1-3]$/));
    expect([await stored("e"), await stored("p")]).toEqual([31, 61]);
    await take(limiter, { tpm: 31 });
    await take(limiter, { tpm: 30 }, "f");
    await expect(take(limiter, { tpm: 1 }, "f")).rejects.toMatchObject({
      primaryViolation: { entityId: "p", limitName: "tpm" },
    });
    expect([await stored("f"), await stored("p")]).toEqual([30, 0]);
  });

  it("a failed write shows that there are shards, and a late answer makes no process forget them [W-16]", async () => {
    const late = new HeldTransport(await openTransport("SDK's", table.proxy));
    const first = await open();
    await first.repository.setSystemDefaults([slow(1000)]);
    const { limiter } = await open(5, { transport: late });
    await take(limiter, { tpm: 1 });
    const old = late.hold("BatchGetItem", "answer");
    const read = limiter.available("e", "r");
    await old.arrived;
    await first.repository.splitBucket!("e", "r", { shards: 8 });
    expect(await sentBy(() => take(limiter, { tpm: 1 }))).toEqual([
      "UpdateItem e#0",
      "UpdateItem e#0",
    ]);
    // The read that is under way goes on with all shards that there are; the call shares the next.
    const sent = await sentBy(async () => {
      const taken = take(limiter, { tpm: 1 });
      old.release();
      await Promise.all([read, taken]);
    });
    expect(sent).toEqual(["BatchGetItem", "BatchGetItem", "UpdateItem e#5"]);
    expect(await sentBy(() => take(limiter, { tpm: 1 }))).toEqual(["UpdateItem e#5"]);
    late.close();
  });

  it("a refusal says exactly when the call will fit, whichever shards the tokens come to", async () => {
    const { limiter } = await openSplit(Limit.perMinute("rpm", 60), { shards: 8, home: 0 });
    await take(limiter, { rpm: 60 });
    const other = await open(1);
    for (const amount of [1, 3, 60]) {
      const refusal = await take(other.limiter, { rpm: amount }).catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(RateLimitExceeded);
      const { retryAfterSeconds } = refusal as RateLimitExceeded;
      expect(retryAfterSeconds).toBe(amount);
      advance(retryAfterSeconds * 1000 - 1);
      await expect(take(other.limiter, { rpm: amount })).rejects.toThrow(RateLimitExceeded);
      advance(1);
      await take(other.limiter, { rpm: amount });
    }
  });

  it("a call that costs nothing is granted where shards owe something each, and nothing together", async () => {
    const { limiter, repository } = await open();
    const names = ["rpm", "tpm"];
    await repository.setSystemDefaults(names.map((name) => Limit.perMinute(name, 60)));
    await take(limiter, {});
    await repository.splitBucket!("e", "r", { shards: 2 });
    for (const item of await items())
      await setTokens(item, `b_${names[buildBucket(item)!.shard]}_tk`, -1000);
    const other = await open(1);
    const lease = await other.limiter.acquire(call({}));
    expect(numbersIn(await items(), "gr")).toEqual([2, 0]);
    await lease.rollback();
    expect(numbersIn(await items(), "gr")).toEqual([1, 0]);
    const stored = await items();
    expect(names.map((name) => numbersIn(stored, `b_${name}_tk`))).toEqual([
      [-1000, 30_000],
      [30_000, -1000],
    ]);
  });
});

/** Takes all that is there; returns how much it was. */
async function takeAll(limiter: RateLimiter, limitName: string): Promise<number> {
  const { [limitName]: left = 0 } = await limiter.available("e", "r");
  await take(limiter, { [limitName]: left });
  return left;
}
