import assert from "node:assert/strict";
import {
  RateLimiter,
  RateLimiterUnavailable,
  type Repository,
  type RepositoryPort,
} from "zae-limiter";
import { call, failsWith, KEY, MODEL, RPM, take } from "./calls.ts";
import type { Topic } from "./world.ts";

/** Members that need no store, or that end it. */
type Local =
  | "getCacheStats"
  | "getStatistics"
  | "capabilities"
  | "namespaceName"
  | "namespaceId"
  | "splitBucket"
  | "mergeBucket"
  | "ping"
  | "close"
  | typeof Symbol.asyncDispose;

/**
 * One call of every operation. Operations that the limiter calls are tested through the limiter.
 */
const CALLS: Readonly<
  Record<
    Exclude<keyof Repository, keyof RepositoryPort | Local>,
    (repository: Repository) => Promise<unknown>
  >
> = {
  createEntity: (repository) => repository.createEntity("new"),
  ensureEntity: (repository) => repository.ensureEntity(KEY),
  updateEntity: (repository) => repository.updateEntity(KEY, { name: "Ada" }),
  getEntity: (repository) => repository.getEntity(KEY),
  getChildren: (repository) => repository.getChildren(KEY),
  listEntities: (repository) => repository.listEntities(),
  deleteEntity: (repository) => repository.deleteEntity(KEY),
  setLimits: (repository) => repository.setLimits(KEY, [RPM]),
  getLimits: (repository) => repository.getLimits(KEY),
  getLevel: (repository) => repository.getLevel({ resource: MODEL }),
  batchGetLevels: (repository) => repository.batchGetLevels([{}]),
  deleteLimits: (repository) => repository.deleteLimits(KEY),
  setResourceDefaults: (repository) => repository.setResourceDefaults(MODEL, [RPM]),
  getResourceDefaults: (repository) => repository.getResourceDefaults(MODEL),
  deleteResourceDefaults: (repository) => repository.deleteResourceDefaults(MODEL),
  setSystemDefaults: (repository) => repository.setSystemDefaults([RPM]),
  getSystemDefaults: (repository) => repository.getSystemDefaults(),
  deleteSystemDefaults: (repository) => repository.deleteSystemDefaults(),
  listResourcesWithDefaults: (repository) => repository.listResourcesWithDefaults(),
  listEntitiesWithCustomLimits: (repository) => repository.listEntitiesWithCustomLimits(MODEL),
  listResourcesWithEntityConfigs: (repository) => repository.listResourcesWithEntityConfigs(),
  resolveLimits: (repository) => repository.resolveLimits(KEY, MODEL),
  invalidateConfigCache: (repository) => repository.invalidateConfigCache(),
  getBuckets: (repository) => repository.getBuckets(KEY),
  getBucket: (repository) => repository.getBucket(KEY, MODEL),
  batchGetBuckets: (repository) => repository.batchGetBuckets([KEY]),
  getResourceBuckets: (repository) => repository.getResourceBuckets(MODEL),
  getResourceCapacity: (repository) => repository.getResourceCapacity(MODEL, "rpm"),
  getUsageSnapshots: (repository) => repository.getUsageSnapshots({ entityId: KEY }),
  getUsageSummary: (repository) => repository.getUsageSummary({ entityId: KEY }),
  getAuditEvents: (repository) => repository.getAuditEvents(KEY),
  namespace: (repository) => repository.namespace("tenant"),
  registerNamespace: (repository) => repository.registerNamespace("tenant"),
  registerNamespaces: (repository) => repository.registerNamespaces(["tenant"]),
  getNamespace: (repository) => repository.getNamespace("tenant"),
  listNamespaces: (repository) => repository.listNamespaces(),
  deleteNamespace: (repository) => repository.deleteNamespace("tenant"),
  recoverNamespace: (repository) => repository.recoverNamespace("an-id"),
  listOrphanNamespaces: (repository) => repository.listOrphanNamespaces(),
  purgeNamespace: (repository) => repository.purgeNamespace("an-id"),
  getProvisionerState: (repository) => repository.getProvisionerState(),
  putProvisionerState: (repository) =>
    repository.putProvisionerState({
      managedSystem: false,
      managedResources: [],
      managedEntities: {},
      lastApplied: undefined,
      appliedHash: undefined,
      revision: 0,
    }),
  getVersionRecord: (repository) => repository.getVersionRecord(),
  setVersionRecord: (repository) => repository.setVersionRecord({ schemaVersion: "1.0.0" }),
};

/** A closed repository: every operation fails, in every namespace, with the same error. */
export const closingTopic: Topic = (test) => {
  test("every operation of a closed repository fails with the same error", async (world) => {
    const { repository, limiter } = world;
    await repository.setSystemDefaults([RPM]);
    await take(world, { rpm: 1 });
    await repository.registerNamespace("tenant");
    const scoped = await repository.namespace("tenant");
    await scoped.setSystemDefaults([RPM]);
    const ofTenant = new RateLimiter({ repository: scoped });
    await take({ limiter: ofTenant }, { rpm: 1 });
    const held = await limiter.acquire(call({ rpm: 1 }));
    await repository.close();
    const { reason } = repository.closed;
    assert.ok(reason instanceof RateLimiterUnavailable);
    const failsAsClosed = async (name: string, operation: () => unknown): Promise<void> => {
      const error = await failsWith(RateLimiterUnavailable, operation, name);
      assert.ok(error.message.startsWith(reason.message), `${name}: ${error.message}`);
    };
    for (const [name, operation] of Object.entries(CALLS)) {
      await failsAsClosed(name, () => operation(repository));
      await failsAsClosed(`${name} of a tenant`, () => operation(scoped));
    }
    for (const asked of [limiter, ofTenant]) {
      await failsAsClosed("acquire", () => asked.acquire(call({ rpm: 1 })));
      await failsAsClosed("tryAcquire", () => asked.tryAcquire(call({ rpm: 1 })));
      await failsAsClosed("charge", () =>
        asked.charge({ entityId: KEY, resource: MODEL, amounts: { rpm: 1 } }),
      );
      await failsAsClosed("check", () => asked.check(call({ rpm: 1 })));
      await failsAsClosed("available", () => asked.available(KEY, MODEL));
    }
    await failsAsClosed("consume of a lease", () => held.consume({ rpm: 1 }));
    await failsAsClosed("rollback of a lease", () => held.rollback());
    assert.equal(await repository.ping(), false);
    assert.equal(await scoped.ping(), false);
  });
};
