import { fraction, isLess, least, minus, plus, type Fraction } from "./fraction.ts";
import type { LimitSpec } from "./terms.ts";

/**
 * A bucket as it would be if it had never been split and nothing were ever late: exact arithmetic
 * on whole limits.
 */
export class ReferenceBucket {
  readonly #limits: readonly LimitSpec[];
  readonly #values: Map<string, Fraction>;
  #atMs: number;

  constructor(limits: readonly LimitSpec[], atMs: number) {
    this.#limits = limits;
    this.#values = new Map(
      limits.map(({ name, capacity }) => [name, fraction(BigInt(capacity) * 1000n)]),
    );
    this.#atMs = atMs;
  }

  /** Millitokens of a limit. */
  value(name: string, atMs: number): Fraction {
    this.#refill(atMs);
    return this.#values.get(name)!;
  }

  /** Whether it holds amounts, in tokens. A limit that is not asked for must not be in debt. */
  holds(amounts: Readonly<Record<string, number>>, atMs: number): boolean {
    return this.#limits.every(
      ({ name }) => !isLess(this.value(name, atMs), milli(amounts[name] ?? 0)),
    );
  }

  /** Takes amounts, whether they are there or not; negative ones go back. */
  charge(amounts: Readonly<Record<string, number>>, atMs: number): void {
    this.#refill(atMs);
    for (const { name, capacity } of this.#limits)
      this.#values.set(
        name,
        least(milli(capacity), minus(this.#values.get(name)!, milli(amounts[name] ?? 0))),
      );
  }

  #refill(atMs: number): void {
    const elapsed = BigInt(atMs - this.#atMs);
    this.#atMs = atMs;
    for (const { name, capacity, refillAmount, refillPeriodSeconds } of this.#limits) {
      const earned = fraction(elapsed * BigInt(refillAmount), BigInt(refillPeriodSeconds));
      this.#values.set(name, least(milli(capacity), plus(this.#values.get(name)!, earned)));
    }
  }
}

function milli(tokens: number): Fraction {
  return fraction(BigInt(tokens) * 1000n);
}
