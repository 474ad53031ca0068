/** Consecutive seeds. */
export interface Seeds {
  readonly first: number;
  readonly count: number;
}

/**
 * The seeds that the environment asks for: `SEED` is the first, `SEEDS` how many. Without `SEEDS`
 * there are `usual` ones, and `thorough` ones in a thorough run (`ZAEL_THOROUGH=1`).
 */
export function seedsFromEnvironment({
  usual,
  thorough = usual,
}: {
  readonly usual: number;
  readonly thorough?: number;
}): Seeds {
  const isThorough = process.env["ZAEL_THOROUGH"] === "1";
  return {
    first: Number(process.env["SEED"] ?? 1),
    count: Number(process.env["SEEDS"] ?? (isThorough ? thorough : usual)),
  };
}

/** All of them, in order. */
export function eachOf({ first, count }: Seeds): readonly number[] {
  return Array.from({ length: count }, (_, index) => first + index);
}
