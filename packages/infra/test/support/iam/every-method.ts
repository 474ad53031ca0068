import { Limit, RateLimiter, type Repository } from "zae-limiter";
import type { DynamoRepository } from "zae-limiter/dynamodb";

const RPM = Limit.perDay("rpm", 1000);

/** Entities and limits that the other scenarios find; then, everything that changes them. */
export async function manageInEveryWay(repository: Repository): Promise<void> {
  await repository.setSystemDefaults([RPM], { onUnavailable: "block", auditRetentionDays: 30 });
  await repository.setResourceDefaults("gpt-4", [RPM], { inherit: true });
  await repository.createEntity("project-1");
  await repository.ensureEntity("key-1", { parentId: "project-1", cascade: true });
  await repository.updateEntity("key-1", { name: "Ada's key" });
  await repository.setLimits("key-1", [RPM], { resource: "gpt-4", inherit: true });
  await repository.setLimits("leaver", [RPM]);
  await repository.setResourceDefaults("gpt-2", [RPM]);
  await repository.createEntity("leaver", { parentId: "project-1" });
  await repository.deleteLimits("leaver");
  await repository.setLimits("leaver", [RPM]);
  await takeOne(repository, "leaver");
  await repository.deleteEntity("leaver");
  await repository.deleteEntity("leaver", { history: true });
  await repository.deleteResourceDefaults("gpt-2");
  await putLargeState(repository);
  await putLargeState(repository);
  const { revision } = await repository.getProvisionerState();
  await manageUnder(repository, revision);
}

/** Every change that can depend on the revision of declared limits. */
async function manageUnder(repository: Repository, ifRevision: number): Promise<void> {
  await repository.createEntity("declared", { parentId: "project-1", ifRevision });
  await repository.ensureEntity("declared", { ifRevision });
  await repository.updateEntity("declared", { name: "Declared", ifRevision });
  await repository.setLimits("declared", [RPM], { ifRevision });
  await repository.deleteLimits("declared", { ifRevision });
  await repository.setResourceDefaults("gpt-3", [RPM], { ifRevision });
  await repository.deleteResourceDefaults("gpt-3", { ifRevision });
  await repository.setSystemDefaults(undefined, { usageRetentionDays: 30, ifRevision });
}

/** Ends what `manageInEveryWay` began. */
export async function forgetDefaults(repository: Repository): Promise<void> {
  await repository.deleteSystemDefaults({ keepSettings: true });
  await repository.deleteSystemDefaults();
}

/** The calls of a limiter: ends, refusals, waiting, several resources, charges, parents, shards. */
export async function acquireInEveryWay(
  repository: Repository,
  { stranger = "stranger" }: { readonly stranger?: string } = {},
): Promise<void> {
  const limiter = new RateLimiter({ repository });
  const request = { entityId: "key-1", resource: "gpt-4", consume: { rpm: 1 } };
  await limiter.acquire(request, (lease) => lease.settle({ rpm: 2 }));
  const lease = await limiter.acquire({ ...request, waitUpToMs: 1 });
  await lease.consume({ rpm: 1 });
  await lease.statuses();
  await lease.rollback();
  await (await limiter.acquire({ ...request, also: { "gpt-5": { rpm: 1 } } })).commit();
  await limiter.tryAcquire({ ...request, consume: { rpm: 5000 } });
  await limiter.charge({ entityId: "key-1", resource: "gpt-4", amounts: { rpm: 1 } });
  // What no shard holds alone is gathered.
  await takeOne(repository, stranger);
  await repository.splitBucket!(stranger, "gpt-4", { shards: 4 });
  await (await limiter.acquire({ ...request, entityId: stranger, consume: { rpm: 600 } })).commit();
  await repository.mergeBucket!(stranger, "gpt-4", { shards: 1 });
}

/** The reads of a limiter, and everything that is found by key. */
async function lookAround(repository: Repository): Promise<void> {
  const limiter = new RateLimiter({ repository });
  await limiter.check({ entityId: "key-1", resource: "gpt-4", consume: { rpm: 1 } });
  await limiter.available("key-1", "gpt-4");
  await limiter.timeUntilAvailable("key-1", "gpt-4", { rpm: 8 });
  await limiter.isReachable();
  await repository.invalidateConfigCache();
  repository.knowsLimit("key-1", "gpt-4", "rpm");
  repository.getCacheStats();
  repository.getStatistics();
  await repository.namespace(repository.namespaceName);
  await repository.getNamespace(repository.namespaceName);
  await repository.getVersionRecord();
  await (repository as DynamoRepository).getCountedUntil();
  await repository.resolveLimits("key-1", "gpt-4");
  await repository.getLimits("key-1");
  await repository.getLevel({ entityId: "key-1", resource: "gpt-4" });
  await repository.batchGetLevels([{}, { resource: "gpt-4" }]);
  await repository.getBucket("key-1", "gpt-4");
  await repository.getResourceDefaults("gpt-4");
  await repository.getSystemDefaults();
  await repository.getEntity("key-1");
}

/** Everything that lists, counts and reports on one namespace. */
export async function readInEveryWay(repository: Repository): Promise<void> {
  await lookAround(repository);
  await repository.getChildren("project-1");
  await repository.listEntities({ limit: 1 });
  await repository.listResourcesWithDefaults();
  await repository.listEntitiesWithCustomLimits("gpt-4");
  await repository.listResourcesWithEntityConfigs();
  await repository.getBuckets("key-1");
  await repository.getBuckets("key-1", { resource: "gpt-4" });
  await repository.batchGetBuckets(["key-1"]);
  await repository.batchGetBuckets(["key-1"], { resource: "gpt-4" });
  await repository.getResourceBuckets("gpt-4");
  await repository.getResourceCapacity("gpt-4", "rpm", { parentsOnly: true });
  await repository.getUsageSnapshots({ entityId: "key-1" });
  await repository.getUsageSnapshots({ resource: "gpt-4" });
  await repository.getUsageSummary({ entityId: "key-1", resource: "gpt-4" });
  await repository.getAuditEvents("key-1");
  await repository.getProvisionerState();
}

/** What sees all namespaces. */
export async function readNamespaces(repository: Repository): Promise<void> {
  await repository.listNamespaces();
  await repository.listOrphanNamespaces();
}

/** What changes namespaces and the version. */
export async function manageNamespaces(repository: Repository): Promise<void> {
  const namespaceId = await repository.registerNamespace("short-lived");
  await repository.registerNamespaces(["short-lived", "another"]);
  const scoped = await repository.namespace("short-lived", { onUnavailable: "allow" });
  await takeOne(scoped, "key-2", [RPM]);
  await repository.deleteNamespace("short-lived");
  await repository.recoverNamespace(namespaceId);
  await repository.deleteNamespace("short-lived");
  await repository.purgeNamespace(namespaceId);
  await repository.setVersionRecord({ schemaVersion: "1.0.0", updatedBy: "test" });
}

/** Stores a state of declared limits that one item does not hold, in place of what is there. */
async function putLargeState(repository: Repository): Promise<void> {
  const managedResources = Array.from({ length: 500 }, (_, index) => `resource-${index}`);
  await repository.putProvisionerState({
    ...(await repository.getProvisionerState()),
    managedResources,
  });
}

async function takeOne(
  repository: Repository,
  entityId: string,
  limits?: readonly Limit[],
): Promise<void> {
  const limiter = new RateLimiter({ repository });
  const request = { entityId, resource: "gpt-4", consume: { rpm: 1 } };
  await (await limiter.acquire({ ...request, ...(limits && { limits }) })).commit();
}
