/** An exact number, `over` above zero: the oracle rounds nothing. */
export interface Fraction {
  readonly top: bigint;
  readonly over: bigint;
}

export const ZERO: Fraction = { top: 0n, over: 1n };

export function fraction(top: bigint, over = 1n): Fraction {
  return { top, over };
}

export function plus(left: Fraction, right: Fraction): Fraction {
  if (left.over === right.over) return { top: left.top + right.top, over: left.over };
  return { top: left.top * right.over + right.top * left.over, over: left.over * right.over };
}

export function minus(left: Fraction, right: Fraction): Fraction {
  return plus(left, { top: -right.top, over: right.over });
}

export function isLess(left: Fraction, right: Fraction): boolean {
  return left.top * right.over < right.top * left.over;
}

export function least(left: Fraction, right: Fraction): Fraction {
  return isLess(right, left) ? right : left;
}

export function sum(parts: Iterable<Fraction>): Fraction {
  let total = ZERO;
  for (const part of parts) total = plus(total, part);
  return total;
}

/** The next whole number below. */
export function floor({ top, over }: Fraction): bigint {
  return top >= 0n ? top / over : -((-top + over - 1n) / over);
}

/** For messages only. */
export function shown({ top, over }: Fraction): string {
  return String(Number((top * 1000n) / over) / 1000);
}
