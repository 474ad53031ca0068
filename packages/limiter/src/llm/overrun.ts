import { RateLimitExceeded } from "../core/bucket/refusal.ts";
import { RateLimiterUnavailable } from "../core/errors.ts";
import type { Lease } from "../limiter/lease.ts";
import type { Estimate } from "./tokens/llm-call.ts";
import { computeCost, type Metering } from "./tokens/metering.ts";
import { NO_TOKENS } from "./tokens/token-usage.ts";

/** Output tokens that one take reserves while an answer streams: about a kilobyte of text. */
export const STRIDE_TOKENS = 256;

/** A call whose answer may need more than was reserved. */
export interface OverrunCall {
  readonly lease: Lease;
  readonly metering: Metering;
  /** The original reservation. */
  readonly estimate: Estimate;
  /** Whether the answer goes on while the store is unavailable. */
  readonly goesOnWithoutStore: boolean;
  /** Counts the output tokens of this many bytes. */
  count(outputBytes: number): number;
}

/** Reserves more output tokens while an answer streams, and never goes beyond a limit. */
export class Overrun {
  readonly #call: OverrunCall;
  /** Output tokens taken so far. */
  #taken: number;
  #stride = STRIDE_TOKENS;

  constructor(call: OverrunCall) {
    this.#call = call;
    this.#taken = call.estimate.output;
  }

  /** Returns the output tokens that were not taken yet; zero or less if all were. */
  unpaid(outputBytes: number): number {
    return this.#call.count(outputBytes) - this.#taken;
  }

  /**
   * Takes the tokens read so far, and at least a stride. If a stride does not fit, smaller ones are
   * tried, so that the last tokens of a budget can be used. They stay small, so a stream is refused
   * a few times at most. Rejects with the refusal if what was read does not fit, and with the
   * store's error if that is unavailable. If calls are let through then, nothing more is taken, and
   * the rest is charged at the end.
   */
  async take(outputBytes: number): Promise<void> {
    const { lease, goesOnWithoutStore } = this.#call;
    const needed = this.unpaid(outputBytes);
    for (;;) {
      const more = Math.max(needed, this.#stride);
      try {
        const cost = this.#costOfMore(more);
        if (Object.keys(cost).length > 0) await lease.consume(cost);
        this.#taken += more;
        return;
      } catch (error) {
        if (error instanceof RateLimiterUnavailable && goesOnWithoutStore) {
          this.#taken = Infinity;
          return;
        }
        if (!(error instanceof RateLimitExceeded) || more === needed) throw error;
        this.#stride = Math.floor(this.#stride / 2);
      }
    }
  }

  /** A difference of totals, so that strides of fractional weights add up to no more than those. */
  #costOfMore(more: number): Record<string, number> {
    const { metering, estimate } = this.#call;
    const before = computeCost(metering, { ...NO_TOKENS, ...estimate, output: this.#taken });
    const after = computeCost(metering, { ...NO_TOKENS, ...estimate, output: this.#taken + more });
    const cost: Record<string, number> = {};
    for (const name in after) {
      const amount = after[name]! - before[name]!;
      if (amount > 0) cost[name] = amount;
    }
    return cost;
  }
}
