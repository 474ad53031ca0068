import { expect, it } from "vitest";
import { snapshotUpdate } from "../../../src/repository/dynamodb/aggregator/usage/snapshot-update.ts";
import { usageSums } from "../../../src/repository/dynamodb/aggregator/usage/usage-sums.ts";
import { getString } from "../../../src/repository/dynamodb/transport/attribute-values.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { useProxiedTable } from "../../support/proxied-table.ts";
import { bucketItem, buildRecord } from "../../support/usage-process.ts";

describeWithEngine("the write of a snapshot", (engine) => {
  const table = useProxiedTable(engine);

  it("fits one write for 32 limits on 64 shards, and the engine refuses it the second time", async () => {
    await table.open("default", { stream: true });
    const totals = Array.from({ length: 32 }, (_, index) => [
      [`b_limit-${index}_tc`, index + 1],
      [`b_limit-${index}_cc`, 100 + index],
    ]).flat() as [string, number][];
    const records = Array.from({ length: 64 }, (_, shard) => {
      const after = bucketItem({ ...Object.fromEntries(totals), gr: 1, gc: 1 }, shard);
      return buildRecord({ after, atMs: 0, number: shard + 1 });
    });
    const [sum] = usageSums(records, ["hourly"]).sums;
    const write = (): Promise<object> => table.raw("UpdateItem", snapshotUpdate(sum!, 90));
    await write();
    await expect(write()).rejects.toThrow(/conditional/i);
    const item = (await table.items()).find(({ SK }) => getString(SK)?.startsWith("#USAGE#"));
    expect(item!["u_limit-31"]).toEqual({ N: String(32 * 64) });
    expect(item!["cascaded_requests"]).toEqual({ N: "64" });
  });
});
