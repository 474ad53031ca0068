import type { PolicyKind } from "../../../src/policies/policy-document.ts";
import type { DynamoRepository } from "zae-limiter/dynamodb";

/** The callers of a method: their policies must be enough for it. */
export type Role = "acquire" | "read" | "full";

/** The needs of a method: roles, and whether a tenant calls it too. */
export interface Needs {
  readonly roles: readonly Role[];
  readonly tenants: boolean;
}

type Method = {
  [K in keyof DynamoRepository]-?: NonNullable<DynamoRepository[K]> extends (
    ...values: never[]
  ) => unknown
    ? K
    : never;
}[keyof DynamoRepository];

const EVERY_ROLE: Needs = { roles: ["acquire", "read", "full"], tenants: true };
const ACQUIRES: Needs = { roles: ["acquire", "full"], tenants: true };
const READS: Needs = { roles: ["read", "full"], tenants: true };
const MANAGES: Needs = { roles: ["full"], tenants: true };
/** Other tenants would see it, or be seen. */
const READS_ALL: Needs = { roles: ["read", "full"], tenants: false };
const MANAGES_ALL: Needs = { roles: ["full"], tenants: false };
/** What creates and deletes tables is not part of any of these policies. */
const DEPLOYS: Needs = { roles: [], tenants: false };

/**
 * Every method of a repository, and `open`. What a limiter does arrives as `consume`, `charge`,
 * `settle`, `giveBack`, `read` and `remembered`.
 */
export const METHOD_NEEDS: Readonly<Record<Method | "open", Needs>> = {
  open: EVERY_ROLE,
  consume: ACQUIRES,
  charge: ACQUIRES,
  settle: ACQUIRES,
  giveBack: ACQUIRES,
  splitBucket: ACQUIRES,
  mergeBucket: ACQUIRES,
  read: EVERY_ROLE,
  remembered: EVERY_ROLE,
  knowsLimit: EVERY_ROLE,
  ping: EVERY_ROLE,
  close: EVERY_ROLE,
  [Symbol.asyncDispose]: EVERY_ROLE,
  invalidateConfigCache: EVERY_ROLE,
  getCacheStats: EVERY_ROLE,
  getStatistics: EVERY_ROLE,
  namespace: EVERY_ROLE,
  getNamespace: EVERY_ROLE,
  getVersionRecord: EVERY_ROLE,
  getCountedUntil: EVERY_ROLE,
  resolveLimits: EVERY_ROLE,
  getLimits: EVERY_ROLE,
  getLevel: EVERY_ROLE,
  batchGetLevels: EVERY_ROLE,
  getBucket: EVERY_ROLE,
  getResourceDefaults: EVERY_ROLE,
  getSystemDefaults: EVERY_ROLE,
  getEntity: EVERY_ROLE,
  getChildren: READS,
  listEntities: READS,
  listResourcesWithDefaults: READS,
  listEntitiesWithCustomLimits: READS,
  listResourcesWithEntityConfigs: READS,
  getBuckets: READS,
  batchGetBuckets: READS,
  getResourceBuckets: READS,
  getResourceCapacity: READS,
  getUsageSnapshots: READS,
  getUsageSummary: READS,
  getAuditEvents: READS,
  getProvisionerState: READS,
  createEntity: MANAGES,
  ensureEntity: MANAGES,
  updateEntity: MANAGES,
  deleteEntity: MANAGES,
  setLimits: MANAGES,
  deleteLimits: MANAGES,
  setResourceDefaults: MANAGES,
  deleteResourceDefaults: MANAGES,
  setSystemDefaults: MANAGES,
  deleteSystemDefaults: MANAGES,
  putProvisionerState: MANAGES,
  listNamespaces: READS_ALL,
  listOrphanNamespaces: READS_ALL,
  registerNamespace: MANAGES_ALL,
  registerNamespaces: MANAGES_ALL,
  deleteNamespace: MANAGES_ALL,
  recoverNamespace: MANAGES_ALL,
  purgeNamespace: MANAGES_ALL,
  setVersionRecord: MANAGES_ALL,
  createTable: DEPLOYS,
  deleteTable: DEPLOYS,
  deleteStack: DEPLOYS,
};

/** The policy of a role, of all namespaces and of one. */
export const POLICIES_OF: Readonly<Record<Role, { all: PolicyKind; tenant: PolicyKind }>> = {
  acquire: { all: "acquire-only", tenant: "namespace-acquire" },
  read: { all: "read-only", tenant: "namespace-read-only" },
  full: { all: "full-access", tenant: "namespace-full-access" },
};
