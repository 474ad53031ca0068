import { RateLimiter, RateLimiterUnavailable, type Lease, type Repository } from "zae-limiter";
import { countKey, type CallLog, type Call, type Counts } from "./call-log.ts";
import { KEYS, MODELS, type Model } from "./scenario.ts";
import { drawBetween, nowMs, pause } from "./time-and-random.ts";

/** The share of calls that fail and are rolled back. */
const FAILING_SHARE = 0.08;
/** The share of calls that use several times their estimate and drive a bucket into debt. */
const RUNAWAY_SHARE = 0.06;

/**
 * A small simulated LLM gateway: every key calls every model, again and again, for a given time.
 */
export class Gateway {
  readonly #limiter: RateLimiter;
  readonly #calls: Call[] = [];
  readonly #counts: Counts = {};
  #unavailable = 0;
  #unwritten = 0;

  constructor(repository: Repository) {
    this.#limiter = new RateLimiter({ repository });
  }

  get counts(): Counts {
    return this.#counts;
  }

  /** Serves until `endMs`, finishes the calls in progress, and returns the log. */
  async serve(endMs: number): Promise<CallLog> {
    await Promise.all(
      KEYS.flatMap((key) => MODELS.map((model) => this.#repeat(key, model, endMs))),
    );
    return {
      calls: this.#calls,
      counts: this.#counts,
      unavailable: this.#unavailable,
      unwritten: this.#unwritten,
    };
  }

  async #repeat(key: string, model: Model, endMs: number): Promise<void> {
    const count = (this.#counts[countKey(key, model.name)] ??= {
      granted: 0,
      refused: 0,
      failed: 0,
    });
    while (nowMs() < endMs) {
      const estimate = Math.floor(drawBetween(model.estimate.least, model.estimate.most));
      const acquireStartMs = nowMs();
      const lease = await this.#ask(key, model.name, estimate);
      const acquireEndMs = nowMs();
      if (lease === "unavailable") this.#unavailable += 1;
      else if (lease === "refused") count.refused += 1;
      else {
        count.granted += 1;
        await pause(drawBetween(5, 40));
        const settleStartMs = nowMs();
        const actual = await this.#end(lease, estimate);
        if (actual === undefined) count.failed += 1;
        this.#calls.push({
          key,
          model: model.name,
          estimate,
          acquireStartMs,
          acquireEndMs,
          settleStartMs,
          settleEndMs: nowMs(),
          actual,
        });
      }
      await pause(drawBetween(20, 120));
    }
  }

  async #ask(
    entityId: string,
    resource: string,
    estimate: number,
  ): Promise<Lease | "refused" | "unavailable"> {
    try {
      const verdict = await this.#limiter.tryAcquire({
        entityId,
        resource,
        consume: { rpm: 1, tpm: estimate },
      });
      return verdict.granted ? verdict.lease : "refused";
    } catch (error) {
      if (error instanceof RateLimiterUnavailable) return "unavailable";
      throw error;
    }
  }

  /** Ends a call and returns what it used according to the store. */
  async #end(lease: Lease, estimate: number): Promise<number | undefined> {
    const actual = drawBetween(0, 1) < FAILING_SHARE ? undefined : realCost(estimate);
    try {
      if (actual === undefined) await lease.rollback();
      else {
        lease.settle({ tpm: actual });
        await lease.commit();
      }
      return actual;
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable)) throw error;
      // When the end of a lease cannot be written, nothing is returned to the bucket.
      this.#unwritten += 1;
      return estimate;
    }
  }
}

/** The real cost of a call: most estimates are off by a little, some by far. */
function realCost(estimate: number): number {
  const factor = drawBetween(0, 1) < RUNAWAY_SHARE ? drawBetween(4, 8) : drawBetween(0.4, 1.5);
  return Math.round(estimate * factor);
}
