import type { AttributeMap } from "../transport/attribute-values.ts";
import { batchWrite, getKey, queryPage } from "./batch.ts";
import type { Connection } from "./connection.ts";
import type { KeyQuery } from "./key-query.ts";

/** Keys that are looked up at once; their items are deleted in batches of 25. */
const PAGE = 500;

/**
 * Deletes every item that a query finds, and returns how many they were. One that was interrupted
 * can be repeated: it continues with what is left.
 */
export async function deleteMatching(
  connection: Connection,
  query: KeyQuery,
  {
    onProgress,
    signal,
  }: {
    readonly onProgress?: ((deletedItems: number) => void) | undefined;
    readonly signal?: AbortSignal | undefined;
  },
): Promise<number> {
  let deletedItems = 0;
  let after: AttributeMap | undefined;
  do {
    signal?.throwIfAborted();
    const page = await queryPage(connection, { ...query, limit: PAGE, after }, { signal });
    const writes = page.items.map((item) => ({ delete: getKey(item) }));
    await batchWrite(connection, writes, { signal });
    deletedItems += writes.length;
    if (writes.length > 0) onProgress?.(deletedItems);
    after = page.next;
  } while (after !== undefined);
  return deletedItems;
}
