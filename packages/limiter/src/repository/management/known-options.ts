import { checkOptions, optionNames } from "../../core/options.ts";
import type {
  BucketOptions,
  BucketsOptions,
  By,
  CapacityOptions,
  CreateEntityOptions,
  DeleteEntityOptions,
  DeleteSystemDefaultsOptions,
  LimitsOptions,
  NamespaceOptions,
  Paging,
  PurgeOptions,
  ResourceBucketsOptions,
  SetDefaultsOptions,
  SetLimitsOptions,
  SystemDefaultsOptions,
  UsageQuery,
} from "../repository.ts";

const BY = { principal: true, ifRevision: true } as const;
const PAGING = { limit: true, cursor: true } as const;
const PURGE = { onProgress: true, signal: true } as const;
const RETENTION = { auditRetentionDays: true, usageRetentionDays: true } as const;
const ENTITY = { name: true, metadata: true, cascade: true } as const;
const USAGE = { entityId: true, resource: true, window: true, start: true, end: true } as const;

/** The options of each method that has some, but for `updateEntity`, which says more about them. */
const KNOWN = {
  createEntity: optionNames<CreateEntityOptions>({ ...ENTITY, ...BY, parentId: true }),
  ensureEntity: optionNames<CreateEntityOptions>({ ...ENTITY, ...BY, parentId: true }),
  deleteEntity: optionNames<DeleteEntityOptions>({ ...PURGE, principal: true, history: true }),
  listEntities: optionNames<Paging>(PAGING),
  setLimits: optionNames<SetLimitsOptions>({ ...BY, resource: true, inherit: true }),
  getLimits: optionNames<LimitsOptions>({ resource: true }),
  deleteLimits: optionNames<LimitsOptions & By>({ ...BY, resource: true }),
  setResourceDefaults: optionNames<SetDefaultsOptions>({ ...BY, inherit: true }),
  deleteResourceDefaults: optionNames<By>(BY),
  setSystemDefaults: optionNames<SystemDefaultsOptions>({
    ...BY,
    ...RETENTION,
    inherit: true,
    onUnavailable: true,
  }),
  deleteSystemDefaults: optionNames<DeleteSystemDefaultsOptions>({ ...BY, keepSettings: true }),
  listEntitiesWithCustomLimits: optionNames<Paging>(PAGING),
  getBuckets: optionNames<BucketsOptions>({ resource: true }),
  getBucket: optionNames<BucketOptions>({ shard: true }),
  batchGetBuckets: optionNames<BucketsOptions>({ resource: true }),
  getResourceBuckets: optionNames<ResourceBucketsOptions>({ ...PAGING, limitName: true }),
  getResourceCapacity: optionNames<CapacityOptions>({ parentsOnly: true }),
  getUsageSnapshots: optionNames<UsageQuery & Paging>({ ...USAGE, ...PAGING }),
  getUsageSummary: optionNames<UsageQuery>(USAGE),
  getAuditEvents: optionNames<Paging>(PAGING),
  namespace: optionNames<NamespaceOptions>({
    ...RETENTION,
    onUnavailable: true,
    bucketTtlMultiplier: true,
  }),
  purgeNamespace: optionNames<PurgeOptions>(PURGE),
};

/** Refuses an unknown option of a method: a typing mistake would silently have no effect. */
export function checkKnown(method: keyof typeof KNOWN, options: object): void {
  checkOptions(options, KNOWN[method], method);
}
