/*
 * `decrement(key)` undoes one hit of a key without saying which one, so the leases of requests are
 * held until then:
 *
 *   increment granted   its lease is held
 *   increment refused   the refusal is noted: its own decrement must not give a lease back
 *   decrement           uses up a refusal, if one is noted; else the oldest lease is given back
 *
 * All hits of a key cost the same, so it does not matter whose lease goes back, only how many do.
 * Some requests are never decremented. What is held too long, or too much, is committed, which
 * writes nothing: the request stays counted.
 *
 * Whether a middleware decrements the requests that it refuses depends on its options and on the
 * status that it refuses with, which the store cannot know. A refusal is noted for as long as the
 * middleware's own store would count it: until the end of a window that begins with the first
 * request of the key. So whatever that store grants after refusals is granted here too.
 */
import type { Lease } from "../limiter/lease.ts";
import type { Clock } from "../repository/system-clock.ts";

/** Requests take less; what they have cost is settled by then. */
const HELD_MS = 10 * 60_000;

/** A key with more requests in progress is not a single client. */
const MAX_HELD_OF_KEY = 1000;

/** A lease takes 1.2 kB, so about 60 MB. The least recently used keys are dropped first. */
const MAX_HELD = 50_000;

/** The leases and refusals of one key. */
interface HeldKey {
  readonly leases: { readonly lease: Lease; readonly untilMs: number }[];
  refusals: number;
  refusalsUntilMs: number;
  /** When the middleware's own store would begin to count from 0. */
  windowEndsMs: number;
}

/** The leases of one store that may still be given back. It needs no timer. */
export class HitLeases {
  readonly #clock: Clock;
  readonly #windowMs: number;
  readonly #maxHeld: number;
  /** In the order of their last request. */
  readonly #keys = new Map<string, HeldKey>();
  #held = 0;

  constructor(clock: Clock, windowMs: number, maxHeld = MAX_HELD) {
    this.#clock = clock;
    this.#windowMs = windowMs;
    this.#maxHeld = maxHeld;
  }

  hold(key: string, lease: Lease): void {
    const held = this.#touch(key);
    held.leases.push({ lease, untilMs: this.#clock.now() + HELD_MS });
    this.#held += 1;
    if (held.leases.length > MAX_HELD_OF_KEY) this.#commitOldest(held);
    this.#letGo();
  }

  /** Notes a refusal. express-rate-limit 8 may decrement it until its wait is over. */
  noteRefusal(key: string, waitMs: number): void {
    const held = this.#touch(key);
    held.refusals += 1;
    held.refusalsUntilMs = Math.max(held.windowEndsMs, this.#clock.now() + waitMs);
    this.#letGo();
  }

  /** Undoes one hit of a key. Failures of the store go to the limiter's `onSettlementFailed`. */
  async giveBack(key: string): Promise<void> {
    const held = this.#keys.get(key);
    if (held === undefined) return;
    this.#expire(held);
    if (held.refusals > 0) {
      held.refusals -= 1;
      return;
    }
    const oldest = held.leases.shift();
    if (oldest === undefined) return;
    this.#held -= 1;
    await oldest.lease.finish("rollback");
  }

  /** Commits all leases. */
  clear(): void {
    for (const [key, held] of this.#keys) this.#forget(key, held);
  }

  #touch(key: string): HeldKey {
    const nowMs = this.#clock.now();
    const held = this.#keys.get(key) ?? {
      leases: [],
      refusals: 0,
      refusalsUntilMs: 0,
      windowEndsMs: nowMs + this.#windowMs,
    };
    this.#expire(held);
    if (held.windowEndsMs <= nowMs) held.windowEndsMs = nowMs + this.#windowMs;
    this.#keys.delete(key);
    this.#keys.set(key, held);
    return held;
  }

  #expire(held: HeldKey): void {
    const nowMs = this.#clock.now();
    if (held.refusalsUntilMs <= nowMs) held.refusals = 0;
    while (held.leases.length > 0 && held.leases[0]!.untilMs <= nowMs) this.#commitOldest(held);
  }

  /** Drops the first keys: those with nothing left, and more if there are too many. */
  #letGo(): void {
    for (const [key, held] of this.#keys) {
      this.#expire(held);
      const isEmpty = held.leases.length === 0 && held.refusals === 0;
      if (!isEmpty && this.#held <= this.#maxHeld && this.#keys.size <= this.#maxHeld) return;
      this.#forget(key, held);
    }
  }

  #forget(key: string, held: HeldKey): void {
    this.#keys.delete(key);
    while (held.leases.length > 0) this.#commitOldest(held);
  }

  #commitOldest(held: HeldKey): void {
    this.#held -= 1;
    void held.leases.shift()!.lease.finish("commit");
  }
}
