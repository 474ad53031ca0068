import { InfrastructureError } from "../../core/errors.ts";
import type { OnUnavailable } from "../../core/bucket/policy.ts";
import type { UsageWindow } from "../../core/usage.ts";
import type { Repository } from "../repository.ts";
import type { DynamoOptions } from "./options.ts";

/** Options of the stack that a repository may create. */
export interface StackOptions {
  readonly snapshotWindows?: readonly UsageWindow[];
  readonly usageRetentionDays?: number;
  readonly auditRetentionDays?: number;
  readonly enableAggregator?: boolean;
  readonly enableProvisioner?: boolean;
  readonly pitrRecoveryDays?: number;
  readonly logRetentionDays?: number;
  readonly lambdaTimeoutSeconds?: number;
  readonly lambdaMemoryMb?: number;
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

/** Opens a repository step by step. */
export interface BuilderOf<Built> {
  namespace(name: string): this;
  options(options: DynamoOptions): this;
  stackOptions(options: StackOptions): this;
  /** Stored through `setSystemDefaults`. */
  onUnavailable(action: OnUnavailable): this;
  /** Throws `NamespaceNotFoundError` for a namespace that was not registered. */
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
