import { namespaceName } from "../../core/identifiers.ts";
import { DEFAULT_NAMESPACE, newNamespaceId } from "../../core/namespace.ts";
import { StoreRepository } from "../management/store-repository.ts";
import type { RepositoryOptions } from "../repository.ts";
import { checkOptions } from "../../core/options.ts";
import { recordsUsage, REPOSITORY_NAMES } from "../repository-options.ts";
import { systemClock, systemRandom, wholeMs } from "../system-clock.ts";
import { MemoryStore } from "./memory-store.ts";

/**
 * Limits, balances, usage and audit events in the memory of this process. They are lost when it
 * ends.
 *
 * @example
 * const limiter = new RateLimiter({ repository: new MemoryRepository() });
 */
export class MemoryRepository extends StoreRepository {
  constructor(options: RepositoryOptions = {}) {
    checkOptions(options, REPOSITORY_NAMES, "MemoryRepository");
    const clock = options.clock ?? systemClock;
    const random = options.random ?? systemRandom;
    const name = namespaceName(options.namespace ?? DEFAULT_NAMESPACE);
    const store = new MemoryStore({
      nowMs: () => wholeMs(clock),
      recordUsage: recordsUsage(options),
    });
    const { namespaceId } = store.namespaces.register(
      name,
      () => newNamespaceId(random),
      wholeMs(clock),
    );
    super({ store, namespaceName: name, namespaceId, options });
  }
}
