import { checkOptions, optionNames } from "../../core/options.ts";
import type {
  By,
  CreateEntityOptions,
  DeleteEntityOptions,
  DeleteSystemDefaultsOptions,
  LevelName,
  Paging,
  Repository,
  SystemDefaultsOptions,
  UsageQuery,
} from "../repository.ts";

/** The methods of a repository that have options. */
type Method = {
  [Name in keyof Repository]-?: NonNullable<Repository[Name]> extends (
    ...values: never[]
  ) => unknown
    ? Name
    : never;
}[keyof Repository];

/** The options of a method: its last parameter. */
type OptionsOf<Name extends Method> =
  Required<Parameters<NonNullable<Repository[Name]>>> extends [...unknown[], infer Options]
    ? Options
    : never;

const BY: Readonly<Record<keyof By, true>> = { principal: true, ifRevision: true };
const PAGING: Readonly<Record<keyof Paging, true>> = { limit: true, cursor: true };
const USAGE: Readonly<Record<keyof UsageQuery, true>> = {
  entityId: true,
  resource: true,
  window: true,
  start: true,
  end: true,
};

const DESCRIPTION: Readonly<Record<keyof CreateEntityOptions, true>> = {
  ...BY,
  name: true,
  parentId: true,
  cascade: true,
  metadata: true,
};

/** What each method of a repository calls its options. The compiler sees that none is missing. */
const NAMES = {
  createEntity: optionNames<CreateEntityOptions>(DESCRIPTION),
  ensureEntity: optionNames<CreateEntityOptions>(DESCRIPTION),
  // A parent cannot be changed yet, which `updateEntity` says itself.
  updateEntity: optionNames<CreateEntityOptions>(DESCRIPTION),
  listEntities: optionNames<Paging>(PAGING),
  deleteEntity: optionNames<DeleteEntityOptions>({ principal: true }),
  setLimits: optionNames<OptionsOf<"setLimits">>({ ...BY, resource: true, inherit: true }),
  getLimits: optionNames<OptionsOf<"getLimits">>({ resource: true }),
  getLevel: optionNames<LevelName>({ entityId: true, resource: true }),
  deleteLimits: optionNames<OptionsOf<"deleteLimits">>({ ...BY, resource: true }),
  setResourceDefaults: optionNames<OptionsOf<"setResourceDefaults">>({ ...BY, inherit: true }),
  deleteResourceDefaults: optionNames<By>(BY),
  setSystemDefaults: optionNames<SystemDefaultsOptions>({
    ...BY,
    onUnavailable: true,
    auditRetentionDays: true,
    usageRetentionDays: true,
  }),
  deleteSystemDefaults: optionNames<DeleteSystemDefaultsOptions>({ ...BY, keepSettings: true }),
  listEntitiesWithCustomLimits: optionNames<Paging>(PAGING),
  getBuckets: optionNames<OptionsOf<"getBuckets">>({ resource: true }),
  getResourceCapacity: optionNames<OptionsOf<"getResourceCapacity">>({ parentsOnly: true }),
  getUsageSnapshots: optionNames<UsageQuery & Paging>({ ...USAGE, ...PAGING }),
  getUsageSummary: optionNames<UsageQuery>(USAGE),
  getAuditEvents: optionNames<Paging>(PAGING),
  namespace: optionNames<OptionsOf<"namespace">>({
    onUnavailable: true,
    auditRetentionDays: true,
    usageRetentionDays: true,
    bucketTtlMultiplier: true,
  }),
  purgeNamespace: optionNames<OptionsOf<"purgeNamespace">>({ onProgress: true, signal: true }),
  splitBucket: optionNames<OptionsOf<"splitBucket">>({ shards: true }),
  mergeBucket: optionNames<OptionsOf<"mergeBucket">>({ shards: true }),
  setVersionRecord: optionNames<OptionsOf<"setVersionRecord">>({
    schemaVersion: true,
    lambdaVersion: true,
    clientMinVersion: true,
    updatedBy: true,
  }),
} satisfies Partial<Record<Method, ReadonlySet<string>>>;

/** Throws for an option that a method does not have. */
export function checkOptionsOf(method: keyof typeof NAMES, options: unknown): void {
  checkOptions(options, NAMES[method], method);
}
