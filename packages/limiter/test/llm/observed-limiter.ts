import { setImmediate } from "node:timers/promises";
import { Limit, RateLimiter } from "zae-limiter";
import {
  METERING,
  simpleEstimator,
  type MeteredOptions,
  type MeteredRecord,
} from "zae-limiter/llm";
import { MemoryRepository } from "zae-limiter/memory";
import { ManualClock } from "zae-limiter/testing";

/** What was reserved for an answer, unless the call says less. */
const RESERVED_OUTPUT = 100;

/** So short that nothing refills meanwhile. */
const IDLE_MS = 1;

/** What a limiter saw of some calls. */
export interface Charged {
  /** How each call ended: its end, where the usage is from, and tokens of input and output. */
  readonly calls: readonly string[];
  readonly rpm: number;
  readonly tpm: number;
}

export function charged(rpm: number, tpm: number, ...calls: readonly string[]): Charged {
  return { calls, rpm, tpm };
}

/** A limiter whose time stands still, so that what is charged stays. */
export class ObservedLimiter {
  readonly clock = new ManualClock();
  readonly records: MeteredRecord[] = [];
  readonly limiter: RateLimiter;
  readonly #repository = new MemoryRepository({ clock: this.clock });
  readonly #full: { readonly rpm: number; readonly tpm: number };
  readonly #waiting: (() => void)[] = [];

  private constructor(full: { readonly rpm: number; readonly tpm: number }) {
    this.#full = full;
    this.limiter = new RateLimiter({ repository: this.#repository });
  }

  static async open({ rpm = 100, tpm = 1000 } = {}): Promise<ObservedLimiter> {
    const observed = new ObservedLimiter({ rpm, tpm });
    const limits = [Limit.perDay("rpm", rpm), Limit.perDay("tpm", tpm)];
    await observed.#repository.setLimits("key-1", limits);
    return observed;
  }

  get options(): MeteredOptions<unknown> {
    return {
      limiter: this.limiter,
      entity: "key-1",
      metering: METERING.openai,
      estimator: simpleEstimator({ output: RESERVED_OUTPUT }),
      idleMs: IDLE_MS,
      onSettled: (record) => {
        this.records.push(record);
        for (const resolve of this.#waiting.splice(0)) resolve();
      },
    };
  }

  /** Resolves when so many calls are settled. */
  async settled(calls: number): Promise<void> {
    while (this.records.length < calls)
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
      });
  }

  /** Lets time go by until a call is settled, because it has ended or because nobody reads it. */
  async untilSettled(): Promise<void> {
    while (this.records.length === 0) {
      await setImmediate();
      await this.clock.advance(IDLE_MS);
    }
  }

  /** Somebody else makes so many requests. */
  async use(resource: string, rpm: number): Promise<void> {
    await this.limiter.charge({ entityId: "key-1", resource, amounts: { rpm } });
  }

  async charged(resource: string): Promise<Charged> {
    const left = await this.limiter.available("key-1", resource);
    return {
      calls: this.records.map(
        ({ end, source, usage }) => `${end} ${source} ${usage.input}+${usage.output}`,
      ),
      rpm: this.#full.rpm - left["rpm"]!,
      tpm: this.#full.tpm - left["tpm"]!,
    };
  }
}
