export type { AuditEvent } from "../core/audit.ts";
export { apply, listWindowEnds } from "../core/bucket/bucket.ts";
export type { Bucket, BucketLimit } from "../core/bucket/bucket.ts";
export {
  afterRefusal,
  buildClaims,
  costsMilli,
  divideAmounts,
  fits,
  selectKnownAmounts,
  negate,
  computeStatuses,
  takesAnything,
  withPolicyLimits,
} from "../core/bucket/decision.ts";
export type { BucketClaim, OwnedClaim, WantedBucket } from "../core/bucket/decision.ts";
export { withDefaults } from "../core/bucket/policy.ts";
export { computeLeaves } from "../core/bucket/leave.ts";
export type { Leave } from "../core/bucket/leave.ts";
export type { WindowEnds } from "../core/bucket/windows.ts";
export type { ConfigKey, Policy } from "../core/bucket/policy.ts";
export { allocateSettlement, computeTakenStatuses } from "../core/bucket/settlement.ts";
export type { TakenPart } from "../core/bucket/settlement.ts";
export type { EntityChange } from "../core/entity.ts";
export { DEFAULT_NAMESPACE, newNamespaceId } from "../core/namespace.ts";
export type { UsageRow } from "../core/usage.ts";
export { StoreRepository } from "../repository/management/store-repository.ts";
export type { Scope } from "../repository/management/store-repository.ts";
export type {
  ConsumeOutcome,
  ConsumeRequest,
  MaybePromise,
  Receipt,
  ResourceAmounts,
} from "../repository/port.ts";
export { mergeConfig, NO_CONFIG, withoutLimits } from "../repository/store.ts";
export type {
  AuditStore,
  BucketStore,
  DeleteOptions,
  EntityStore,
  Guard,
  Keyed,
  KeyPage,
  LimitStore,
  NamespaceData,
  NamespaceNote,
  NamespaceStore,
  PolicySource,
  ProvisionerStore,
  Store,
  StoredBucket,
  StoredConfig,
  SystemSettings,
  UsageRange,
  UsageStore,
  VersionStore,
} from "../repository/store.ts";
export type { PurgeOptions } from "../repository/repository.ts";
export { systemClock, systemRandom, wholeMs } from "../repository/system-clock.ts";
