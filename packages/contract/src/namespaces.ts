import assert from "node:assert/strict";
import {
  InvalidNameError,
  NamespaceNotFoundError,
  NamespaceStateError,
  RateLimiter,
  type Repository,
  ValidationError,
} from "zae-limiter";
import { call, failsWith, fits, KEY, readLeft, RPM, take, TPM } from "./calls.ts";
import type { Topic } from "./world.ts";

/** Tenants: registered, scoped, deleted, recovered, purged, and never mixed up. */
export const namespacesTopic: Topic = (test) => {
  test("registering is idempotent, and a namespace reads back", async ({ repository, clock }) => {
    const namespaceId = await repository.registerNamespace("tenant-a");
    assert.equal(await repository.registerNamespace("tenant-a"), namespaceId);
    assert.deepEqual(await repository.getNamespace("tenant-a"), {
      name: "tenant-a",
      namespaceId,
      status: "active",
      createdAt: new Date(clock.now()),
      deletedAt: undefined,
    });
    assert.equal(await repository.getNamespace("tenant-b"), undefined);
    const ids = await repository.registerNamespaces(["tenant-a", "tenant-b"]);
    assert.equal(ids["tenant-a"], namespaceId);
    assert.notEqual(ids["tenant-b"], namespaceId);
    const names = new Set((await repository.listNamespaces()).map(({ name }) => name));
    for (const name of ["tenant-a", "tenant-b", repository.namespaceName])
      assert.ok(names.has(name), name);
  });

  test("a repository knows its own namespace", async ({ repository }) => {
    const own = await repository.getNamespace(repository.namespaceName);
    assert.equal(own?.namespaceId, repository.namespaceId);
    const tenant = await openTenant(repository, "tenant-a");
    assert.equal(tenant.namespaceName, "tenant-a");
    assert.equal(tenant.namespaceId, (await repository.getNamespace("tenant-a"))?.namespaceId);
  });

  test("scoping to an unregistered namespace throws, and registers nothing", async ({
    repository,
  }) => {
    const error = await failsWith(NamespaceNotFoundError, () => repository.namespace("tenant-a"));
    assert.equal(error.namespaceName, "tenant-a");
    assert.equal(await repository.getNamespace("tenant-a"), undefined);
  });

  test("namespaces share nothing", async (world) => {
    const a = await openTenant(world.repository, "tenant-a");
    const b = await openTenant(world.repository, "tenant-b");
    await a.setSystemDefaults([RPM], { onUnavailable: "allow" });
    await b.setSystemDefaults([TPM]);
    await a.createEntity(KEY, { name: "of a" });
    await a.setLimits(KEY, [RPM], { resource: "search" });
    const limiterA = { limiter: new RateLimiter({ repository: a }) };
    const limiterB = { limiter: new RateLimiter({ repository: b }) };
    await take(limiterA, { rpm: 60 });
    assert.deepEqual(await readLeft(limiterA), { rpm: 40 });
    assert.deepEqual(await readLeft(limiterB), { tpm: 1000 });
    assert.equal(await b.getEntity(KEY), undefined);
    assert.deepEqual(await b.getLimits(KEY, { resource: "search" }), []);
    assert.deepEqual(await b.getBuckets(KEY), []);
    assert.deepEqual((await b.getAuditEvents(KEY)).items, []);
    assert.deepEqual(await b.listResourcesWithEntityConfigs(), []);
    assert.equal((await b.getSystemDefaults()).onUnavailable, undefined);
    assert.deepEqual(await world.repository.getBuckets(KEY), []);
    if (b.capabilities.usageSnapshots)
      assert.equal((await b.getUsageSummary({ entityId: KEY })).snapshotCount, 0);
    await failsWith(ValidationError, () => world.limiter.acquire(call({ rpm: 1 })));
  });

  test("two repositories of one namespace see each other's changes at once", async (world) => {
    const first = await openTenant(world.repository, "tenant-a");
    const second = await world.repository.namespace("tenant-a");
    await first.setSystemDefaults([RPM]);
    const limiters = [first, second].map((repository) => ({
      limiter: new RateLimiter({ repository }),
    }));
    await take(limiters[0]!, { rpm: 60 });
    assert.equal(await fits(limiters[1]!, { rpm: 41 }), false);
    await second.setSystemDefaults([{ ...RPM, capacity: 10 }]);
    assert.deepEqual(await readLeft(limiters[0]!), { rpm: 10 });
  });

  test("closing a scoped repository does nothing", async (world) => {
    const tenant = await openTenant(world.repository, "tenant-a");
    await tenant.close();
    await tenant.setSystemDefaults([RPM]);
    assert.equal(await world.repository.ping(), true);
  });

  test("an onUnavailable that is passed with the scope is stored there, and the limits stay", async ({
    repository,
  }) => {
    await (
      await openTenant(repository, "tenant-a")
    ).setSystemDefaults([RPM], { usageRetentionDays: 5 });
    const tenant = await repository.namespace("tenant-a", { onUnavailable: "allow" });
    const stored = await tenant.getSystemDefaults();
    assert.deepEqual(
      [stored.limits, stored.onUnavailable, stored.usageRetentionDays],
      [[RPM], "allow", 5],
    );
    const recorded = (await tenant.getAuditEvents("$SYSTEM")).items.length;
    await repository.namespace("tenant-a", { onUnavailable: "allow" });
    assert.equal(
      (await tenant.getAuditEvents("$SYSTEM")).items.length,
      recorded,
      "storing the same value again is not a change",
    );
    await failsWith(ValidationError, () =>
      repository.namespace("tenant-a", { onUnavailable: "perhaps" as "allow" }),
    );
  });

  test("retention that is passed with the scope is stored there, also without limits", async ({
    repository,
  }) => {
    await openTenant(repository, "tenant-a");
    const tenant = await repository.namespace("tenant-a", {
      auditRetentionDays: 30,
      usageRetentionDays: 7,
    });
    const { limits, auditRetentionDays, usageRetentionDays } = await tenant.getSystemDefaults();
    assert.deepEqual([limits, auditRetentionDays, usageRetentionDays], [[], 30, 7]);
    await failsWith(ValidationError, () =>
      repository.namespace("tenant-a", { usageRetentionDays: 0 }),
    );
  });

  test("refuses invalid names, and registers none of a list that contains one", async ({
    repository,
  }) => {
    for (const name of [
      "",
      "1st",
      "a#b",
      "a/b",
      "a:b",
      "tenant\n",
      "x".repeat(65),
      undefined as unknown as string,
    ])
      await failsWith(
        InvalidNameError,
        () => repository.registerNamespace(name),
        JSON.stringify(name),
      );
    await failsWith(InvalidNameError, () => repository.registerNamespaces(["tenant-a", "a#b"]));
    assert.equal(await repository.getNamespace("tenant-a"), undefined);
  });

  test("a deleted namespace frees its name, is an orphan, and is recovered with its data", async (world) => {
    const { repository } = world;
    const tenant = await openTenant(repository, "tenant-a");
    const { namespaceId } = tenant;
    await tenant.setSystemDefaults([RPM]);
    await take({ limiter: new RateLimiter({ repository: tenant }) }, { rpm: 60 });
    await repository.deleteNamespace("tenant-a");
    assert.equal(await repository.getNamespace("tenant-a"), undefined);
    assert.ok(!(await repository.listNamespaces()).some(({ name }) => name === "tenant-a"));
    const orphan = (await repository.listOrphanNamespaces()).find(
      (info) => info.namespaceId === namespaceId,
    );
    assert.deepEqual(
      [orphan?.name, orphan?.status, orphan?.deletedAt],
      ["tenant-a", "deleted", new Date(world.clock.now())],
    );
    await failsWith(NamespaceNotFoundError, () => repository.namespace("tenant-a"));
    assert.equal(await repository.recoverNamespace(namespaceId), "tenant-a");
    const again = await repository.namespace("tenant-a");
    assert.equal(again.namespaceId, namespaceId);
    assert.deepEqual(await readLeft({ limiter: new RateLimiter({ repository: again }) }), {
      rpm: 40,
    });
    assert.equal((await repository.getNamespace("tenant-a"))?.deletedAt, undefined);
  });

  test("a name that is registered again is a new namespace, which blocks the recovery of the old one", async ({
    repository,
  }) => {
    const old = await openTenant(repository, "tenant-a");
    await old.setSystemDefaults([RPM]);
    await repository.deleteNamespace("tenant-a");
    const fresh = await openTenant(repository, "tenant-a");
    assert.notEqual(fresh.namespaceId, old.namespaceId);
    assert.deepEqual((await fresh.getSystemDefaults()).limits, []);
    const error = await failsWith(NamespaceStateError, () =>
      repository.recoverNamespace(old.namespaceId),
    );
    assert.equal(error.namespaceName, "tenant-a");
    await failsWith(NamespaceStateError, () => repository.recoverNamespace(fresh.namespaceId));
    await failsWith(NamespaceNotFoundError, () => repository.recoverNamespace("unknown-id"));
  });

  test("running clients notice within the cache time that their namespace was deleted", async (world) => {
    const tenant = await openTenant(world.repository, "tenant-a");
    await tenant.setSystemDefaults([RPM]);
    const limiter = new RateLimiter({ repository: tenant, onUnavailable: "allow" });
    await take({ limiter }, { rpm: 1 });
    await world.repository.deleteNamespace("tenant-a");
    await world.pass(tenant.getCacheStats().ttlMs + 1);
    await failsWith(NamespaceNotFoundError, () => limiter.acquire(call({ rpm: 1 })));
    await failsWith(NamespaceNotFoundError, () => limiter.check(call({ rpm: 1 })));
    await failsWith(NamespaceNotFoundError, () => tenant.createEntity(KEY));
    await failsWith(NamespaceNotFoundError, () => tenant.setLimits(KEY, [RPM]));
  });

  test("deleting a namespace that does not exist does nothing", async ({ repository }) => {
    await repository.deleteNamespace("tenant-a");
    assert.ok(!(await repository.listOrphanNamespaces()).some(({ name }) => name === "tenant-a"));
  });

  test("an aborted purge can be resumed", async ({ repository }) => {
    const { namespaceId } = await openTenant(repository, "tenant-a");
    await repository.deleteNamespace("tenant-a");
    const reason = new Error("not now");
    const purge = (): Promise<void> =>
      repository.purgeNamespace(namespaceId, { signal: AbortSignal.abort(reason) });
    assert.equal(await failsWith(Error, purge), reason);
    assert.ok(
      (await repository.listOrphanNamespaces()).some(
        (orphan) => orphan.namespaceId === namespaceId,
      ),
    );
    await repository.purgeNamespace(namespaceId);
    assert.ok(
      !(await repository.listOrphanNamespaces()).some(
        (orphan) => orphan.namespaceId === namespaceId,
      ),
    );
  });

  test("a purge removes everything, reports how much, and works on deleted namespaces only", async (world) => {
    const { repository } = world;
    const tenant = await openTenant(repository, "tenant-a");
    const neighbour = await openTenant(repository, "tenant-b");
    for (const each of [tenant, neighbour]) {
      await each.setSystemDefaults([RPM]);
      await each.createEntity(KEY);
      await take({ limiter: new RateLimiter({ repository: each }) }, { rpm: 60 });
    }
    const active = await failsWith(NamespaceStateError, () =>
      repository.purgeNamespace(tenant.namespaceId),
    );
    assert.equal(active.state, "active");
    await repository.deleteNamespace("tenant-a");
    let deleted = 0;
    await repository.purgeNamespace(tenant.namespaceId, {
      onProgress: (count) => (deleted = count),
    });
    assert.ok(deleted > 0, "progress was reported");
    assert.ok(
      !(await repository.listOrphanNamespaces()).some(
        ({ namespaceId }) => namespaceId === tenant.namespaceId,
      ),
    );
    await failsWith(NamespaceNotFoundError, () => repository.recoverNamespace(tenant.namespaceId));
    await repository.purgeNamespace(tenant.namespaceId);
    assert.equal((await neighbour.listEntities()).items.length, 1);
    assert.deepEqual(await readLeft({ limiter: new RateLimiter({ repository: neighbour }) }), {
      rpm: 40,
    });
  });

  test("a purge is final: clients that still have the namespace open get nothing, and restore nothing", async (world) => {
    const { repository } = world;
    const tenant = await openTenant(repository, "tenant-a");
    const { namespaceId } = tenant;
    await repository.registerNamespaces(["tenant-b", "tenant-c"]);
    await tenant.setSystemDefaults([RPM]);
    const limiter = new RateLimiter({ repository: tenant, onUnavailable: "allow" });
    const request = { ...call({ rpm: 10 }), resource: "search" };
    const [committed, rolledBack] = [
      await limiter.acquire(request),
      await limiter.acquire(request),
    ];
    await repository.deleteNamespace("tenant-a");
    await repository.purgeNamespace(namespaceId);

    const refused: readonly (() => Promise<unknown>)[] = [
      () => limiter.acquire(request),
      () => limiter.acquire(call({ rpm: 1 })),
      () => limiter.charge({ entityId: KEY, resource: "search", amounts: { rpm: 1 } }),
      () => limiter.charge({ entityId: KEY, resource: "new", amounts: { rpm: 1 } }),
      () => tenant.createEntity(KEY),
      () => tenant.setLimits(KEY, [RPM]),
      () => tenant.registerNamespace("tenant-d"),
    ];
    for (const [index, each] of refused.entries())
      await failsWith(NamespaceNotFoundError, each, `call ${index}`);
    committed.settle({ rpm: 20 });
    await committed.commit();
    await rolledBack.rollback();
    await tenant.deleteNamespace("tenant-b");
    if (repository.capabilities.usageSnapshots) await repository.getUsageSummary({ entityId: KEY });
    assert.equal(await countPurgedRecords(repository, namespaceId), undefined);

    // Purging a client's own namespace does not record an event in it either.
    const own = await repository.namespace("tenant-c");
    await own.deleteNamespace("tenant-c");
    await own.purgeNamespace(own.namespaceId);
    assert.equal(await countPurgedRecords(repository, own.namespaceId), undefined);

    const fresh = await openTenant(repository, "tenant-a");
    assert.notEqual(fresh.namespaceId, namespaceId);
    assert.deepEqual(await fresh.getBuckets(KEY), []);
    await failsWith(NamespaceNotFoundError, () => limiter.acquire(request));
  });
};

/** Counts the records that a purge removes; undefined if it finds no namespace. */
async function countPurgedRecords(
  repository: Repository,
  namespaceId: string,
): Promise<number | undefined> {
  let removed: number | undefined;
  await repository.purgeNamespace(namespaceId, { onProgress: (count) => (removed = count) });
  return removed;
}

async function openTenant(repository: Repository, name: string): Promise<Repository> {
  await repository.registerNamespace(name);
  return repository.namespace(name);
}
