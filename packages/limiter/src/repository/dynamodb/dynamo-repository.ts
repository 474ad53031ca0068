import { NamespaceNotFoundError } from "../../core/errors.ts";
import { DEFAULT_NAMESPACE, NO_NAMESPACE } from "../../core/namespace.ts";
import type { NamespaceOptions, Repository } from "../repository.ts";
import { cacheTtlMs, buildConstructorError } from "../repository-options.ts";
import { StoreRepository, type Scope } from "../management/store-repository.ts";
import type { Connection } from "./table/connection.ts";
import { DynamoStore } from "./dynamo-store.ts";
import { openNamespace, reopenNamespace } from "./open-namespace.ts";
import { openConnection } from "./opening/open-connection.ts";
import { ttlMultiplier, type DynamoOptions, type ResolvedOptions } from "./opening/options.ts";
import type { StackOptions } from "./opening/stack-options.ts";
import { StackAccess } from "./opening/stack-tools.ts";
import { Builder, type BuilderOf } from "./repository-builder.ts";
import { createTable, deleteTable } from "./table/create-table.ts";
import { LARGEST_TICK_MS } from "./write/tick.ts";

/** Opens a repository step by step. */
export type RepositoryBuilder = BuilderOf<DynamoRepository>;

/** Where a repository's table is. */
interface Place {
  readonly store: DynamoStore;
  readonly connection: Connection;
  readonly region: string;
  readonly resolved: ResolvedOptions;
  readonly stack: StackAccess;
}

/**
 * Limits, balances and audit in one DynamoDB table, shared by a fleet.
 *
 * @example
 * const repository = await DynamoRepository.open("my-app", {
 *   endpointUrl: "http://127.0.0.1:8000",
 * });
 */
export class DynamoRepository extends StoreRepository {
  /** The name of the stack. */
  readonly stackName: string;
  /** The name of its table, which is the same. */
  readonly tableName: string;
  /** The region of the table; empty if a transport of your own does not expose it. */
  readonly region: string;
  /** The address, if it is not AWS's own. */
  readonly endpointUrl: string | undefined;
  readonly #place: Place;

  private constructor(scope: Scope, place: Place) {
    if (scope?.store === undefined)
      throw buildConstructorError("DynamoRepository", "await DynamoRepository.open(namespace)");
    super(scope);
    this.#place = place;
    this.stackName = place.resolved.stackName;
    this.tableName = place.connection.tableName;
    this.region = place.region;
    this.endpointUrl = place.resolved.endpointUrl;
  }

  /**
   * Opens a namespace of a stack or table, and registers it if it is missing. If there is no table,
   * `provisioning` decides what is created: by default the stack, which may take minutes.
   *
   * @example
   * const repository = await DynamoRepository.open("tenant-alpha");
   */
  static async open(namespace?: string, options: DynamoOptions = {}): Promise<DynamoRepository> {
    return DynamoRepository.#open(namespace, options, { stackOptions: {}, registers: () => true });
  }

  /**
   * Opens step by step, with options of the stack that it may create. Registers no namespace but
   * the default one, unless it creates the stack or table.
   * @example
   * const builder = DynamoRepository.builder().namespace("my-app").options({ stack: "limits" });
   * const repository = await builder.build();
   */
  static builder(): RepositoryBuilder {
    return new Builder((namespace, options, stackOptions) =>
      DynamoRepository.#open(namespace, options, {
        stackOptions,
        registers: (name) => name === DEFAULT_NAMESPACE,
      }),
    );
  }

  static async #open(
    namespace: string | undefined,
    options: DynamoOptions,
    how: { readonly stackOptions: StackOptions; readonly registers: (name: string) => boolean },
  ): Promise<DynamoRepository> {
    const configTtlMs = cacheTtlMs(options);
    const opened = await openConnection(namespace, options);
    const { connection, region, resolved } = opened;
    // A clock that the caller passed in is not rounded: when it is moved by hand, every
    // millisecond counts.
    const largestTickMs = options.clock === undefined ? LARGEST_TICK_MS : 1;
    const store = new DynamoStore({
      ...resolved,
      connection,
      cacheTtlMs: configTtlMs,
      largestTickMs,
    });
    const stack = new StackAccess(options, opened);
    try {
      const opening = { ...opened, ...how, store, stack };
      const namespaceId = await openNamespace(opening);
      if (namespaceId === undefined && options.create !== false)
        throw new NamespaceNotFoundError(resolved.namespace);
      const scope: Scope = {
        store,
        namespaceName: resolved.namespace,
        namespaceId: namespaceId ?? NO_NAMESPACE,
        options: { ...options, clock: connection.clock },
        reopening: {
          losses: connection.losses,
          find: (name) => reopenNamespace(opening, name),
        },
      };
      return new DynamoRepository(scope, { store, connection, region, resolved, stack });
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  override async namespace(name: string, options: NamespaceOptions = {}): Promise<Repository> {
    if (options.bucketTtlMultiplier !== undefined) {
      const multiplier = ttlMultiplier(options.bucketTtlMultiplier);
      const info = await this.getNamespace(name);
      if (info !== undefined) this.#place.store.useTtlMultiplier(info.namespaceId, multiplier);
    }
    return super.namespace(name, options);
  }

  /**
   * Creates the table unless it exists, and waits until it can be used.
   * @example await repository.createTable();
   */
  async createTable(): Promise<void> {
    await createTable(this.#place.connection, { stream: this.#place.resolved.stream });
  }

  /**
   * Reads until when an aggregator has counted the usage of this table; undefined if none ever did.
   * @example const countedUntil = await repository.getCountedUntil();
   */
  async getCountedUntil(): Promise<Date | undefined> {
    const heartbeat = await this.#place.store.heartbeat.read();
    return heartbeat && new Date(heartbeat.countedUntilMs);
  }

  /**
   * Deletes the table with everything that is in it, in all namespaces.
   * @example await repository.deleteTable(); // at the end of a test
   */
  async deleteTable(): Promise<void> {
    await deleteTable(this.#place.connection);
  }

  /**
   * Deletes the stack with its table, and everything that is in it, in all namespaces. Does nothing
   * if there is no stack: a table that was created alone is deleted by `deleteTable`.
   * @example await repository.deleteStack();
   */
  async deleteStack(): Promise<void> {
    const { stack, connection } = this.#place;
    // Waits until the table is gone.
    if (await stack.delete()) await deleteTable(connection);
  }
}
