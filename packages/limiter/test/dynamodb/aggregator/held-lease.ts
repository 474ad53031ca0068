import type { Lease } from "zae-limiter";
import { listNames, PARENT, type EntityModel } from "./entities.ts";
import type { Ledger, Tokens } from "./ledger.ts";

/** What a lease has taken from one bucket. */
interface Part {
  readonly entityId: string;
  readonly resource: string;
  /** Which of the buckets that were ever stored under this name. */
  readonly life: number;
  readonly isCascaded: boolean;
  /** The names that the bucket counts. */
  readonly names: readonly string[];
}

/** How often each bucket was deleted. */
export class Lives {
  readonly #deleted = new Map<string, number>();

  get(entityId: string, resource: string): number {
    return this.#deleted.get(`${entityId} ${resource}`) ?? 0;
  }

  end(entityId: string, resource: string): void {
    this.#deleted.set(`${entityId} ${resource}`, this.get(entityId, resource) + 1);
  }
}

/** What leases share with the history that they are part of. */
export interface LeaseWorld {
  readonly ledger: Ledger;
  readonly lives: Lives;
  readonly parent: EntityModel;
  /** The time that the stream will tell. */
  atMs(): number;
}

/**
 * An open lease, and what it means for the ledger. A lease pays to the buckets that it took from;
 * what it owes to one that was deleted is not paid.
 */
export class HeldLease {
  readonly lease: Lease;
  readonly entity: EntityModel;
  readonly #world: LeaseWorld;
  readonly #parts: readonly Part[];
  readonly #cascaded: boolean;
  readonly #taken = new Map<string, Record<string, number>>();

  constructor(
    world: LeaseWorld,
    lease: Lease,
    entity: EntityModel,
    taken: Readonly<Record<string, Tokens>>,
  ) {
    this.lease = lease;
    this.entity = entity;
    this.#world = world;
    this.#cascaded = entity.cascades;
    this.#parts = Object.keys(taken).flatMap((resource) => listParts(world, entity, resource));
    for (const [resource, tokens] of Object.entries(taken)) {
      this.#taken.set(resource, {});
      this.#count(resource, tokens, 1);
    }
  }

  get resources(): readonly string[] {
    return [...this.#taken.keys()];
  }

  /** The tokens taken of a resource. */
  taken(resource: string): Tokens {
    return this.#taken.get(resource)!;
  }

  /** Whether more would be taken from the same buckets as before. */
  get mayTakeMore(): boolean {
    return this.#cascaded === this.entity.cascades && !this.hasLostABucket;
  }

  /** Whether a bucket that it took from was deleted. */
  get hasLostABucket(): boolean {
    return this.#parts.some((part) => !this.#isAlive(part));
  }

  /** More was taken of the lease's own resource. */
  tookMore(tokens: Tokens): void {
    this.#count(this.lease.resource, tokens, 0);
  }

  /** The lease was committed with these totals; what they do not name stays as it was taken. */
  settled(totals: Readonly<Record<string, Tokens>>): void {
    for (const [resource, tokens] of Object.entries(totals)) {
      const taken = this.taken(resource);
      const deltas = Object.entries(tokens).map(([name, total]) => [
        name,
        total - (taken[name] ?? 0),
      ]);
      this.#count(resource, Object.fromEntries(deltas) as Tokens, 0);
    }
  }

  /** Everything was given back. */
  rolledBack(): void {
    for (const [resource, taken] of this.#taken) {
      const back = Object.entries(taken).map(([name, amount]) => [name, -amount]);
      this.#count(resource, Object.fromEntries(back) as Tokens, -1);
    }
  }

  #count(resource: string, tokens: Tokens, requests: number): void {
    const { ledger } = this.#world;
    const taken = this.#taken.get(resource)!;
    for (const part of this.#parts) {
      if (part.resource !== resource || !this.#isAlive(part)) continue;
      const counted = Object.entries(tokens).filter(([name]) => part.names.includes(name));
      ledger.add({
        ...part,
        atMs: this.#world.atMs(),
        tokens: Object.fromEntries(counted),
        requests,
      });
    }
    for (const [name, amount] of Object.entries(tokens)) taken[name] = (taken[name] ?? 0) + amount;
  }

  #isAlive({ entityId, resource, life }: Part): boolean {
    return this.#world.lives.get(entityId, resource) === life;
  }
}

function listParts(
  { lives, parent }: LeaseWorld,
  entity: EntityModel,
  resource: string,
): readonly Part[] {
  const charged = entity.cascades ? [entity, parent] : [entity];
  return charged.map((each) => ({
    entityId: each.id,
    resource,
    life: lives.get(each.id, resource),
    isCascaded: each !== entity && each.id === PARENT,
    names: listNames(each),
  }));
}
