import { ValidationError } from "../../core/errors.ts";
import type { Page, Paging } from "../repository.ts";
import type { Keyed, KeyPage } from "../store.ts";

const DEFAULT_PAGE = 100;
const LARGEST_PAGE = 1000;

/** The most that one call reads by name: 100 requests on DynamoDB. */
const LARGEST_BATCH = 10_000;

/**
 * A cursor holds the query it belongs to, and the key to continue after. Without the query, a
 * cursor of another list would silently skip or repeat items.
 */
function buildPrefix(query: string): string {
  return `k1:${query}\n`;
}

/** Checks a page request and decodes its cursor. `query` names the list, without line breaks. */
export function parsePageRequest(query: string, { limit = DEFAULT_PAGE, cursor }: Paging): KeyPage {
  if (!Number.isInteger(limit) || limit < 1 || limit > LARGEST_PAGE)
    throw new ValidationError("limit", limit, `must be a whole number from 1 to ${LARGEST_PAGE}`);
  return { limit, after: cursor === undefined ? undefined : openCursor(query, cursor) };
}

/** Checks a list of names that are read at once. */
export function checkMany<T>(list: readonly T[], field: string): readonly T[] {
  if (!Array.isArray(list)) throw new ValidationError(field, list, "must be a list");
  if (list.length > LARGEST_BATCH)
    throw new ValidationError(
      field,
      list.length,
      `must hold at most ${LARGEST_BATCH} entries; read the others with another call`,
    );
  return list;
}

/** Converts a page of a store to a page for users. */
export function toPage<T, U>(query: string, page: Keyed<T>, convert: (item: T) => U): Page<U> {
  return {
    items: page.items.map(convert),
    cursor: page.next === undefined ? undefined : encodeCursor(buildPrefix(query) + page.next),
  };
}

/** Reads all pages. Every page makes progress, so the loop ends with the data. */
export async function readAllPages<T>(
  read: (page: KeyPage) => Promise<Keyed<T>> | Keyed<T>,
): Promise<readonly T[]> {
  const items: T[] = [];
  let after: string | undefined;
  do {
    const page = await read({ limit: LARGEST_PAGE, after });
    items.push(...page.items);
    after = page.next;
  } while (after !== undefined);
  return items;
}

function openCursor(query: string, cursor: unknown): string {
  const text = typeof cursor === "string" ? decodeCursor(cursor) : "";
  // Decoding ignores bits at the end that belong to no byte.
  if (!text.startsWith(buildPrefix(query)) || encodeCursor(text) !== cursor)
    throw new ValidationError(
      "cursor",
      cursor,
      "must be the cursor of an earlier page of the same query",
    );
  return text.slice(buildPrefix(query).length);
}

/** Encodes the text's UTF-8 as base64url, with functions that browsers have too. */
function encodeCursor(text: string): string {
  const bytes = Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte));
  return btoa(bytes.join("")).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** Decodes base64url; returns an empty text for any other input. */
function decodeCursor(cursor: string): string {
  if (!/^(?:[\w-]{4})*(?:[\w-]{2,3})?$/.test(cursor)) return "";
  const bytes = atob(cursor.replaceAll("-", "+").replaceAll("_", "/"));
  return new TextDecoder().decode(Uint8Array.from(bytes, (byte) => byte.charCodeAt(0)));
}
