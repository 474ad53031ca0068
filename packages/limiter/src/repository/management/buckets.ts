import { MILLI } from "../../core/amounts.ts";
import {
  balanceMilli,
  findOpenEndMs,
  getConsumedMilli,
  getStoredMilli,
} from "../../core/bucket/bucket.ts";
import { ValidationError } from "../../core/errors.ts";
import {
  entityId as checkEntityId,
  limitName as checkLimitName,
  resourceName,
} from "../../core/identifiers.ts";
import type {
  BucketOptions,
  BucketsOptions,
  BucketState,
  CapacityOptions,
  EntityCapacity,
  LimitTotal,
  Page,
  ResourceBucket,
  ResourceBucketsOptions,
  ResourceCapacity,
} from "../repository.ts";
import type { BucketStore, Keyed, KeyPage, StoredBucket } from "../store.ts";
import { wholeMs } from "../system-clock.ts";
import type { Context } from "./context.ts";
import { checkMany, parsePageRequest, toPage } from "./paging.ts";

/** Reads the buckets of an entity, one entry for each visible limit. */
export async function getBuckets(
  context: Context,
  entityId: string,
  options: BucketsOptions,
): Promise<readonly BucketState[]> {
  const stored = await context.data.buckets.ofEntity(
    checkEntityId(entityId),
    optionalResource(options),
  );
  const timeMs = wholeMs(context.clock);
  return stored.flatMap((bucket) => buildStates(bucket, timeMs));
}

/** Reads one shard of a bucket; undefined if it does not exist. */
export async function getBucket(
  context: Context,
  entityId: string,
  resource: string,
  { shard = 0 }: BucketOptions,
): Promise<readonly BucketState[] | undefined> {
  checkEntityId(entityId);
  resourceName(resource);
  if (!Number.isSafeInteger(shard) || shard < 0)
    throw new ValidationError("shard", shard, "must be a whole number, 0 for the first shard");
  const { buckets } = context.data;
  const stored =
    buckets.get === undefined
      ? (await buckets.ofEntity(entityId, resource)).find((each) => each.shard === shard)
      : await buckets.get(entityId, resource, shard);
  return stored === undefined ? undefined : buildStates(stored, wholeMs(context.clock));
}

/** Reads the buckets of many entities. */
export async function batchGetBuckets(
  context: Context,
  entityIds: readonly string[],
  options: BucketsOptions,
): Promise<ReadonlyMap<string, readonly BucketState[]>> {
  const checked = checkMany(entityIds, "entityIds").map((id, index) =>
    checkEntityId(id, `entityIds[${index}]`),
  );
  const states = new Map<string, BucketState[]>(checked.map((id) => [id, []]));
  const stored = await readOfEntities(
    context.data.buckets,
    [...states.keys()],
    optionalResource(options),
  );
  const timeMs = wholeMs(context.clock);
  for (const bucket of stored) states.get(bucket.entityId)?.push(...buildStates(bucket, timeMs));
  return states;
}

/** Reads one page of the buckets of a resource. */
export async function getResourceBuckets(
  context: Context,
  resource: string,
  { limitName, ...paging }: ResourceBucketsOptions,
): Promise<Page<ResourceBucket>> {
  if (limitName !== undefined) checkLimitName(limitName, "limitName");
  const query = `buckets of ${resourceName(resource)}`;
  const wanted = parsePageRequest(query, paging);
  const { items, next } = await readResourcePage(context.data.buckets, resource, wanted);
  const timeMs = wholeMs(context.clock);
  const buckets = groupByEntity(items)
    .map((shards) => buildResourceBucket(shards, limitName, timeMs))
    .filter(({ limits }) => limits.length > 0);
  return toPage(query, { items: buckets, next }, (bucket) => bucket);
}

/** Adds up what all entities have left of one limit. */
export async function getResourceCapacity(
  context: Context,
  resource: string,
  limitName: string,
  options: CapacityOptions,
): Promise<ResourceCapacity> {
  checkLimitName(limitName, "limitName");
  const stored = await context.data.buckets.ofResource(resourceName(resource));
  const timeMs = wholeMs(context.clock);
  const all = groupByEntity(stored)
    .flatMap((shards) => buildCapacities(shards, limitName, timeMs))
    .sort((left, right) => (left.entityId < right.entityId ? -1 : 1));
  // Stores that are far away read records that are asked for together in batches.
  const records = await Promise.all(
    all.map(async ({ entityId }) => context.data.entities.get(entityId)),
  );
  const parents = new Set(records.map((record) => record?.cascade && record.parentId));
  const entities = options.parentsOnly
    ? all.filter((_, index) => records[index]?.parentId === undefined)
    : all;
  const total = addCapacities(entities);
  const cascaded = addCapacities(entities.filter(({ entityId }) => parents.has(entityId)));
  return {
    resource,
    limitName,
    totalCapacity: total.capacity,
    totalAvailable: total.available,
    utilizationPct: utilization(total.capacity, total.available),
    cascadedCapacity: cascaded.capacity,
    cascadedAvailable: cascaded.available,
    entities,
  };
}

