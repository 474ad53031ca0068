import type { UsageWindow } from "../../../core/usage.ts";

/**
 * Options of a stack. What is left out has its default in a new stack, and keeps its value in one
 * that exists. A text that is empty takes a setting back.
 */
export interface StackOptions {
  /** The windows that usage is summed over. @default all three */
  readonly snapshotWindows?: readonly UsageWindow[];
  /** How many days usage is kept. @default 90 */
  readonly usageRetentionDays?: number;
  /** How many days audit events are kept. @default 90 */
  readonly auditRetentionDays?: number;
  /**
   * How long the aggregator keeps an idle bucket whose shards it merged, as a multiple of the time
   * in which it fills; 0 keeps it forever. Open repositories with the same number. @default 7
   */
  readonly bucketTtlMultiplier?: number;
  /** Whether the table is paid by request, or by capacity that is scaled. @default "on-demand" */
  readonly billingMode?: "on-demand" | "provisioned";
  /** Provisioned: the least read units of the table. @default 5 */
  readonly readCapacity?: number;
  /** Provisioned: the most read units of the table, and of each index. @default 100 */
  readonly maxReadCapacity?: number;
  /** Provisioned: the least write units of the table. @default 5 */
  readonly writeCapacity?: number;
  /** Provisioned: the most write units of the table, and of each index. @default 100 */
  readonly maxWriteCapacity?: number;
  /** Provisioned: the least read units of each index. @default 1 */
  readonly indexReadCapacity?: number;
  /** Provisioned: the least write units of each index. @default 5 */
  readonly indexWriteCapacity?: number;
  /** Provisioned: the percentage of its capacity that is to be used, from 20 to 90. @default 70 */
  readonly capacityUtilizationPct?: number;
  /** How many days back the table can be restored, from 1 to 35. @default AWS's */
  readonly pitrRecoveryDays?: number;
  /** Whether the table is protected against deletion. @default false */
  readonly enableDeletionProtection?: boolean;
  /** Whether a Lambda sums up usage from the table's stream. @default true */
  readonly enableAggregator?: boolean;
  /**
   * Whether a Lambda applies limits that templates declare. Needs `createIam`, and a name of the
   * stack with at most 45 characters. @default true
   */
  readonly enableProvisioner?: boolean;
  /** The most seconds that the aggregator may run, from 1 to 900. @default 60 */
  readonly lambdaTimeoutSeconds?: number;
  /** The memory of the aggregator, in megabytes, from 128 to 3008. @default 256 */
  readonly lambdaMemoryMb?: number;
  /** How many invocations are reserved for the aggregator, and the most it gets. @default none */
  readonly aggregatorReservedConcurrency?: number;
  /** How many days the Lambdas' logs are kept: a number that CloudWatch accepts. @default 30 */
  readonly logRetentionDays?: number;
  /** Whether the aggregator is traced with X-Ray. @default false */
  readonly enableTracing?: boolean;
  /** Whether audit events are archived to S3 when their retention ends. @default true */
  readonly enableAuditArchival?: boolean;
  /** After how many days archived events move to Glacier, from 1 to 3650. @default 90 */
  readonly auditArchiveGlacierDays?: number;
  /** Whether CloudWatch alarms are created. @default true */
  readonly enableAlarms?: boolean;
  /** The ARN of the topic that alarms are sent to. @default none */
  readonly alarmSnsTopic?: string;
  /** The percentage of its time-out at which the aggregator's alarm goes off. @default 80 */
  readonly lambdaDurationThresholdPct?: number;
  /** Whether IAM resources are created. @default true */
  readonly createIam?: boolean;
  /** Whether roles for applications are created. @default false */
  readonly createIamRoles?: boolean;
  /** The ARN of an existing role for the aggregator, if none may be created. @default none */
  readonly aggregatorRoleArn?: string;
  /** The name or ARN of the policy that bounds the roles that are created. @default none */
  readonly permissionBoundary?: string;
  /** The names of roles, with one `{}` for the name that they have by default, `{stack}-app`. */
  readonly roleNameFormat?: string;
  /** The names of policies, with one `{}` for the name that they have by default, `{stack}-acq`. */
  readonly policyNameFormat?: string;
  /** Tags of everything in the stack: at most 44, none beginning with `aws:`. */
  readonly tags?: Readonly<Record<string, string>>;
}
