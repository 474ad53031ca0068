/*
 * How calls wait, within one process.
 *
 *   arrive ──▶ queued ──▶ head ──▶ decided ──▶ granted ──▶ leave
 *                │          ▲          │
 *                │          │          ├──▶ would fit in time: sleep until then, or until ──┐
 *                │          │          │    tokens go back                                  │
 *                │          └──────────┼────────────────────────────────────────────────────┘
 *                │                     └──▶ would not fit in time: refused ──▶ leave
 *                └──▶ deadline, abort or close ──▶ leave
 *
 * A call joins the queue of every resource it names, and is a head when it is first in all of them.
 * It joins all its queues in one step, so the earliest call is first in every queue it is in, and
 * two calls never wait for each other. Small calls wait behind a large one; otherwise a stream of
 * small calls would starve it. Nothing polls: a head sleeps until the exact time at which it would
 * fit if nothing else is taken, and is woken early when tokens go back to one of its resources in
 * this process.
 */
import type { LimitStatus } from "../core/bucket/decision.ts";
import type { Clock } from "../repository/system-clock.ts";

/** The result of one attempt to take: granted with a value, or refused. */
export type TakeResult<T> =
  | { readonly granted: true; readonly value: T }
  | { readonly granted: false; readonly statuses: readonly LimitStatus[] };

/** A call that may wait. */
export interface WaitingCall<T> {
  readonly entityId: string;
  readonly resources: readonly string[];
  readonly waitUpToMs: number;
  readonly signal: AbortSignal | undefined;
  /** Tries to take once. */
  take(): Promise<TakeResult<T>>;
  /**
   * Reads the state of the limits without taking. The result is granted only if the store is
   * unavailable and the call may go on without it.
   */
  peek(): Promise<TakeResult<T>>;
  /** Gives back what was granted to a call that was ended meanwhile. */
  undo(value: T): Promise<void>;
}

interface Waiter {
  readonly keys: readonly string[];
  readonly resources: readonly string[];
  /**
   * Ends the current sleep, because the call became a head, tokens went back, it was aborted, or
   * the limiter was closed.
   */
  wake: () => void;
  /** Whether it was woken since its last attempt began, whose result may then be out of date. */
  wokenSince: boolean;
  /** Why the call was ended from outside, if it was. */
  ended: { readonly reason: unknown } | undefined;
  /** The statuses of the last refusal; the calls behind wait for the same limits. */
  statuses: readonly LimitStatus[];
}

/** The queues of one limiter. */
export class WaitingRoom {
  readonly #clock: Clock;
  readonly #queues = new Map<string, Waiter[]>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Waits for the call's turn, and until it fits, for as long as the call may wait. */
  async wait<T>(call: WaitingCall<T>): Promise<TakeResult<T>> {
    call.signal?.throwIfAborted();
    const waiter: Waiter = {
      keys: call.resources.map((resource) => `${call.entityId}#${resource}`),
      resources: call.resources,
      wake: () => {},
      wokenSince: false,
      ended: undefined,
      statuses: [],
    };
    const onAbort = (): void => end(waiter, call.signal?.reason);
    call.signal?.addEventListener("abort", onAbort, { once: true });
    this.#join(waiter);
    try {
      return await this.#waitForGrant(call, waiter);
    } finally {
      call.signal?.removeEventListener("abort", onAbort);
      this.#leave(waiter);
    }
  }

