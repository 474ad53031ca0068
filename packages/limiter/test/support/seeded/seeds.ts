/** Consecutive seeds. */
export interface Seeds {
  readonly first: number;
  readonly count: number;
}

/**
 * The seeds that the environment asks for: `SEED` is the first, `SEEDS` how many. Without them the
 * `usual` number runs, from 1. More run before a merge, and `npm run search` runs others.
 */
export function seedsFromEnvironment({ usual }: { readonly usual: number }): Seeds {
  return {
    first: Number(process.env["SEED"] ?? 1),
    count: Number(process.env["SEEDS"] ?? usual),
  };
}

/** All of them, in order. */
export function getEach({ first, count }: Seeds): readonly number[] {
  return Array.from({ length: count }, (_, index) => first + index);
}
