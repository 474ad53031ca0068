import { RateLimitExceeded } from "../core/bucket/refusal.ts";
import type { Lease } from "../limiter/lease.ts";
import { costOf, type Metering } from "./tokens/metering.ts";
import { NO_TOKENS } from "./tokens/token-usage.ts";

/** Output tokens that are taken at once while an answer streams. */
const STRIDE_TOKENS = 256;

/** Takes on while an answer streams, strictly. At most one stride is delivered and not taken. */
export class Overrun {
  readonly #lease: Lease;
  readonly #metering: Metering;
  readonly #count: (outputBytes: number) => number;
  /** Output tokens that were taken. */
  #taken: number;

  constructor(
    lease: Lease,
    metering: Metering,
    reservedOutput: number,
    count: (outputBytes: number) => number,
  ) {
    this.#lease = lease;
    this.#metering = metering;
    this.#taken = reservedOutput;
    this.#count = count;
  }

  /**
   * Takes for what was read so far, before more than a stride of it would be unpaid. Resolves with
   * the refusal if there is not enough left.
   */
  async beforeDelivery(outputBytes: number): Promise<RateLimitExceeded | undefined> {
    return this.#takeUpTo(this.#count(outputBytes) - STRIDE_TOKENS);
  }

  /** Takes for what was delivered. Resolves with the refusal if there is not enough left. */
  async afterDelivery(outputBytes: number): Promise<RateLimitExceeded | undefined> {
    return this.#takeUpTo(this.#count(outputBytes));
  }

  async #takeUpTo(output: number): Promise<RateLimitExceeded | undefined> {
    if (output <= this.#taken) return undefined;
    const strides = Math.ceil((output - this.#taken) / STRIDE_TOKENS);
    const more = strides * STRIDE_TOKENS;
    try {
      await this.#lease.consume(this.#costOfOutput(more));
    } catch (error) {
      if (error instanceof RateLimitExceeded) return error;
      throw error;
    }
    this.#taken += more;
    return undefined;
  }

  /** Without the request, which was taken before. */
  #costOfOutput(output: number): Record<string, number> {
    const withOutput = costOf(this.#metering, { ...NO_TOKENS, output });
    const without = costOf(this.#metering, NO_TOKENS);
    const cost: Record<string, number> = {};
    for (const name in withOutput) {
      const amount = withOutput[name]! - without[name]!;
      if (amount > 0) cost[name] = amount;
    }
    return cost;
  }
}
