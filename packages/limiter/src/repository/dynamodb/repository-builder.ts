import { InfrastructureError } from "../../core/errors.ts";
import type { OnUnavailable } from "../../core/bucket/policy.ts";
import type { Repository } from "../repository.ts";
import type { DynamoOptions } from "./opening/options.ts";
import type { StackOptions } from "./opening/stack-options.ts";

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
