import { expect, it } from "vitest";
import { Limit, RateLimiter, RateLimitExceeded } from "zae-limiter";
import type { DynamoRepository } from "zae-limiter/dynamodb";
import { ManualClock } from "zae-limiter/testing";
import {
  getBoolean,
  getNumber,
  getString,
} from "../../../src/repository/dynamodb/transport/attribute-values.ts";
import { call, take } from "../../support/calls.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { listKeys, useProxiedTable } from "../../support/proxied-table.ts";

const START_MS = Date.now();
const rpm = Limit.perMinute("rpm", 60);
const tpm = Limit.perMinute("tpm", 6000);

describeWithEngine("a bucket on DynamoDB", (engine) => {
  const table = useProxiedTable(engine);

  const open = async (
    clock = new ManualClock(START_MS),
  ): Promise<{ repository: DynamoRepository; limiter: RateLimiter }> => {
    const repository = await table.open("app", { clock });
    return { repository, limiter: new RateLimiter({ repository }) };
  };
  const ttlMs = async (): Promise<number> =>
    getNumber((await table.bucketItems())[0]!["ttl"])! * 1000;

  it("a limit that is added to an existing bucket begins full, and the bucket goes on granting [W-32]", async () => {
    const { repository, limiter } = await open();
    await repository.setLimits("e", [rpm]);
    await take(limiter, { rpm: 10 });
    await repository.setLimits("e", [rpm, tpm]);
    await take(limiter, { rpm: 10, tpm: 1000 });
    expect(await limiter.available("e", "r")).toEqual({ rpm: 40, tpm: 5000 });
  });

  it("an added limit that the call does not name is stored with all its parameters [W-33]", async () => {
    const clock = new ManualClock(START_MS);
    const { repository, limiter } = await open(clock);
    await repository.setLimits("e", [rpm]);
    await take(limiter, { rpm: 10 });
    await repository.setLimits("e", [rpm, tpm]);
    await take(limiter, { rpm: 10 });
    const [item] = await table.bucketItems();
    for (const field of ["tk", "cp", "ra", "rp"]) expect(item).toHaveProperty(`b_tpm_${field}`);
    await clock.advance(60_000);
    await take(limiter, { rpm: 60, tpm: 6000 });
  });

  it("a bucket names the parent, also of an entity that this process has never met", async () => {
    const { repository } = await open();
    await repository.setSystemDefaults([rpm]);
    await repository.createEntity("project");
    await repository.createEntity("e", { parentId: "project", cascade: true });
    await take((await open()).limiter, { rpm: 1 });
    const items = await table.bucketItems("e");
    expect(
      items.map((item) => [getBoolean(item["cascade"]), getString(item["parent_id"])]),
    ).toEqual([[true, "project"]]);
  });

  it("a lease of a deleted bucket creates none when it is settled [W-34]", async () => {
    const { repository, limiter } = await open();
    await repository.setSystemDefaults([rpm]);
    await repository.createEntity("e");
    const [settled, rolledBack] = [
      await limiter.acquire(call({ rpm: 1 })),
      await limiter.acquire(call({ rpm: 1 })),
    ];
    await repository.deleteEntity("e");
    settled.settle({ rpm: 5 });
    await settled.commit();
    await rolledBack.rollback();
    expect(listKeys(await table.bucketItems())).toEqual([]);
    await take(limiter, { rpm: 60 });
    await expect(take(limiter, { rpm: 1 })).rejects.toThrow(RateLimitExceeded);
  });

  it("limit names may be anything that is not a word of an expression [W-35]", async () => {
    const { repository, limiter } = await open();
    const names = ["a-b", "a.b", "size", "tk", "b_x_tk"];
    await repository.setSystemDefaults(names.map((name) => Limit.perMinute(name, 10)));
    const amounts = Object.fromEntries(names.map((name) => [name, 4]));
    await take(limiter, amounts);
    await take(limiter, amounts);
    expect(await limiter.available("e", "r")).toEqual(
      Object.fromEntries(names.map((name) => [name, 2])),
    );
    await expect(take(limiter, amounts)).rejects.toThrow(RateLimitExceeded);
  });

  it("a child's refill is kept when another process refilled the parent [W-42]", async () => {
    const clock = new ManualClock(START_MS);
    const { repository, limiter } = await open(clock);
    const other = (await open(clock)).limiter;
    await repository.setSystemDefaults([rpm]);
    await repository.createEntity("p");
    await repository.createEntity("e", { parentId: "p", cascade: true });
    await take(limiter, { rpm: 60 });
    await clock.advance(60_000);
    await take(other, { rpm: 1 }, "p");
    await take(limiter, { rpm: 59 });
    expect(await limiter.available("e", "r")).toEqual({ rpm: 0 });
  });

  it("a bucket is kept until its debt is earned back, and every take renews that [W-51]", async () => {
    const clock = new ManualClock(START_MS);
    const { repository, limiter } = await open(clock);
    await repository.setSystemDefaults([rpm]);
    await take(limiter, { rpm: 1 });
    const first = await ttlMs();
    await clock.advance(30_000);
    await take(limiter, { rpm: 1 });
    expect(await ttlMs()).toBe(first + 30_000);
    const lease = await limiter.acquire(call({ rpm: 1 }));
    lease.settle({ rpm: 60_000 });
    await lease.commit();
    // A thousand minutes of debt.
    expect(await ttlMs()).toBeGreaterThan(clock.now() + 1000 * 60_000);
  });
});
