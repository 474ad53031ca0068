import type { Bucket, BucketLimit, OwnedBucket } from "../../core/bucket/bucket.ts";
import type { BucketClaim, OwnedClaim } from "../../core/bucket/decision.ts";
import type { WindowEnds } from "../../core/bucket/windows.ts";
import type { Policy } from "../../core/bucket/policy.ts";
import type { ConsumeOutcome, Receipt } from "../port.ts";
import type { Meter } from "./usage.ts";

/** The policy and limits of a bucket. Buckets under one policy share them. */
export interface Terms {
  readonly policy: Policy;
  /** The version of the configuration when `policy` was resolved; -1 for an override. */
  readonly version: number;
  /**
   * The limits that the bucket was last written with: those of the policy, unless some are hidden
   * or the call brought its own.
   */
  readonly limits: readonly BucketLimit[];
}

/**
 * A bucket that is updated in place. A limiter holds more buckets than anything else, so a cell is
 * one small object and one array of numbers: three for each limit, then the stamp. With two limits
 * a key takes 230 bytes of heap, including its text; a separate bucket object and stamp took 305.
 */
export class Cell implements OwnedBucket {
  terms: Terms;
  balances: number[];

  constructor(bucket: Bucket, terms: Terms) {
    this.terms = terms;
    this.balances = toNumbers(bucket);
  }

  get limits(): readonly BucketLimit[] {
    return this.terms.limits;
  }

  get refilledAtMs(): number {
    return this.balances[this.balances.length - 1]!;
  }

  set refilledAtMs(timeMs: number) {
    this.balances[this.balances.length - 1] = timeMs;
  }

  /** Takes over the state of another bucket, because the limits have changed. */
  replace(bucket: Bucket, terms: Terms): void {
    this.terms = terms;
    this.balances = toNumbers(bucket);
  }

  /** A copy of the bucket as it is now. */
  snapshot(): Bucket {
    return {
      limits: this.limits,
      refilledAtMs: this.refilledAtMs,
      balances: this.balances.slice(0, -1),
    };
  }
}

/** A bucket whose usage is recorded. */
export class MeteredCell extends Cell {
  readonly meter: Meter;

  constructor(bucket: Bucket, terms: Terms, meter: Meter) {
    super(bucket, terms);
    this.meter = meter;
  }
}

/** The numbers of a cell: `concat` allocates exactly what is needed. */
function toNumbers({ balances, refilledAtMs }: Bucket): number[] {
  return balances.concat(refilledAtMs);
}

/** One bucket of a call. `cell` is undefined until the bucket exists. */
export interface CellClaim extends OwnedClaim {
  readonly costs: readonly number[];
  cell: Cell | undefined;
  /** Whether the bucket belongs to the parent of the entity that makes the call. */
  readonly isCascaded: boolean;
  /** 1 if it counts as a request: the acquire does, later takes by `lease.consume` do not. */
  requests: 0 | 1;
  windowEnds: WindowEnds | undefined;
}

/** A claim as it was decided: without the cell, which later calls change. */
export function toDecided({
  entityId,
  resource,
  policy,
  amounts,
  bucket,
  cell,
  leaves,
}: CellClaim): BucketClaim {
  return {
    entityId,
    resource,
    policy,
    amounts,
    bucket: bucket === cell ? cell.snapshot() : bucket,
    leaves,
  };
}

/** A receipt, which is also the outcome of its call: that saves 130 bytes for each call. */
export class MemoryReceipt implements Receipt {
  readonly granted = true;
  readonly parts: CellClaim[];
  #isEnded = false;

  /** The list becomes the receipt's own: further takes are added to it. */
  constructor(parts: CellClaim[]) {
    this.parts = parts;
  }

  get receipt(): Receipt {
    return this;
  }

  get policies(): readonly Policy[] {
    return this.parts.flatMap(({ isCascaded, policy }) => (isCascaded ? [] : [policy]));
  }

  /** Adds a further take of the same lease, and returns its outcome. */
  extend({ parts, policies }: MemoryReceipt): ConsumeOutcome {
    this.parts.push(...parts);
    return { granted: true, receipt: this, policies };
  }

  /** What is to be settled. Nothing the second time, so a retry after a failure is harmless. */
  end(): readonly CellClaim[] {
    if (this.#isEnded) return [];
    this.#isEnded = true;
    return this.parts;
  }
}
