import * as fc from "fast-check";
import { MAX_AMOUNT } from "../../src/core/amounts.ts";
import type { RateLimit } from "../../src/core/limit-kinds.ts";

const SAFE = BigInt(Number.MAX_SAFE_INTEGER);

/** Numbers of every magnitude: a uniform choice up to 9·10^12 would never try a small one. */
export function magnitude(most: number): fc.Arbitrary<number> {
  const steps = [1, 10, 1000, 1_000_000, 1_000_000_000, most].filter((step) => step <= most);
  return fc.oneof(
    ...steps.map((step) => fc.integer({ min: 1, max: step })),
    fc.integer({ min: Math.max(1, most - 10), max: most }),
  );
}

/** Every limit that the library accepts, the largest too. */
export function validLimit(name = "tpm"): fc.Arbitrary<RateLimit> {
  return magnitude(MAX_AMOUNT)
    .chain((refillAmount) =>
      fc.record({
        name: fc.constant(name),
        capacity: magnitude(MAX_AMOUNT),
        refillAmount: fc.constant(refillAmount),
        refillPeriodSeconds: magnitude(longestPeriod(refillAmount)),
      }),
    )
    .filter(isExact);
}

/** Limits as people set them: small numbers, so that many steps reach full, empty and debt. */
export function smallLimit(name = "tpm"): fc.Arbitrary<RateLimit> {
  return fc.record({
    name: fc.constant(name),
    capacity: fc.integer({ min: 1, max: 100 }),
    refillAmount: fc.integer({ min: 1, max: 100 }),
    refillPeriodSeconds: fc.integer({ min: 1, max: 100 }),
  });
}

/** Design §4: a limit whose `(a + 1)·p` leaves the safe range is refused. */
function isExact({ refillAmount, refillPeriodSeconds }: RateLimit): boolean {
  const [amount, period] = [BigInt(refillAmount), BigInt(refillPeriodSeconds)];
  const divisor = gcd(amount, period);
  return (amount / divisor + 1n) * (period / divisor) <= SAFE;
}

function longestPeriod(refillAmount: number): number {
  return Math.min(
    MAX_AMOUNT,
    Math.max(1, Math.floor(Number.MAX_SAFE_INTEGER / (refillAmount + 1))),
  );
}

function gcd(left: bigint, right: bigint): bigint {
  return right === 0n ? left : gcd(right, left % right);
}
