import type { OnUnavailable } from "../../core/bucket/policy.ts";
import type { Repository } from "../repository.ts";
import type { DynamoOptions } from "./opening/options.ts";
import type { StackOptions } from "./opening/stack-options.ts";
import { checkStackOptions } from "./opening/stack-tools.ts";

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
   * Adds options of the stack; a later call wins where both name the same one. They count when
   * `build` creates the stack: a stack or table that exists is opened as it is, and changed with
   * `zae-limiter deploy`. They are not used with provisioning "table" and "never".
   * @example builder.stackOptions({ lambdaMemoryMb: 512, enableAlarms: false });
   */
  stackOptions(options: StackOptions): this;
  /**
   * Stored through `setSystemDefaults`. Applies when a call does not say what to do.
   * @example builder.onUnavailable("allow");
   */
  onUnavailable(action: OnUnavailable): this;
  /**
   * Throws `NamespaceNotFoundError` for a namespace that was not registered. In a stack or table
   * that it creates, it is.
   * @example const repository = await builder.build();
   */
  build(): Promise<Built>;
}

type Open<Built> = (
  namespace: string | undefined,
  options: DynamoOptions,
  stackOptions: StackOptions,
) => Promise<Built>;

/** Collects the settings of `DynamoRepository.builder()`, and opens the repository. */
export class Builder<Built extends Repository> implements BuilderOf<Built> {
  readonly #open: Open<Built>;
  #namespace: string | undefined;
  #options: DynamoOptions = {};
  #stackOptions: StackOptions = {};
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
    checkStackOptions(options);
    this.#stackOptions = { ...this.#stackOptions, ...options };
    return this;
  }

  onUnavailable(action: OnUnavailable): this {
    this.#onUnavailable = action;
    return this;
  }

  async build(): Promise<Built> {
    const repository = await this.#open(this.#namespace, this.#options, this.#stackOptions);
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
