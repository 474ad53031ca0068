import type { Bucket, BucketLimit, OwnedBucket } from "../../core/bucket/bucket.ts";
import type { Policy } from "../../core/bucket/policy.ts";
import type { Meter } from "./usage.ts";

/** What a bucket is decided with. Buckets of one policy share it. */
export interface Terms {
  readonly policy: Policy;
  /** The version of the configuration that `policy` was resolved at; -1 when it was an override. */
  readonly version: number;
  /**
   * What the bucket was last written with: the policy's limits, unless some are hidden, or the call
   * brought its own.
   */
  readonly limits: readonly BucketLimit[];
}

/**
 * A bucket in place. Keys are what a limiter has most of, so a cell is one small object and one
 * array of numbers: the three of each limit, then the stamp. With two limits a key takes 230 bytes
 * of heap, its own text included; a bucket beside the cell and a stamp of its own took 305.
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

  /** Goes on as another bucket: its limits have changed. */
  replace(bucket: Bucket, terms: Terms): void {
    this.terms = terms;
    this.balances = numbersOf(bucket);
  }

  /** The bucket as it is now; it does not change with the cell. */
  snapshot(): Bucket {
    return {
      limits: this.limits,
      refilledAtMs: this.refilledAtMs,
      balances: this.balances.slice(0, -1),
    };
  }
}

/** A bucket whose use is recorded. */
export class MeteredCell extends Cell {
  readonly meter: Meter;

  constructor(bucket: Bucket, terms: Terms, meter: Meter) {
    super(bucket, terms);
    this.meter = meter;
  }
}

/** A copy of exactly the right size. */
function numbersOf({ balances, refilledAtMs }: Bucket): number[] {
  return balances.concat(refilledAtMs);
}
