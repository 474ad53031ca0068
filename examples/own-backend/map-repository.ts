import type { RepositoryOptions } from "zae-limiter";
import {
  DEFAULT_NAMESPACE,
  newNamespaceId,
  StoreRepository,
  systemClock,
  systemRandom,
  wholeMs,
} from "zae-limiter/backend";
import { MapStore } from "./map-store.ts";

/** A repository on Maps: the smallest backend that passes the contract. */
export class MapRepository extends StoreRepository {
  constructor(options: RepositoryOptions = {}) {
    const { clock = systemClock, random = systemRandom } = options;
    const namespaceName = options.namespace ?? DEFAULT_NAMESPACE;
    const store = new MapStore(() => wholeMs(clock));
    const { namespaceId } = store.namespaces.register(
      namespaceName,
      () => newNamespaceId(random),
      wholeMs(clock),
    );
    super({ store, namespaceName, namespaceId, options });
  }
}
