import { NamespaceNotFoundError } from "../../core/errors.ts";
import type { NamespaceInfo } from "../../core/namespace.ts";
import type { MaybePromise } from "../port.ts";
import type { Clock } from "../system-clock.ts";

/**
 * Remembers that a namespace is active, as long as configuration is remembered: a deleted namespace
 * answers no calls after that time, in any process, and a warm call asks nobody.
 */
export class NamespaceGuard {
  readonly #read: () => Promise<NamespaceInfo | undefined>;
  readonly #namespaceId: string;
  readonly #clock: Clock;
  readonly #ttlMs: number;
  #untilMs = -Infinity;
  #reading: Promise<void> | undefined;

  constructor(options: {
    readonly read: () => Promise<NamespaceInfo | undefined>;
    readonly namespaceId: string;
    readonly clock: Clock;
    readonly ttlMs: number;
  }) {
    this.#read = options.read;
    this.#namespaceId = options.namespaceId;
    this.#clock = options.clock;
    this.#ttlMs = options.ttlMs;
  }

  /**
   * Throws `NamespaceNotFoundError` when the namespace is no longer active. Calls that ask at once
   * share one read.
   */
  assertActive(): MaybePromise<void> {
    if (this.#clock.now() < this.#untilMs) return undefined;
    this.#reading ??= this.#ask().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  /** Looks again at the next call: this process has changed the namespace. */
  forget(): void {
    this.#untilMs = -Infinity;
    this.#reading = undefined;
  }

  async #ask(): Promise<void> {
    const askedMs = this.#clock.now();
    const info = await this.#read();
    if (info?.status !== "active")
      throw new NamespaceNotFoundError(info?.name ?? this.#namespaceId);
    this.#untilMs = askedMs + this.#ttlMs;
  }
}
