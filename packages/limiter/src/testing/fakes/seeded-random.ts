import type { Random } from "../../repository/system-clock.ts";

/**
 * A random source that returns the same numbers for the same seed (mulberry32).
 * @example const repository = new MemoryRepository({ random: seededRandom(42) });
 */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
