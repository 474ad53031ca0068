import { ValidationError } from "../../core/errors.ts";
import type { Page, Paging } from "../repository.ts";
import type { Keyed, KeyPage } from "../store.ts";

const DEFAULT_PAGE = 100;
const LARGEST_PAGE = 1000;

/** A cursor is the key to continue after; the prefix tells a cursor from a stray word. */
const CURSOR_PREFIX = "k1:";

/** Checks a page request and opens its cursor. */
export function keyPage({ limit = DEFAULT_PAGE, cursor }: Paging): KeyPage {
  if (!Number.isInteger(limit) || limit < 1 || limit > LARGEST_PAGE)
    throw new ValidationError("limit", limit, `must be a whole number from 1 to ${LARGEST_PAGE}`);
  return { limit, after: cursor === undefined ? undefined : openCursor(cursor) };
}

/** Turns a store's page into a user's page. */
export function pageOf<T, U>(page: Keyed<T>, convert: (item: T) => U): Page<U> {
  return {
    items: page.items.map(convert),
    cursor: page.next === undefined ? undefined : Buffer.from(CURSOR_PREFIX + page.next).toString("base64url"),
  };
}

/** Reads all pages. Each page moves on, so the loop ends with the data. */
export async function allOf<T>(read: (page: KeyPage) => Promise<Keyed<T>> | Keyed<T>): Promise<readonly T[]> {
  const items: T[] = [];
  let after: string | undefined;
  do {
    const page = await read({ limit: LARGEST_PAGE, after });
    items.push(...page.items);
    after = page.next;
  } while (after !== undefined);
  return items;
}

function openCursor(cursor: unknown): string {
  const text = typeof cursor === "string" ? Buffer.from(cursor, "base64url").toString() : "";
  if (!text.startsWith(CURSOR_PREFIX))
    throw new ValidationError("cursor", cursor, "must be the cursor of an earlier page of the same query");
  return text.slice(CURSOR_PREFIX.length);
}
