import type { Page } from "zae-limiter";

/** The largest page that repositories answer. */
const LARGEST_PAGE = 1000;

/**
 * Which part of a list the command line wants: `limit` is the number of items shown in all, however
 * many pages that takes.
 */
export interface ListOptions {
  readonly limit: number;
  readonly cursor?: string;
}

/** Follows pages until enough items are there; the cursor is where a further call goes on. */
export async function follow<T>(
  { limit, cursor: from }: ListOptions,
  read: (paging: { readonly limit: number; readonly cursor?: string }) => Promise<Page<T>>,
): Promise<Page<T>> {
  const items: T[] = [];
  let cursor = from;
  do {
    const page = await read({
      limit: Math.min(LARGEST_PAGE, limit - items.length),
      ...(cursor !== undefined && { cursor }),
    });
    items.push(...page.items);
    cursor = page.cursor;
  } while (cursor !== undefined && items.length < limit);
  return { items, cursor };
}

/** What people are told when there is more. */
export function moreText({ items, cursor }: Page<unknown>): string {
  return cursor === undefined
    ? ""
    : `${items.length} shown, and there are more: add --cursor ${cursor}\n`;
}
