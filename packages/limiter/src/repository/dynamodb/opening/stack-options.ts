import type { UsageWindow } from "../../../core/usage.ts";

/** Options of the stack that a repository may create. */
export interface StackOptions {
  /** The windows that usage is summed over. */
  readonly snapshotWindows?: readonly UsageWindow[];
  /** How many days usage is kept. @default 90 */
  readonly usageRetentionDays?: number;
  /** How many days audit events are kept. @default 90 */
  readonly auditRetentionDays?: number;
  /** Whether a Lambda sums up usage from the table's stream. */
  readonly enableAggregator?: boolean;
  /** Whether a Lambda applies limits that are declared in templates. */
  readonly enableProvisioner?: boolean;
  /** How many days back the table can be restored, from 1 to 35. */
  readonly pitrRecoveryDays?: number;
  /** How many days the logs of the Lambdas are kept. */
  readonly logRetentionDays?: number;
  /** The most seconds that a Lambda may run. */
  readonly lambdaTimeoutSeconds?: number;
  /** The memory of a Lambda, in megabytes. */
  readonly lambdaMemoryMb?: number;
  /** Whether CloudWatch alarms are created. */
  readonly enableAlarms?: boolean;
  /** The ARN of the topic that alarms are sent to. */
  readonly alarmSnsTopic?: string;
  /** The part of its time-out at which a Lambda's alarm goes off. @default 80 */
  readonly lambdaDurationThresholdPct?: number;
  /** The policy that bounds the roles that are created. */
  readonly permissionBoundary?: string;
  /** The names of roles, with one `{}` for the part that differs. */
  readonly roleNameFormat?: string;
  /** The names of policies, with one `{}` for the part that differs. */
  readonly policyNameFormat?: string;
  /** Whether audit events are archived to S3 when their retention ends. */
  readonly enableAuditArchival?: boolean;
  /** After how many days archived events move to Glacier. */
  readonly auditArchiveGlacierDays?: number;
  /** Whether the Lambdas are traced with X-Ray. */
  readonly enableTracing?: boolean;
  /** Whether roles for applications are created. @default false */
  readonly createIamRoles?: boolean;
  /** Whether anything of IAM is created. @default true */
  readonly createIam?: boolean;
  /** The ARN of an existing role for the Lambda, if none may be created. */
  readonly aggregatorRoleArn?: string;
  /** Whether the table is protected against deletion. */
  readonly enableDeletionProtection?: boolean;
  /** Tags of everything in the stack: at most 45, none beginning with `aws:`. */
  readonly tags?: Readonly<Record<string, string>>;
}
