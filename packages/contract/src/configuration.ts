import assert from "node:assert/strict";
import { Limit } from "zae-limiter";
import { call, KEY, readLeft, MODEL, getRefusal, RPM, take, TPM } from "./calls.ts";
import type { Topic } from "./world.ts";

/** The four levels of stored limits. */
export const configurationTopic: Topic = (test) => {
  test("the strongest level that has limits applies, and hides the others with inherit: false", async ({
    repository,
    limiter,
  }) => {
    const resolved = async (): Promise<string> => {
      const found = await repository.resolveLimits(KEY, MODEL);
      return found === undefined
        ? "none"
        : `${found.source}: ${found.limits.map((limit) => Limit.format(limit)).join(" ")}`;
    };
    assert.equal(await resolved(), "none");
    await repository.setSystemDefaults([RPM, TPM]);
    assert.equal(await resolved(), "system: rpm:100/min tpm:1000/min");
    await repository.setResourceDefaults(MODEL, [Limit.perMinute("rpm", 50)], { inherit: false });
    assert.equal(await resolved(), "resource: rpm:50/min");
    await repository.setLimits(KEY, [Limit.perMinute("rpm", 30)], { inherit: false });
    assert.equal(await resolved(), "entity_default: rpm:30/min");
    await repository.setLimits(KEY, [Limit.perMinute("rpm", 10)], {
      resource: MODEL,
      inherit: false,
    });
    assert.equal(await resolved(), "entity: rpm:10/min");
    assert.equal((await repository.resolveLimits(KEY, "search"))?.source, "entity_default");
    assert.equal((await repository.resolveLimits("other", MODEL))?.source, "resource");
    const refusal = await getRefusal(limiter, call({ rpm: 11 }));
    assert.equal(refusal.primaryViolation.source, "entity");
    await repository.deleteLimits(KEY, { resource: MODEL });
    assert.equal(await resolved(), "entity_default: rpm:30/min");
    await repository.deleteLimits(KEY);
    assert.equal(await resolved(), "resource: rpm:50/min");
    await repository.deleteResourceDefaults(MODEL);
    assert.equal(await resolved(), "system: rpm:100/min tpm:1000/min");
    await repository.deleteSystemDefaults();
    assert.equal(await resolved(), "none");
  });

  test("limits and settings read back as they were set", async ({ repository }) => {
    const burst = Limit.perMinute("tpm", 10_000, { burst: 15_000 });
    await repository.setLimits(KEY, [RPM, burst], { resource: MODEL });
    assert.deepEqual(await repository.getLimits(KEY, { resource: MODEL }), [RPM, burst]);
    assert.deepEqual(await repository.getLimits(KEY), []);
    await repository.setLimits(KEY, [burst]);
    assert.deepEqual(await repository.getLimits(KEY), [burst]);
    await repository.setResourceDefaults(MODEL, [burst]);
    assert.deepEqual(await repository.getResourceDefaults(MODEL), [burst]);
    assert.deepEqual(await repository.getResourceDefaults("search"), []);
    await repository.setLimits(KEY, [RPM]);
    assert.deepEqual(
      await repository.getLimits(KEY),
      [RPM],
      "a second set replaces the whole list",
    );
  });

  test("options of the system defaults that are set concurrently are all kept", async ({
    repository,
  }) => {
    await Promise.all([
      repository.setSystemDefaults([RPM], { onUnavailable: "allow" }),
      repository.setSystemDefaults([RPM], { auditRetentionDays: 30 }),
      repository.setSystemDefaults([RPM], { usageRetentionDays: 7 }),
    ]);
    assert.deepEqual(await repository.getSystemDefaults(), {
      limits: [RPM],
      onUnavailable: "allow",
      auditRetentionDays: 30,
      usageRetentionDays: 7,
    });
  });

  test("an omitted option of the system defaults keeps its stored value", async ({
    repository,
  }) => {
    assert.deepEqual(await repository.getSystemDefaults(), {
      limits: [],
      onUnavailable: undefined,
      auditRetentionDays: 90,
      usageRetentionDays: 90,
    });
    await repository.setSystemDefaults([RPM], {
      onUnavailable: "allow",
      auditRetentionDays: 30,
      usageRetentionDays: 7,
    });
    await repository.setSystemDefaults([TPM]);
    assert.deepEqual(await repository.getSystemDefaults(), {
      limits: [TPM],
      onUnavailable: "allow",
      auditRetentionDays: 30,
      usageRetentionDays: 7,
    });
    await repository.setSystemDefaults([TPM], { onUnavailable: "block" });
    assert.equal((await repository.getSystemDefaults()).onUnavailable, "block");
    assert.equal((await repository.resolveLimits(KEY, MODEL))?.onUnavailable, "block");
    assert.equal((await repository.getSystemDefaults()).auditRetentionDays, 30);
  });

  test("deleting limits that do not exist does nothing", async ({ repository }) => {
    await repository.deleteLimits(KEY);
    await repository.deleteLimits(KEY, { resource: MODEL });
    await repository.deleteResourceDefaults(MODEL);
    await repository.deleteSystemDefaults();
    assert.deepEqual((await repository.getAuditEvents(KEY)).items, []);
  });

  test("buckets are listed as stored, in millitokens and milliseconds", async (world) => {
    await world.repository.setSystemDefaults([Limit.perMinute("rpm", 100, { burst: 120 }), TPM]);
    await take(world, { rpm: 20 });
    const startMs = world.clock.now();
    await take(world, { tpm: 1 }, { resource: "search" });
    await world.pass(1000);
    const buckets = await world.repository.getBuckets(KEY, { resource: MODEL });
    const rpm = buckets.find(({ limitName }) => limitName === "rpm");
    assert.deepEqual(rpm, {
      entityId: KEY,
      resource: MODEL,
      limitName: "rpm",
      shard: 0,
      shardCount: 1,
      kind: "rate",
      tokensMilli: 100_000,
      windowEndMs: undefined,
      lastRefillMs: startMs,
      capacityMilli: 120_000,
      refillAmountMilli: 100_000,
      refillPeriodMs: 60_000,
      totalConsumedMilli: 20_000,
      available: 101,
    });
    const all = await world.repository.getBuckets(KEY);
    assert.deepEqual(
      all.map(({ resource, limitName }) => `${resource}.${limitName}`).sort(),
      [`${MODEL}.rpm`, `${MODEL}.tpm`, "search.rpm", "search.tpm"].sort(),
    );
    assert.deepEqual(await world.repository.getBuckets("other"), []);
  });

  test("the net total consumed counts what was settled and not what was given back", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    await world.limiter.acquire(call({ tpm: 100 }), (lease) => lease.settle({ tpm: 150 }));
    const undone = await world.limiter.acquire(call({ tpm: 300 }));
    await undone.rollback();
    const buckets = await world.repository.getBuckets(KEY);
    const total = buckets
      .filter(({ limitName }) => limitName === "tpm")
      .reduce((sum, { totalConsumedMilli }) => sum + totalConsumedMilli, 0);
    assert.equal(total, 150_000);
    assert.deepEqual(await readLeft(world), { rpm: 100, tpm: 850 });
  });
};
