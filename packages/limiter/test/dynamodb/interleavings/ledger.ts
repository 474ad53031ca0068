/*
 * The answer to every call, and so what each bucket must have been charged in the end. A call that
 * was answered clearly counts exactly; one whose outcome is unknown (its process died, or the
 * network failed it) counts as a range, at most its own cost.
 */

/** Whole tokens by limit, and granted calls under `GRANTS`. */
export type Effect = ReadonlyMap<string, number>;

/** The name that calls are counted under; no limit can have it. */
export const GRANTS = "(calls)";

interface Range {
  readonly least: number;
  readonly most: number;
}

/** The name for what came by cascade of another. */
export function cascaded(name: string): string {
  return `${name} (by cascade)`;
}

/**
 * What buckets were charged, as far as callers can know: first that of the calling entity, then
 * those that it cascades into.
 */
export class Ledger {
  readonly #ranges = new Map<string, Map<string, Range>>();

  /** Notes something that certainly happened. */
  exactly(entityIds: readonly string[], effect: Effect): void {
    this.#note(entityIds, effect, (amount) => ({ least: amount, most: amount }));
  }

  /** Notes something that may have happened, at most `times`. */
  perhaps(entityIds: readonly string[], effect: Effect, times = 1): void {
    this.#note(entityIds, effect, (amount) => ({
      least: Math.min(0, amount * times),
      most: Math.max(0, amount * times),
    }));
  }

  range(entityId: string, name: string): Range {
    return this.#ranges.get(entityId)?.get(name) ?? { least: 0, most: 0 };
  }

  #note(entityIds: readonly string[], effect: Effect, rangeOf: (amount: number) => Range): void {
    for (const [index, entityId] of entityIds.entries()) {
      const ranges = this.#ranges.get(entityId) ?? new Map<string, Range>();
      this.#ranges.set(entityId, ranges);
      for (const [name, amount] of effect)
        for (const each of index === 0 ? [name] : [name, cascaded(name)]) {
          const { least, most } = this.range(entityId, each);
          const further = rangeOf(amount);
          ranges.set(each, { least: least + further.least, most: most + further.most });
        }
    }
  }
}

/** The same the other way round. */
export function reversed(effect: Effect): Effect {
  return new Map([...effect].map(([name, amount]) => [name, -amount]));
}

/** Both together. */
export function together(left: Effect, right: Effect): Effect {
  return new Map(
    [...new Set([...left.keys(), ...right.keys()])].map((name) => [
      name,
      (left.get(name) ?? 0) + (right.get(name) ?? 0),
    ]),
  );
}
