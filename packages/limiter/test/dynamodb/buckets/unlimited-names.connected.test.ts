import { expect, it } from "vitest";
import { Limit, RateLimiter } from "zae-limiter";
import { getNumber } from "../../../src/repository/dynamodb/transport/attribute-values.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { useProxiedTable } from "../../support/proxied-table.ts";

const [RPM, TPM] = [Limit.perDay("rpm", 40), Limit.perDay("tpm", 1000)];
/** Time stands still, so that nothing is earned. */
const clock = { now: () => 1_800_000_000_000, sleep: async () => {} };
const CALL = { entityId: "e", resource: "r", consume: { rpm: 1, tpm: 100 } };

describeWithEngine("what no limit holds, on the items of a table", (engine) => {
  const table = useProxiedTable(engine);

  /** What all shards of a bucket have counted, and what each of them holds. */
  const totals = async (): Promise<{
    readonly counted: number;
    readonly tokens: readonly (number | undefined)[];
  }> => {
    const items = await table.bucketItems("e");
    return {
      counted: items.reduce((sum, item) => sum + (getNumber(item["b_tpm_tc"]) ?? 0), 0),
      tokens: items.map((item) => getNumber(item["b_tpm_tk"])),
    };
  };

  it("is kept by splits, gathers and merges, and touches no hidden balance", async () => {
    const repository = await table.open(undefined, { clock });
    const limiter = new RateLimiter({ repository });
    await repository.setSystemDefaults([RPM, TPM]);
    await limiter.acquire(CALL, () => {});
    await repository.setLimits("e", [RPM], { inherit: false });
    await limiter.acquire({ ...CALL, consume: { rpm: 1, tpm: 50 } }, () => {});
    expect(await totals()).toEqual({ counted: 150_000, tokens: [900_000] });
    await repository.splitBucket!("e", "r", { shards: 4 });
    const kept = await limiter.acquire({ ...CALL, consume: { rpm: 20, tpm: 30 } });
    const undone = await limiter.acquire({ ...CALL, consume: { rpm: 15, tpm: 7 } });
    expect((await totals()).counted).toBe(187_000);
    await undone.rollback();
    expect((await totals()).counted).toBe(180_000);
    await repository.mergeBucket!("e", "r", { shards: 1 });
    kept.settle({ tpm: 10 });
    await kept.commit();
    expect(await totals()).toEqual({ counted: 160_000, tokens: [expect.any(Number)] });
    await repository.deleteLimits("e");
    expect(await limiter.available("e", "r")).toEqual({ rpm: 18, tpm: 900 });
  });

  it("is counted on a bucket that a merge finds without such a limit", async () => {
    const repository = await table.open(undefined, { clock });
    const limiter = new RateLimiter({ repository });
    await repository.setSystemDefaults([RPM, TPM]);
    await repository.setLimits("e", [RPM], { inherit: false });
    await limiter.acquire({ ...CALL, consume: { rpm: 0 } }, () => {});
    await repository.splitBucket!("e", "r", { shards: 2 });
    for (let count = 0; count < 6; count += 1)
      await limiter.acquire({ ...CALL, consume: { rpm: 6, tpm: 10 } }, () => {});
    const items = await table.bucketItems("e");
    expect(items.filter((item) => item["b_tpm_tc"] !== undefined)).toHaveLength(2);
    await repository.mergeBucket!("e", "r", { shards: 1 });
    expect(await totals()).toEqual({ counted: 60_000, tokens: [undefined] });
  });
});
