import { expect, it } from "vitest";
import { Limit, RateLimiter, type Lease } from "zae-limiter";
import type { DynamoRepository } from "zae-limiter/dynamodb";
import { getNumber } from "../../../src/repository/dynamodb/transport/attribute-values.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { useProxiedTable } from "../../support/proxied-table.ts";

const [RPM, TPM] = [Limit.perDay("rpm", 100), Limit.perDay("tpm", 1000)];
/** Time stands still, so that nothing is earned. */
const clock = { now: () => 1_800_000_000_000, sleep: async () => {} };

/** What was counted: calls, requests of the limit rpm, and tokens of the limit tpm. */
type Counts = readonly [calls: number, rpm: number, tpm: number];

describeWithEngine("what came by cascade, on the items of a table", (engine) => {
  const table = useProxiedTable(engine);

  /** What the calls of a bucket's own entity took, and what came by cascade, over all shards. */
  const counts = async (entityId = "p"): Promise<{ own: Counts; cascaded: Counts }> => {
    const items = await table.bucketItems(entityId);
    const sum = (attribute: string): number =>
      items.reduce((total, item) => total + (getNumber(item[attribute]) ?? 0), 0);
    const cascaded = [sum("gc"), sum("b_rpm_cc") / 1000, sum("b_tpm_cc") / 1000] as const;
    const [calls, rpm, tpm] = [sum("gr"), sum("b_rpm_tc") / 1000, sum("b_tpm_tc") / 1000];
    return {
      own: [calls - cascaded[0], rpm - cascaded[1], tpm - cascaded[2]],
      cascaded,
    };
  };

  const open = async (): Promise<{ repository: DynamoRepository; limiter: RateLimiter }> => {
    const repository = await table.open(undefined, { clock });
    await repository.setSystemDefaults([RPM, TPM]);
    await repository.createEntity("p");
    for (const child of ["a", "b"])
      await repository.createEntity(child, { parentId: "p", cascade: true });
    return { repository, limiter: new RateLimiter({ repository }) };
  };

  it("is counted by what the take was, when an entity begins or ceases to cascade", async () => {
    const { repository, limiter } = await open();
    const [settled, undone, extended] = await Promise.all(
      [1, 2, 3].map(async () => limiter.acquire(call("a"))),
    );
    await repository.updateEntity("a", { cascade: false });
    const apart = await limiter.acquire(call("a"));
    await extended!.consume({ tpm: 3 });
    settled!.settle({ tpm: 25 });
    await Promise.all([settled!.commit(), undone!.rollback(), extended!.commit()]);
    expect(await counts()).toEqual({ own: [0, 0, 0], cascaded: [2, 2, 35] });
    await repository.updateEntity("a", { cascade: true });
    await apart.consume({ tpm: 100 });
    apart.settle({ tpm: 60 });
    await apart.commit();
    expect(await counts()).toEqual({ own: [0, 0, 0], cascaded: [2, 2, 85] });
    expect(await counts("a")).toEqual({ own: [3, 3, 98], cascaded: [0, 0, 0] });
  });

  it("is kept by splits, gathers, divided ends and merges", async () => {
    const { repository, limiter } = await open();
    for (const entityId of ["a", "b"]) await repository.setLimits(entityId, [RPM, TPM]);
    const before = await limiter.acquire(call("a", 400));
    await limiter.acquire(call("p", 100), () => {});
    await repository.splitBucket!("p", "r", { shards: 4 });
    expect(await counts()).toEqual({ own: [1, 1, 100], cascaded: [1, 1, 400] });
    // No shard of the parent holds more than 150 now.
    const leases: Lease[] = [];
    const sent = await table.listOperations(async () => {
      const wanted = [call("b", 200), call("p", 160)];
      leases.push(...(await Promise.all(wanted.map(async (each) => limiter.acquire(each)))));
    });
    expect(sent).toContain("TransactWriteItems");
    const [cascaded, own] = leases;
    expect(await counts()).toEqual({ own: [2, 2, 260], cascaded: [2, 2, 600] });
    before.settle({ tpm: 90 });
    await before.commit();
    cascaded!.settle({ tpm: 230 });
    await cascaded!.commit();
    await own!.rollback();
    expect(await counts()).toEqual({ own: [1, 1, 100], cascaded: [2, 2, 320] });
    const undone = await limiter.acquire(call("b", 300));
    await repository.mergeBucket!("p", "r", { shards: 2 });
    await undone.rollback();
    await repository.mergeBucket!("p", "r", { shards: 1 });
    expect(await table.bucketItems("p")).toHaveLength(1);
    expect(await counts()).toEqual({ own: [1, 1, 100], cascaded: [2, 2, 320] });
  });
});

function call(entityId: string, tpm = 10): Parameters<RateLimiter["acquire"]>[0] {
  return { entityId, resource: "r", consume: { rpm: 1, tpm } };
}
