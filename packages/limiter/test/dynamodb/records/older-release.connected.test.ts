import { expect, it } from "vitest";
import { IncompatibleSchemaError, Limit, RateLimiter } from "zae-limiter";
import { ManualClock } from "zae-limiter/testing";
import { imageOf } from "../../../src/repository/dynamodb/items/bucket-item.ts";
import { bucketKey } from "../../../src/repository/dynamodb/items/bucket-key.ts";
import { configKey } from "../../../src/repository/dynamodb/items/keys.ts";
import { marshalKey } from "../../../src/repository/dynamodb/table/batch.ts";
import type { AttributeMap } from "../../../src/repository/dynamodb/transport/attribute-values.ts";
import { PolicyCache } from "../../../src/repository/policy-cache.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { useProxiedTable } from "../../support/proxied-table.ts";
import { bucketOfItem, configOfItem } from "../../support/release-before-inherit.ts";

const [RPM, TPM] = [Limit.perMinute("rpm", 60), Limit.perMinute("tpm", 1000)];

describeWithEngine("a release that does not know inherit", (engine) => {
  const table = useProxiedTable(engine);

  const itemAt = async (Key: object): Promise<AttributeMap | undefined> =>
    (await table.raw<{ Item?: AttributeMap }>("GetItem", { Key })).Item;

  it("refuses it while it runs, and reads on when it is gone", async () => {
    const repository = await table.open();
    await repository.setSystemDefaults([RPM, TPM]);
    await repository.setLimits("e", [RPM]);
    const clock = new ManualClock();
    const older = new PolicyCache({
      read: async (keys) =>
        Promise.all(
          keys.map(async (key) =>
            configOfItem(await itemAt(marshalKey(configKey(repository.namespaceId, key)))),
          ),
        ),
      clock,
      ttlMs: 1000,
    });
    const names = async (resource: string): Promise<unknown> =>
      (await older.resolve("e", resource))?.limits.map(({ name }) => name);
    expect(await names("r")).toEqual(["rpm"]);

    await repository.setLimits("e", [RPM], { inherit: true });
    expect(await names("r"), "it knows the former list while it remembers it").toEqual(["rpm"]);
    await clock.advance(1000);
    await expect(names("r")).rejects.toThrow(IncompatibleSchemaError);
    await expect(names("r")).rejects.toThrow("'inherit', which this version does not support");
    await repository.setLimits("e", [TPM]);
    expect(await names("r")).toEqual(["tpm"]);

    await repository.deleteLimits("e");
    await repository.setResourceDefaults("r", [RPM], { inherit: true });
    await clock.advance(1000);
    await expect(names("r")).rejects.toThrow(IncompatibleSchemaError);
    await repository.setResourceDefaults("r", [RPM]);
    expect(await names("r")).toEqual(["rpm"]);
  });

  it("reads buckets that have counted what no limit holds", async () => {
    const repository = await table.open();
    const limiter = new RateLimiter({ repository });
    await repository.setSystemDefaults([RPM, TPM]);
    await repository.setLimits("new", [RPM]);
    const call = { resource: "r", consume: { rpm: 1, tpm: 70 } };
    await limiter.acquire({ ...call, entityId: "new" }, (lease) => lease.settle({ tpm: 90 }));
    await limiter.acquire({ ...call, entityId: "old" }, () => {});
    await repository.setLimits("old", [RPM]);
    await limiter.acquire({ ...call, entityId: "old" }, () => {});
    const stored = async (entityId: string): Promise<AttributeMap> => {
      const name = { namespaceId: repository.namespaceId, entityId, resource: "r", shard: 0 };
      return (await itemAt(bucketKey(name, undefined).marshalled))!;
    };
    const [fresh, former] = [await stored("new"), await stored("old")];
    expect(fresh["b_tpm_tc"]).toEqual({ N: "90000" });
    expect(fresh["b_tpm_tk"]).toBeUndefined();
    expect(bucketOfItem(fresh)).toEqual([
      { name: "rpm", capacity: 60, hidden: false, tokensMilli: 59_000, consumedMilli: 1000 },
    ]);
    const [rpm, tpm] = bucketOfItem(former);
    expect(rpm).toMatchObject({ name: "rpm", hidden: false, consumedMilli: 2000 });
    expect(tpm).toMatchObject({ name: "tpm", hidden: true, consumedMilli: 140_000 });
    expect(imageOf(former).bucket.limits.map(({ limit }) => limit.name)).toEqual(["rpm", "tpm"]);
  });
});
