import { InfrastructureError } from "../../core/errors.ts";
import type { OnUnavailable } from "../../core/bucket/policy.ts";
import type { UsageWindow } from "../../core/usage.ts";
import type { Repository } from "../repository.ts";
import type { DynamoOptions } from "./opening/options.ts";

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

/** Opens a repository step by step. */
export interface BuilderOf<Built> {
  /**
   * The namespace to open. @default "default"
   * @example builder.namespace("my-app");
   */
  namespace(name: string): this;
  /**
   * Adds options; a later call wins where both name the same one.
   * @example builder.options({ region: "eu-west-1", stack: "limits" });
   */
  options(options: DynamoOptions): this;
  /**
   * Options of the stack. Not supported yet: anything but `{}` throws.
   * @example builder.stackOptions({});
   */
  stackOptions(options: StackOptions): this;
  /**
   * Stored through `setSystemDefaults`. Applies when a call does not say what to do.
   * @example builder.onUnavailable("allow");
   */
  onUnavailable(action: OnUnavailable): this;
  /**
   * Throws `NamespaceNotFoundError` for a namespace that was not registered.
   * @example const repository = await builder.build();
   */
  build(): Promise<Built>;
}

type Open<Built> = (namespace: string | undefined, options: DynamoOptions) => Promise<Built>;

/** Collects the settings of `DynamoRepository.builder()`, and opens the repository. */
export class Builder<Built extends Repository> implements BuilderOf<Built> {
  readonly #open: Open<Built>;
  #namespace: string | undefined;
  #options: DynamoOptions = {};
  #onUnavailable: OnUnavailable | undefined;

  constructor(open: Open<Built>) {
    this.#open = open;
  }

  namespace(name: string): this {
    this.#namespace = name;
    return this;
  }

  options(options: DynamoOptions): this {
    this.#options = { ...this.#options, ...options };
    return this;
  }

  stackOptions(options: StackOptions): this {
    if (Object.keys(options).length > 0) throw noStacksYet();
    return this;
  }

  onUnavailable(action: OnUnavailable): this {
    this.#onUnavailable = action;
    return this;
  }

  async build(): Promise<Built> {
    const repository = await this.#open(this.#namespace, this.#options);
    if (this.#onUnavailable === undefined) return repository;
    try {
      await repository.namespace(repository.namespaceName, { onUnavailable: this.#onUnavailable });
      return repository;
    } catch (error) {
      await repository.close();
      throw error;
    }
  }
}

/** The error of operations that create or delete a stack, until they are supported. */
export function noStacksYet(): InfrastructureError {
  return new InfrastructureError(
    "ERR_LIMITER_STACK_UNSUPPORTED",
    "CloudFormation stacks can be neither created nor deleted yet. Create only the table, with " +
      'provisioning "table", and delete it with deleteTable().',
  );
}
