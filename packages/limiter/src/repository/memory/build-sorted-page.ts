import type { Keyed, KeyPage } from "../store.ts";

/** One page of items in the order of their keys. */
export function buildSortedPage<T>(
  items: readonly T[],
  getKey: (item: T) => string,
  { limit, after }: KeyPage,
): Keyed<T> {
  const rest = items
    .map((item) => ({ item, key: getKey(item) }))
    .filter(({ key }) => after === undefined || key > after)
    .sort((left, right) => (left.key < right.key ? -1 : 1));
  return {
    items: rest.slice(0, limit).map(({ item }) => item),
    next: rest.length > limit ? rest[limit - 1]?.key : undefined,
  };
}
