export { Limit } from "./core/limit.ts";
export type { Amounts } from "./core/amounts.ts";
export type { AuditAction, AuditEvent } from "./core/audit.ts";
export type {
  DeclaredEntity,
  DeclaredLevel,
  DeclaredLimits,
  DeclaredSystem,
} from "./repository/declared-limits.ts";
export type { LimitStatus } from "./core/bucket/decision.ts";
export type {
  Calendar,
  Carry,
  InFlightLimit,
  LimitKind,
  LimitOptions,
  Profile,
  QuotaLimit,
  RateLimit,
  SessionLimit,
  Weekday,
} from "./core/limit-kinds.ts";
export type { Entity } from "./core/entity.ts";
export {
  ApplyConflictError,
  EntityError,
  EntityExistsError,
  EntityNotFoundError,
  IncompatibleSchemaError,
  InfrastructureError,
  InfrastructureNotFoundError,
  InvalidIdentifierError,
  InvalidNameError,
  LeaseExpiredError,
  NamespaceNotFoundError,
  NamespaceStateError,
  PermissionDenied,
  RateLimitError,
  RateLimiterUnavailable,
  StackAlreadyExistsError,
  StackOperationError,
  ValidationError,
  VersionError,
  VersionMismatchError,
  ZaeLimiterError,
} from "./core/errors.ts";
export type { NamespaceInfo, NamespaceStatus } from "./core/namespace.ts";
export type {
  ConfigSource,
  OnUnavailable,
  ResolvedLimits,
  StoredLevel,
} from "./core/bucket/policy.ts";
export { RateLimitExceeded, type RateLimitExceededJson } from "./core/bucket/refusal.ts";
export type { UsageSnapshot, UsageSummary, UsageWindow } from "./core/usage.ts";
export type { Availability } from "./limiter/availability.ts";
export type { AcquireRequest, ChargeRequest } from "./limiter/call.ts";
export { Lease } from "./limiter/lease.ts";
export {
  RateLimiter,
  type AcquireResult,
  type RateLimiterOptions,
} from "./limiter/rate-limiter.ts";
export type { LeaseOfResource } from "./limiter/resource-lease.ts";
export type { RepositoryPort } from "./repository/port.ts";
export type {
  BackendCapabilities,
  BucketState,
  CacheStats,
  DeletedEntity,
  EntityCapacity,
  LevelName,
  LimitTotal,
  Page,
  PendingApply,
  ProvisionerState,
  Repository,
  RepositoryOptions,
  RepositoryStatistics,
  ResourceBucket,
  ResourceCapacity,
  SystemDefaults,
  UsagePage,
  UsageQuery,
  VersionRecord,
} from "./repository/repository.ts";
export type { Clock, Random, SleepOptions } from "./repository/system-clock.ts";
export { VERSION } from "./core/version.ts";
