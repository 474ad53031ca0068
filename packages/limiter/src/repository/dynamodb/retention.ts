import { DEFAULT_RETENTION_DAYS } from "../../core/usage.ts";
import type { MaybePromise } from "../port.ts";
import type { SystemSettings } from "../store.ts";
import type { Clock } from "../system-clock.ts";

/** For how many days records are kept. */
export interface RetentionDays {
  readonly audit: number;
  readonly usage: number;
}

/**
 * Remembers how long records are kept, as long as configuration is remembered: every event that is
 * written needs to know.
 */
export class Retention {
  readonly #read: () => Promise<SystemSettings | undefined>;
  readonly #clock: Clock;
  readonly #ttlMs: number;
  #known: RetentionDays | undefined;
  #untilMs = -Infinity;

  constructor(options: {
    readonly read: () => Promise<SystemSettings | undefined>;
    readonly clock: Clock;
    readonly ttlMs: number;
  }) {
    this.#read = options.read;
    this.#clock = options.clock;
    this.#ttlMs = options.ttlMs;
  }

  days(): MaybePromise<RetentionDays> {
    if (this.#known !== undefined && this.#clock.now() < this.#untilMs) return this.#known;
    return this.#read().then((settings) => this.learn(settings));
  }

  /** Notes what is stored; `undefined` when nothing is. */
  learn(settings: SystemSettings | undefined): RetentionDays {
    this.#known = {
      audit: settings?.auditRetentionDays ?? DEFAULT_RETENTION_DAYS,
      usage: settings?.usageRetentionDays ?? DEFAULT_RETENTION_DAYS,
    };
    this.#untilMs = this.#clock.now() + this.#ttlMs;
    return this.#known;
  }
}