  /** Wakes the heads that may fit now, because tokens went back to these resources. */
  wake(resources: readonly string[]): void {
    for (const [head] of this.#queues.values())
      if (head?.resources.some((resource) => resources.includes(resource))) wakeUp(head);
  }

  /** Ends every waiting call. */
  close(reason: unknown): void {
    for (const queue of this.#queues.values()) for (const waiter of queue) end(waiter, reason);
  }

  async #waitForGrant<T>(call: WaitingCall<T>, waiter: Waiter): Promise<TakeResult<T>> {
    const deadlineMs = this.#clock.now() + call.waitUpToMs;
    if (!this.#isHead(waiter)) {
      const seen = await call.peek();
      if (seen.granted || !fitsWithin(seen.statuses, call.waitUpToMs)) return seen;
      while (!this.#isHead(waiter)) {
        throwIfEnded(waiter);
        if (deadlineMs <= this.#clock.now()) return this.#refusedBehind(waiter, await call.peek());
        await this.#sleep(waiter, deadlineMs - this.#clock.now());
      }
    }
    for (;;) {
      throwIfEnded(waiter);
      waiter.wokenSince = false;
      const result = await call.take();
      if (result.granted) {
        if (waiter.ended !== undefined) await call.undo(result.value);
        throwIfEnded(waiter);
        return result;
      }
      waiter.statuses = result.statuses;
      // Tokens that went back during the attempt are not in its result.
      if (waiter.wokenSince) continue;
      if (!fitsWithin(result.statuses, deadlineMs - this.#clock.now())) return result;
      await this.#sleep(waiter, longestWaitMs(result.statuses));
    }
  }

  /** Sleeps for a time, or until the waiter is woken. */
  async #sleep(waiter: Waiter, ms: number): Promise<void> {
    if (waiter.ended !== undefined) return;
    const early = new AbortController();
    waiter.wake = () => early.abort();
    try {
      await this.#clock.sleep(ms, early.signal);
    } catch (error) {
      if (!early.signal.aborted) throw error;
    } finally {
      waiter.wake = () => {};
    }
  }

  #join(waiter: Waiter): void {
    for (const key of waiter.keys) {
      const queue = this.#queues.get(key);
      if (queue === undefined) this.#queues.set(key, [waiter]);
      else queue.push(waiter);
    }
  }

  /**
   * Leaves all queues in one step, then wakes the calls that have become first. A call that was
   * first before would only get the same result again.
   */
  #leave(waiter: Waiter): void {
    const advanced = waiter.keys.filter((key) => this.#queues.get(key)?.[0] === waiter);
    for (const key of waiter.keys) {
      const queue = this.#queues.get(key) ?? [];
      queue.splice(queue.indexOf(waiter), 1);
      if (queue.length === 0) this.#queues.delete(key);
    }
    for (const key of advanced) {
      const first = this.#queues.get(key)?.[0];
      if (first !== undefined) wakeUp(first);
    }
  }

  #isHead(waiter: Waiter): boolean {
    return waiter.keys.every((key) => this.#queues.get(key)?.[0] === waiter);
  }

  /**
   * The refusal of a call that ran out of time behind another one. If its own limits would have
   * sufficed, it is refused by the limits that the call ahead is waiting for.
   */
  #refusedBehind<T>(waiter: Waiter, seen: TakeResult<T>): TakeResult<T> {
    if (seen.granted || seen.statuses.some((status) => status.exceeded)) return seen;
    const { statuses } = seen;
    const ahead = waiter.keys.flatMap((key) => this.#queues.get(key)?.[0]?.statuses ?? []);
    const marked = statuses.map((status) => {
      const other = ahead.find(
        ({ exceeded, entityId, resource, limitName }) =>
          exceeded &&
          entityId === status.entityId &&
          resource === status.resource &&
          limitName === status.limitName,
      );
      return other === undefined
        ? status
        : { ...status, exceeded: true, retryAfterSeconds: other.retryAfterSeconds };
    });
    if (marked.some((status) => status.exceeded)) return { granted: false, statuses: marked };
    return {
      granted: false,
      statuses: statuses.with(0, { ...statuses[0]!, exceeded: true, retryAfterSeconds: 0.001 }),
    };
  }
}

function end(waiter: Waiter, reason: unknown): void {
  waiter.ended ??= { reason };
  wakeUp(waiter);
}

function wakeUp(waiter: Waiter): void {
  waiter.wokenSince = true;
  waiter.wake();
}

function throwIfEnded(waiter: Waiter): void {
  if (waiter.ended !== undefined) throw waiter.ended.reason;
}

/** A call that can never fit does not fit within any time, not even an infinite one. */
function fitsWithin(statuses: readonly LimitStatus[], ms: number): boolean {
  const waitMs = longestWaitMs(statuses);
  return waitMs !== Infinity && waitMs <= ms;
}

/**
 * Waits are whole milliseconds. Many of them change a little when they are converted to seconds and
 * back: 2007 becomes 2007.0000000000002.
 */
function longestWaitMs(statuses: readonly LimitStatus[]): number {
  return Math.round(Math.max(...statuses.map(({ retryAfterSeconds }) => retryAfterSeconds)) * 1000);
}