function optionalResource({ resource }: BucketsOptions): string | undefined {
  return resource === undefined ? undefined : resourceName(resource);
}

async function readOfEntities(
  buckets: BucketStore,
  entityIds: readonly string[],
  resource: string | undefined,
): Promise<readonly StoredBucket[]> {
  if (buckets.ofEntities !== undefined) return buckets.ofEntities(entityIds, resource);
  const stored: StoredBucket[] = [];
  for (const id of entityIds) stored.push(...(await buckets.ofEntity(id, resource)));
  return stored;
}

async function readResourcePage(
  buckets: BucketStore,
  resource: string,
  page: KeyPage,
): Promise<Keyed<StoredBucket>> {
  if (buckets.ofResourcePage !== undefined) return buckets.ofResourcePage(resource, page);
  const { limit, after = "" } = page;
  const rest = groupByEntity(await buckets.ofResource(resource))
    .filter(([first]) => first!.entityId > after)
    .sort(([left], [right]) => (left!.entityId < right!.entityId ? -1 : 1));
  return {
    items: rest.slice(0, limit).flat(),
    next: rest.length > limit ? rest[limit - 1]![0]!.entityId : undefined,
  };
}

/** The shards of each bucket of one resource. */
function groupByEntity(stored: readonly StoredBucket[]): readonly (readonly StoredBucket[])[] {
  const groups = new Map<string, StoredBucket[]>();
  for (const bucket of stored) {
    const group = groups.get(bucket.entityId);
    if (group === undefined) groups.set(bucket.entityId, [bucket]);
    else group.push(bucket);
  }
  return [...groups.values()];
}

function buildResourceBucket(
  shards: readonly StoredBucket[],
  limitName: string | undefined,
  timeMs: number,
): ResourceBucket {
  const { entityId, resource, shardCount } = shards[0]!;
  const states = shards
    .flatMap((shard) => buildStates(shard, timeMs))
    .filter((state) => limitName === undefined || state.limitName === limitName);
  const names = [...new Set(states.map((state) => state.limitName))];
  const limits = names.map((name) => buildTotal(shards, name, timeMs));
  return { entityId, resource, shardCount, limits, shards: states };
}

/** What all shards of a bucket hold of one limit together. */
function buildTotal(
  shards: readonly StoredBucket[],
  limitName: string,
  timeMs: number,
): LimitTotal {
  let [availableMilli, capacityMilli, totalConsumedMilli] = [0, 0, 0];
  for (const { bucket } of shards) {
    const index = bucket.limits.findIndex(
      ({ limit, hidden }) => limit.name === limitName && !hidden,
    );
    if (index < 0) continue;
    availableMilli += balanceMilli(bucket, index, timeMs);
    capacityMilli += bucket.limits[index]!.capacityMilli;
    totalConsumedMilli += getConsumedMilli(bucket, index);
  }
  const available = Math.floor(availableMilli / MILLI);
  return { limitName, available, capacityMilli, totalConsumedMilli };
}

/** The capacity of one entity, unless its bucket has no such limit. */
function buildCapacities(
  shards: readonly StoredBucket[],
  limitName: string,
  timeMs: number,
): readonly EntityCapacity[] {
  const { entityId, limits } = buildResourceBucket(shards, limitName, timeMs);
  return limits.map(({ capacityMilli, available }) => {
    const capacity = capacityMilli / MILLI;
    return { entityId, capacity, available, utilizationPct: utilization(capacity, available) };
  });
}

function addCapacities(entities: readonly EntityCapacity[]): {
  readonly capacity: number;
  readonly available: number;
} {
  return {
    capacity: entities.reduce((sum, { capacity }) => sum + capacity, 0),
    available: entities.reduce((sum, { available }) => sum + available, 0),
  };
}

function utilization(capacity: number, available: number): number {
  return capacity === 0 ? 0 : ((capacity - available) / capacity) * 100;
}

function buildStates(
  { entityId, resource, shard, shardCount, bucket }: StoredBucket,
  timeMs: number,
): readonly BucketState[] {
  return bucket.limits.flatMap((limit, index) => {
    if (limit.hidden) return [];
    return {
      entityId,
      resource,
      limitName: limit.limit.name,
      shard,
      shardCount,
      kind: limit.limit.kind ?? "rate",
      tokensMilli: getStoredMilli(bucket, index),
      windowEndMs: findOpenEndMs(bucket, index, timeMs),
      lastRefillMs: bucket.refilledAtMs,
      capacityMilli: limit.capacityMilli,
      refillAmountMilli: limit.refillAmountMilli,
      refillPeriodMs: limit.refillPeriodMs,
      totalConsumedMilli: getConsumedMilli(bucket, index),
      available: Math.floor(balanceMilli(bucket, index, timeMs) / MILLI),
    };
  });
}
