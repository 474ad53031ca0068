import type { Page } from "zae-limiter";

/** The largest page that repositories return. */
const MAX_PAGE_SIZE = 1000;

/**
 * Which part of a list to show. `limit` is the total number of items, however many pages that
 * takes.
 */
export interface ListOptions {
  readonly limit: number;
  readonly cursor?: string;
}

/**
 * Reads pages until there are enough items. The cursor is that of the last page; other fields are
 * those of the first.
 */
export async function collectPages<T, P extends Page<T>>(
  { limit, cursor: from }: ListOptions,
  read: (paging: { readonly limit: number; readonly cursor?: string }) => Promise<P & Page<T>>,
): Promise<P> {
  const items: T[] = [];
  let cursor = from;
  let first: P | undefined;
  do {
    const page = await read({
      limit: Math.min(MAX_PAGE_SIZE, limit - items.length),
      ...(cursor !== undefined && { cursor }),
    });
    first ??= page;
    items.push(...page.items);
    cursor = page.cursor;
  } while (cursor !== undefined && items.length < limit);
  return { ...first, items, cursor };
}

/** The note that there are more items; empty when there are none. */
export function moreText({ items, cursor }: Page<unknown>): string {
  return cursor === undefined
    ? ""
    : `${items.length} shown, and there are more. To continue, add --cursor ${cursor}\n`;
}
