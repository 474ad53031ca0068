import type { Bucket, BucketLimit, OwnedBucket } from "../../core/bucket/bucket.ts";
import type { Policy } from "../../core/bucket/policy.ts";
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
    this.balances = numbersOf(bucket);
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

  /** Takes over another bucket, because the limits have changed. */
  replace(bucket: Bucket, terms: Terms): void {
    this.terms = terms;
    this.balances = numbersOf(bucket);
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
function numbersOf({ balances, refilledAtMs }: Bucket): number[] {
  return balances.concat(refilledAtMs);
}
