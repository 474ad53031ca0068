import { RateLimitExceeded, type Amounts, type Lease } from "zae-limiter";
import type { Ledger } from "../ledger/ledger.ts";

/** What the work of a call may do with its lease. */
export interface SessionLease extends Pick<Lease, "settle" | "adjust" | "release" | "degraded"> {
  /** Takes more now; false if a limit refuses. */
  consume(amounts: Amounts): Promise<boolean>;
  /** The part of the lease that belongs to one resource, to settle it. */
  resourceLease(resource: string): Pick<Lease, "settle" | "adjust" | "release">;
  /** Gives everything back at the end, as for work that was not done. */
  giveBack(): void;
  /** Never ends the lease, as a process that dies. */
  abandon(): void;
}

/** A take that was granted, and the time of the request. */
export interface Grant<T> {
  readonly value: T;
  readonly sent: number;
}

/** How a session times the takes and the end of one call. */
export interface CallTimer {
  /** Times a take; undefined if a limit refuses. */
  take<T>(attempt: () => Promise<T | undefined>): Promise<Grant<T> | undefined>;
  /** Times another call. */
  time<T>(kind: string, work: () => Promise<T>): Promise<T>;
}

/** A lease of a session, which notes in the ledger what it takes and how it ends. */
export class OpenLease implements SessionLease {
  readonly #lease: Lease;
  readonly #timer: CallTimer;
  readonly #ledger: Ledger | undefined;
  readonly #id: number;
  readonly #taken = new Map<string, Map<string, number>>();
  readonly #buckets = new Map<string, readonly number[]>();
  #end: "commit" | "rollback" | "abandon" = "commit";

  constructor(lease: Lease, timer: CallTimer, ledger: Ledger | undefined) {
    this.#lease = lease;
    this.#timer = timer;
    // A lease that was granted without the store took nothing.
    this.#ledger = lease.degraded ? undefined : ledger;
    this.#id = this.#ledger?.newLease() ?? 0;
  }

  get degraded(): boolean {
    return this.#lease.degraded;
  }

  settle(totals: Readonly<Record<string, number | undefined>>): void {
    this.#lease.settle(totals);
  }

  adjust(deltas: Amounts): void {
    this.#lease.adjust(deltas);
  }

  release(amounts: Amounts): void {
    this.#lease.release(amounts);
  }

  resourceLease(resource: string): Pick<Lease, "settle" | "adjust" | "release"> {
    return this.#lease.resourceLease(resource);
  }

  async consume(amounts: Amounts): Promise<boolean> {
    const grant = await this.#timer.take(() => takeMore(this.#lease, amounts));
    if (grant !== undefined) await this.noteTake({ [this.#lease.resource]: amounts }, grant.sent);
    return grant !== undefined;
  }

  giveBack(): void {
    this.#end = "rollback";
  }

  abandon(): void {
    this.#end = "abandon";
  }

  /** Notes what was just granted. */
  async noteTake(taken: Readonly<Record<string, Amounts>>, sent: number): Promise<void> {
    for (const [resource, amounts] of Object.entries(taken)) {
      const sums = this.#taken.get(resource) ?? new Map<string, number>();
      for (const [name, amount] of Object.entries(amounts))
        sums.set(name, (sums.get(name) ?? 0) + amount);
      this.#taken.set(resource, sums);
    }
    if (this.#ledger === undefined) return;
    const answered = this.#ledger.now();
    const statuses = await this.#lease.statuses();
    const grant = { lease: this.#id, sent, answered };
    for (const [resource, ids] of this.#ledger.noteGrant(grant, taken, statuses))
      this.#buckets.set(resource, ids);
  }

  /** Ends the lease as the work wanted it. */
  async finish(): Promise<void> {
    if (this.#end === "abandon") return;
    const isCommit = this.#end === "commit";
    const differences = [...this.#taken].map(([resource, sums]) => ({
      buckets: this.#buckets.get(resource) ?? [],
      deltas: isCommit ? this.#computeDeltas(resource, sums) : negate(sums),
    }));
    const isWritten = differences.some(({ deltas }) => Object.keys(deltas).length > 0);
    const write = (): Promise<void> => (isCommit ? this.#lease.commit() : this.#lease.rollback());
    const sent = this.#ledger?.now() ?? 0;
    let answered: number | undefined;
    try {
      await (isWritten ? this.#timer.time(this.#end, write) : write());
      answered = this.#ledger?.now();
    } finally {
      for (const difference of differences)
        this.#ledger?.noteEnd({ lease: this.#id, ...difference, sent, answered });
    }
  }

  #computeDeltas(resource: string, sums: ReadonlyMap<string, number>): Amounts {
    const consumed = Object.entries(this.#lease.resourceLease(resource).consumed);
    const deltas = consumed.map(([name, total]) => [name, total - (sums.get(name) ?? 0)] as const);
    return Object.fromEntries(deltas.filter(([, delta]) => delta !== 0));
  }
}

async function takeMore(lease: Lease, amounts: Amounts): Promise<true | undefined> {
  try {
    await lease.consume(amounts);
    return true;
  } catch (error) {
    if (error instanceof RateLimitExceeded) return undefined;
    throw error;
  }
}

function negate(sums: ReadonlyMap<string, number>): Amounts {
  return Object.fromEntries([...sums].flatMap(([name, sum]) => (sum === 0 ? [] : [[name, -sum]])));
}
