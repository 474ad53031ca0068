import { tokensOf, type Tokens } from "./oracle-bucket.ts";

/** What a lease took from one bucket in one go. */
export interface Part {
  readonly key: string;
  readonly entityId: string;
  readonly resource: string;
  readonly life: number;
  /** The limits that the bucket showed to the call. */
  readonly names: readonly string[];
  readonly tokens: Tokens;
  /** 1 when this part counted as a request. */
  readonly requests: number;
}

/** What one lease took, and what it still has to write. */
export class OracleLease {
  readonly entityId: string;
  readonly parts: Part[] = [];
  /**
   * By resource: what the caller was told was taken. A take whose answer was lost is in `parts`
   * alone.
   */
  readonly #taken = new Map<string, Map<string, number>>();
  readonly #pending = new Map<string, Map<string, number>>();

  constructor(entityId: string) {
    this.entityId = entityId;
  }

  add(part: Part): void {
    this.parts.push(part);
  }

  /** The caller was told that this was taken. */
  told(resource: string, tokens: Tokens): void {
    addTo(this.#taken, resource, tokens);
  }

  /** The limits that can be adjusted. */
  names(resource: string): readonly string[] {
    return (
      this.parts.find((part) => part.resource === resource && part.entityId === this.entityId)
        ?.names ?? []
    );
  }

  total(resource: string, name: string): number {
    return (
      (this.#taken.get(resource)?.get(name) ?? 0) + (this.#pending.get(resource)?.get(name) ?? 0)
    );
  }

  adjust(resource: string, deltas: Tokens): void {
    addTo(this.#pending, resource, deltas);
  }

  settleTo(resource: string, totals: Tokens): void {
    const pending = this.#pending.get(resource) ?? new Map<string, number>();
    this.#pending.set(resource, pending);
    for (const name in totals)
      pending.set(name, totals[name]! - (this.#taken.get(resource)?.get(name) ?? 0));
  }

  get hasDifferences(): boolean {
    return [...this.#pending.values()].some((pending) =>
      [...pending.values()].some((delta) => delta !== 0),
    );
  }

  /**
   * What commit writes where. More than estimated is charged to the bucket that the lease took from
   * last, of the entity and of its parent. Less goes back to where it came from, last taken first,
   * and never more to a bucket than was taken from it.
   */
  settlement(): readonly { readonly part: Part; readonly tokens: Tokens }[] {
    const writes: { part: Part; tokens: Tokens }[] = [];
    for (const [resource, pending] of this.#pending) {
      const changed = [...pending].filter(([, delta]) => delta !== 0);
      if (changed.length === 0) continue;
      const own = this.parts.filter(
        (part) => part.resource === resource && part.entityId === this.entityId,
      );
      const parents = this.parts.filter(
        (part) => part.resource === resource && part.entityId !== this.entityId,
      );
      for (const parts of [own, parents]) writes.push(...spread(parts, changed));
    }
    return writes;
  }
}

function spread(
  parts: readonly Part[],
  changed: readonly (readonly [string, number])[],
): readonly { part: Part; tokens: Tokens }[] {
  return parts.toReversed().flatMap((part, fromLast, reversed) => {
    const tokens: Record<string, number> = {};
    for (const [name, delta] of changed) {
      const isLastWithName = reversed.findIndex(({ names }) => names.includes(name)) === fromLast;
      if (delta > 0 && isLastWithName) tokens[name] = delta;
      if (delta > 0) continue;
      const later = reversed
        .slice(0, fromLast)
        .reduce((sum, other) => sum + tokensOf(other.tokens, name), 0);
      const back = Math.min(tokensOf(part.tokens, name), Math.max(0, -delta - later));
      if (back > 0) tokens[name] = -back;
    }
    return Object.keys(tokens).length === 0 ? [] : [{ part, tokens }];
  });
}

function addTo(sums: Map<string, Map<string, number>>, resource: string, tokens: Tokens): void {
  const sum = sums.get(resource) ?? new Map<string, number>();
  sums.set(resource, sum);
  for (const name in tokens) sum.set(name, (sum.get(name) ?? 0) + tokens[name]!);
}
