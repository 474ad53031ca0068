import { floorDivide } from "./terms.ts";

/** An exact number, `over` above zero: the oracle rounds nothing. */
export interface Fraction {
  readonly top: bigint;
  readonly over: bigint;
}

/** Nothing. */
export const ZERO: Fraction = { top: 0n, over: 1n };

/** A fraction from its two numbers; a whole number without the second. */
export function fraction(top: bigint, over = 1n): Fraction {
  return { top, over };
}

/** The sum of two. */
export function plus(left: Fraction, right: Fraction): Fraction {
  if (left.over === right.over) return { top: left.top + right.top, over: left.over };
  return { top: left.top * right.over + right.top * left.over, over: left.over * right.over };
}

/** The difference of two. */
export function minus(left: Fraction, right: Fraction): Fraction {
  return plus(left, { top: -right.top, over: right.over });
}

/** A multiple. */
export function times({ top, over }: Fraction, factor: number): Fraction {
  return { top: top * BigInt(factor), over };
}

/** Whether the first is the lesser. */
export function isLess(left: Fraction, right: Fraction): boolean {
  return left.top * right.over < right.top * left.over;
}

/** The lesser of two. */
export function least(left: Fraction, right: Fraction): Fraction {
  return isLess(right, left) ? right : left;
}

/** The sum of all. */
export function sum(parts: Iterable<Fraction>): Fraction {
  let total = ZERO;
  for (const part of parts) total = plus(total, part);
  return total;
}

/** The next whole number below. */
export function floor({ top, over }: Fraction): bigint {
  return floorDivide(top, over);
}

/** A fraction as messages show it, to three places. */
export function show({ top, over }: Fraction): string {
  return String(Number((top * 1000n) / over) / 1000);
}
