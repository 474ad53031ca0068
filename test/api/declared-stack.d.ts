/* What `zae-limiter/dynamodb` has for stacks (ADR 043); declared.d.ts has the rest. */

declare module "declared/zae-limiter/dynamodb" {
  import type { UsageWindow } from "declared/zae-limiter";
  /** Every field of the original's StackOptions (reference §7.2) with its default, billing, concurrency and the TTL of buckets. */
  export interface StackOptions {
    readonly snapshotWindows?: readonly UsageWindow[];
    readonly usageRetentionDays?: number;
    readonly auditRetentionDays?: number;
    readonly bucketTtlMultiplier?: number;
    readonly billingMode?: "on-demand" | "provisioned";
    readonly readCapacity?: number;
    readonly maxReadCapacity?: number;
    readonly writeCapacity?: number;
    readonly maxWriteCapacity?: number;
    readonly indexReadCapacity?: number;
    readonly indexWriteCapacity?: number;
    readonly capacityUtilizationPct?: number;
    readonly enableAggregator?: boolean;
    readonly enableProvisioner?: boolean;
    readonly pitrRecoveryDays?: number;
    readonly logRetentionDays?: number;
    readonly lambdaTimeoutSeconds?: number;
    readonly lambdaMemoryMb?: number;
    readonly aggregatorReservedConcurrency?: number;
    readonly enableAlarms?: boolean;
    readonly alarmSnsTopic?: string;
    readonly lambdaDurationThresholdPct?: number;
    readonly permissionBoundary?: string;
    readonly roleNameFormat?: string;
    readonly policyNameFormat?: string;
    readonly enableAuditArchival?: boolean;
    readonly auditArchiveGlacierDays?: number;
    readonly enableTracing?: boolean;
    readonly createIamRoles?: boolean;
    readonly createIam?: boolean;
    readonly aggregatorRoleArn?: string;
    readonly enableDeletionProtection?: boolean;
    readonly tags?: Readonly<Record<string, string>>;
  }
  // ---- what @zae-limiter/infra builds its template from (ADR 043) ----------------------------------------------------------
  export interface IndexDeclaration {
    readonly IndexName: string;
    readonly KeySchema: readonly {
      readonly AttributeName: string;
      readonly KeyType: "HASH" | "RANGE";
    }[];
    readonly Projection: { readonly ProjectionType: "ALL" | "KEYS_ONLY" };
  }
  export interface TableDeclaration {
    readonly BillingMode: "PAY_PER_REQUEST";
    readonly KeySchema: IndexDeclaration["KeySchema"];
    readonly AttributeDefinitions: readonly {
      readonly AttributeName: string;
      readonly AttributeType: "S";
    }[];
    readonly GlobalSecondaryIndexes: readonly IndexDeclaration[];
    readonly StreamSpecification?: {
      readonly StreamEnabled: true;
      readonly StreamViewType: "NEW_AND_OLD_IMAGES";
    };
  }
  export function tableDeclaration(options: { readonly stream: boolean }): TableDeclaration;
  export const TTL_ATTRIBUTE: "ttl";
  export const SCHEMA_VERSION: string;
}
