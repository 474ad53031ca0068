/*
 * A repository with another bound on its shared requests than the one that the library has chosen.
 * There is no option for it, so this is put together from the library's inside, as it does itself.
 */
import { StoreRepository } from "#limiter/repository/management/store-repository";
import { DynamoStore } from "#limiter/repository/dynamodb/dynamo-store";
import { openConnection } from "#limiter/repository/dynamodb/opening/open-connection";
import { LARGEST_TICK_MS } from "#limiter/repository/dynamodb/write/tick";
import { DynamoRepository, type DynamoOptions } from "zae-limiter/dynamodb";

/** The namespace of everything here. */
export const NAMESPACE = "bench";

/** Options of a repository here, all of which believe their configuration for a given time. */
export type BoundedOptions = DynamoOptions & { readonly configCacheTtlMs: number };

/** Opens a repository that keeps at most this many requests under way while writes wait. */
export async function openBoundedRepository(
  options: BoundedOptions,
  maxRequests: number,
): Promise<StoreRepository> {
  const created = await DynamoRepository.open(NAMESPACE, options);
  const { namespaceId } = created;
  await created.close();
  const { connection, resolved } = await openConnection(NAMESPACE, options);
  const store = new DynamoStore({
    ...resolved,
    connection,
    cacheTtlMs: options.configCacheTtlMs,
    largestTickMs: LARGEST_TICK_MS,
    maxRequests,
  });
  return new StoreRepository({
    store,
    namespaceName: NAMESPACE,
    namespaceId,
    options: { ...options, clock: connection.clock },
  });
}
