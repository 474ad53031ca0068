import { expect, it } from "vitest";
import { Limit, RateLimiter } from "zae-limiter";
import { openAggregator, type Aggregator } from "zae-limiter/aggregator";
import { heartbeatOf } from "../../../src/repository/dynamodb/items/heartbeat-item.ts";
import { heartbeatKey } from "../../../src/repository/dynamodb/items/keys.ts";
import { keyOf } from "../../../src/repository/dynamodb/table/batch.ts";
import { snapshotUpdate } from "../../../src/repository/dynamodb/aggregator/usage/snapshot-update.ts";
import { usageSums } from "../../../src/repository/dynamodb/aggregator/usage/usage-sums.ts";
import {
  numberOf,
  type AttributeMap,
} from "../../../src/repository/dynamodb/transport/attribute-values.ts";
import { connect } from "../../support/connect.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { useProxiedTable } from "../../support/proxied-table.ts";
import { StreamReader } from "../../support/stream-reader.ts";
import { bucketItem, recordOf } from "../../support/usage-process.ts";

describeWithEngine("usage from the engine's own stream", (engine) => {
  const table = useProxiedTable(engine);

  const snapshots = async (window: string): Promise<readonly AttributeMap[]> =>
    (await table.items()).filter((item) => keyOf(item).SK.startsWith(`#USAGE#${window}#`));

  const total = async (window: string, counter: string): Promise<number> =>
    (await snapshots(window)).reduce((sum, item) => sum + (numberOf(item[counter]) ?? 0), 0);

  it("is what calls consumed, also when everything is delivered twice", async () => {
    const repository = await table.open("default", { stream: true });
    const limits = [Limit.perMinute("rpm", 10), Limit.perMinute("tpm", 1000)];
    await repository.setResourceDefaults("gpt", limits);
    const limiter = new RateLimiter({ repository });
    const call = { entityId: "key", resource: "gpt", consume: { rpm: 1, tpm: 100 } };
    for (let count = 0; count < 3; count += 1)
      await limiter.acquire(call, (lease) => lease.adjust({ tpm: 7 }));
    await limiter.acquire(call, () => Promise.reject(new Error("no work"))).catch(() => {});
    await limiter.acquire({ ...call, consume: { rpm: 100 } }, () => {}).catch(() => {});

    const { endpointUrl } = engine();
    const { tableName } = repository;
    const place = { stack: tableName, endpointUrl, region: "us-east-1" };
    const aggregator: Aggregator = await openAggregator(place);
    const { connection } = await connect(endpointUrl, { tableName });
    const reader = await StreamReader.open(connection);
    const records = await reader.read();
    expect((await aggregator.process(records)).failures).toEqual([]);
    expect((await aggregator.process(records)).snapshotWrites).toBe(0);
    for (const window of ["hourly", "daily", "monthly"]) {
      expect(await total(window, "u_rpm")).toBe(3_000);
      expect(await total(window, "u_tpm")).toBe(321_000);
      expect(await total(window, "requests")).toBe(3);
    }

    // What the aggregator wrote itself comes back too, and is the reason for nothing.
    const own = await reader.read();
    expect(own.length).toBeGreaterThan(0);
    await aggregator.process(own);
    expect(await reader.read()).toEqual([]);

    await aggregator.pulse();
    const pulse = await reader.read();
    await aggregator.process(pulse);
    const heartbeat = (await table.items()).find((item) => keyOf(item).SK === heartbeatKey().SK);
    expect(heartbeatOf(heartbeat)?.countedUntilMs).toBe(pulse.at(-1)!.atMs);
    aggregator.close();
    connection.close();
  });

  it("fits one write for 32 limits on 64 shards, and the engine refuses it the second time", async () => {
    await table.open("default", { stream: true });
    const totals = Array.from({ length: 32 }, (_, index) => [
      [`b_limit-${index}_tc`, index + 1],
      [`b_limit-${index}_cc`, 100 + index],
    ]).flat() as [string, number][];
    const records = Array.from({ length: 64 }, (_, shard) => {
      const after = bucketItem({ ...Object.fromEntries(totals), gr: 1, gc: 1 }, shard);
      return recordOf({ after, atMs: 0, number: shard + 1 });
    });
    const [sum] = usageSums(records, ["hourly"]).sums;
    const write = (): Promise<object> => table.raw("UpdateItem", snapshotUpdate(sum!, 90));
    await write();
    await expect(write()).rejects.toThrow(/conditional/i);
    const [item] = await snapshots("hourly");
    expect(item!["u_limit-31"]).toEqual({ N: String(32 * 64) });
    expect(item!["cascaded_requests"]).toEqual({ N: "64" });
  });
});
