import type { Keyed, KeyPage } from "zae-limiter/backend";

/** One page of a Map, in the order of its keys. */
export function readPage<T>(
  values: ReadonlyMap<string, T>,
  { limit, after }: KeyPage,
): Keyed<readonly [string, T]> {
  const rest = [...values]
    .filter(([key]) => after === undefined || key > after)
    .sort(([left], [right]) => (left < right ? -1 : 1));
  const items = rest.slice(0, limit);
  return { items, next: rest.length > limit ? items.at(-1)?.[0] : undefined };
}
