import { listTokens, type Ends, type Tokens } from "./oracle-bucket.ts";

/** What a lease took from one bucket in one go. */
export interface Part {
  readonly key: string;
  readonly entityId: string;
  readonly resource: string;
  readonly life: number;
  /** The limits that the bucket showed to the call. */
  readonly names: readonly string[];
  readonly tokens: Tokens;
  /** What no limit of the bucket held: it was counted, and not charged. */
  readonly counted: Tokens;
  /** The windows that it was charged in. */
  readonly ends: Ends;
  /** 1 when this part counted as a request. */
  readonly requests: number;
}

/** What one lease took, and what it still has to write. */
export class OracleLease {
  readonly entityId: string;
  readonly parts: Part[] = [];
  /**
   * By resource: the tokens that the caller knows it took. A take whose answer was lost is in
   * `parts` alone.
   */
  readonly #taken = new Map<string, Map<string, number>>();
  readonly #pending = new Map<string, Map<string, number>>();
  /** By resource: what the caller named, and no limit held. */
  readonly #unlimited = new Map<string, Set<string>>();

  constructor(entityId: string) {
    this.entityId = entityId;
  }

  add(part: Part): void {
    this.parts.push(part);
  }

  /** Notes tokens that the caller knows it took. */
  noteTaken(resource: string, tokens: Tokens): void {
    addTo(this.#taken, resource, tokens);
    const last = this.parts.findLast(
      (part) => part.resource === resource && part.entityId === this.entityId,
    );
    this.#named(resource, tokens, last?.names ?? []);
  }

  /** What the lease shows as consumed. */
  names(resource: string): readonly string[] {
    return [...new Set([...this.#limited(resource), ...this.unlimited(resource)])];
  }

  /** What the caller has named, and no limit held. */
  unlimited(resource: string): readonly string[] {
    return [...(this.#unlimited.get(resource) ?? [])];
  }

  #limited(resource: string): readonly string[] {
    return (
      this.parts.find((part) => part.resource === resource && part.entityId === this.entityId)
        ?.names ?? []
    );
  }

  #named(resource: string, tokens: Tokens, limited: readonly string[]): void {
    const unlimited = this.#unlimited.get(resource) ?? new Set<string>();
    this.#unlimited.set(resource, unlimited);
    for (const name in tokens) if (!limited.includes(name)) unlimited.add(name);
  }

  total(resource: string, name: string): number {
    return (
      (this.#taken.get(resource)?.get(name) ?? 0) + (this.#pending.get(resource)?.get(name) ?? 0)
    );
  }

  adjust(resource: string, deltas: Tokens): void {
    this.#named(resource, deltas, this.#limited(resource));
    addTo(this.#pending, resource, deltas);
  }

  settleTo(resource: string, totals: Tokens): void {
    this.#named(resource, totals, this.#limited(resource));
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
   * and never more to a bucket than was taken from it. What was only counted is only counted; a
   * name that no take has named is counted by the last bucket, and of a parent if it is known.
   */
  settlement(
    isKnown: (entityId: string, resource: string, name: string) => boolean,
  ): readonly Write[] {
    const writes: Write[] = [];
    for (const [resource, pending] of this.#pending) {
      const changed = [...pending].filter(([, delta]) => delta !== 0);
      if (changed.length === 0) continue;
      const own = this.parts.filter(
        (part) => part.resource === resource && part.entityId === this.entityId,
      );
      const parents = this.parts.filter(
        (part) => part.resource === resource && part.entityId !== this.entityId,
      );
      writes.push(...spread(own, changed, () => true));
      writes.push(
        ...spread(parents, changed, (part, name) => isKnown(part.entityId, resource, name)),
      );
    }
    return writes;
  }
}

/** What the end of a lease writes to one bucket. */
interface Write {
  readonly part: Part;
  readonly tokens: Tokens;
  readonly counted: Tokens;
}

function spread(
  parts: readonly Part[],
  changed: readonly (readonly [string, number])[],
  isKnown: (part: Part, name: string) => boolean,
): readonly Write[] {
  return parts.toReversed().flatMap((part, fromLast, reversed) => {
    const tokens: Record<string, number> = {};
    const counted: Record<string, number> = {};
    for (const [name, delta] of changed) {
      const kind = part.names.includes(name) ? tokens : counted;
      const takenBy = (other: Part): number =>
        listTokens(other.tokens, name) + listTokens(other.counted, name);
      if (delta > 0) {
        const lastWithName = reversed.findIndex(
          (other) => other.names.includes(name) || Object.hasOwn(other.counted, name),
        );
        const isNew = lastWithName < 0 && fromLast === 0 && isKnown(part, name);
        if (lastWithName === fromLast || isNew) kind[name] = delta;
        continue;
      }
      const later = reversed.slice(0, fromLast).reduce((sum, other) => sum + takenBy(other), 0);
      const back = Math.min(takenBy(part), Math.max(0, -delta - later));
      if (back > 0) kind[name] = -back;
    }
    const isEmpty = [tokens, counted].every((amounts) => Object.keys(amounts).length === 0);
    return isEmpty ? [] : [{ part, tokens, counted }];
  });
}

function addTo(sums: Map<string, Map<string, number>>, resource: string, tokens: Tokens): void {
  const sum = sums.get(resource) ?? new Map<string, number>();
  sums.set(resource, sum);
  for (const name in tokens) sum.set(name, (sum.get(name) ?? 0) + tokens[name]!);
}
