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
 * Calls that leave different amounts for others have different queues, or one that must leave much
 * would hold up those that need not.
 * It joins all its queues in one step, so the earliest call is first in every queue it is in, and
 * two calls never wait for each other. Small calls wait behind a large one; otherwise a stream of
 * small calls would starve it. Nothing polls: a head sleeps until the exact time at which it would
 * fit if nothing else is taken, and is woken early when tokens go back, in this process, to one of
 * its buckets or to one that refused it, such as its parent's. No other call is woken: with 10 000
 * waiting entities, waking all of them blocked the event loop for a quarter of a second.
 */
import type { LimitStatus } from "../core/bucket/decision.ts";
import type { Leave } from "../core/bucket/leave.ts";
import type { RepositoryPort, ResourceAmounts } from "../repository/port.ts";
import type { Clock } from "../repository/system-clock.ts";
import { RecentReturns } from "./recent-returns.ts";
import { listenTo, stopListeningTo, type Endable } from "./shared-signals.ts";
import { WaitingQueue, type Place } from "./waiting-queue.ts";

interface Grant {
  readonly granted: true;
}

/** The result of one attempt to take: what was granted, or a refusal. */
export type TakeResult<T extends Grant> =
  | T
  | { readonly granted: false; readonly statuses: readonly LimitStatus[] };

/** A call that may wait. */
export interface WaitingCall<T extends Grant> {
  readonly entityId: string;
  readonly resources: readonly Pick<ResourceAmounts, "resource" | "leave">[];
  readonly waitUpToMs: number;
  readonly signal: AbortSignal | undefined;
  /** Tries to take once. */
  take(): Promise<TakeResult<T>>;
  /**
   * Reads the state of the limits without taking. The result is granted only if the store is
   * unavailable and the call may proceed without it.
   */
  peek(): Promise<TakeResult<T>>;
  /** Gives back the tokens of a call that was ended meanwhile. */
  undo(granted: T): Promise<void>;
}

interface Waiter extends Endable {
  /** Its place in the queue of each resource. */
  places: readonly Place<Waiter>[];
  /** The buckets that refused its last attempt, while it sleeps as a head. */
  refusedBy: readonly string[];
  /**
   * Ends the current sleep, because the call became a head, tokens went back, it was aborted, or
   * the limiter or the repository was closed.
   */
  wake: () => void;
  /** Why the call was ended from outside; undefined while it is not. */
  ended: { readonly reason: unknown } | undefined;
  /** The statuses of the last refusal; the calls behind wait for the same limits. */
  statuses: readonly LimitStatus[];
}

/** Identifies a bucket. */
interface BucketName {
  readonly entityId: string;
  readonly resource: string;
}

/** The queues of one limiter. */
export class WaitingRoom {
  readonly #clock: Clock;
  readonly #repository: Pick<RepositoryPort, "closed">;
  /**
   * By bucket, which is the entity that waits and the resource that it waits for; then by what the
   * calls leave for others.
   */
  readonly #queues = new Map<string, Map<string, WaitingQueue<Waiter>>>();
  /** The heads that each bucket refused: their own, or their parent's. */
  readonly #refusedBy = new Map<string, Set<Waiter>>();
  readonly #returns = new RecentReturns();

  constructor(repository: Pick<RepositoryPort, "clock" | "closed">) {
    this.#clock = repository.clock;
    this.#repository = repository;
  }

  /** Waits for the call's turn, and until it fits, for as long as the call may wait. */
  async wait<T extends Grant>(call: WaitingCall<T>): Promise<TakeResult<T>> {
    call.signal?.throwIfAborted();
    const waiter = newWaiter();
    const { closed } = this.#repository;
    const signals = call.signal === undefined ? [closed] : [closed, call.signal];
    for (const signal of signals) listenTo(signal, waiter);
    this.#join(waiter, call);
    try {
      return await this.#waitForGrant(call, waiter);
    } finally {
      for (const signal of signals) stopListeningTo(signal, waiter);
      this.#leave(waiter);
    }
  }

  /**
   * Tokens went back to these buckets: wakes the calls that they may help, which are the heads of
   * their queues and the heads that they refused.
   */
  wake(buckets: Iterable<BucketName>): void {
    if (this.#queues.size === 0) return;
    for (const key of new Set(Array.from(buckets, toKey))) {
      this.#returns.note(key);
      for (const { first } of this.#queues.get(key)?.values() ?? NONE)
        if (first !== undefined && isHead(first)) first.wake();
      for (const waiter of this.#refusedBy.get(key) ?? []) waiter.wake();
    }
  }

  /** Ends every waiting call. */
  close(reason: unknown): void {
    for (const queues of this.#queues.values())
      for (const queue of queues.values()) for (const waiter of queue) waiter.end(reason);
  }

  async #waitForGrant<T extends Grant>(
    call: WaitingCall<T>,
    waiter: Waiter,
  ): Promise<TakeResult<T>> {
    const deadlineMs = this.#clock.now() + call.waitUpToMs;
    if (!isHead(waiter)) {
      const seen = await call.peek();
      throwIfEnded(waiter);
      if (seen.granted || !fitsWithin(seen.statuses, call.waitUpToMs)) return seen;
      while (!isHead(waiter)) {
        throwIfEnded(waiter);
        if (deadlineMs <= this.#clock.now()) return this.#endBehind(call, waiter);
        await this.#sleep(waiter, deadlineMs - this.#clock.now());
      }
    }
    for (;;) {
      throwIfEnded(waiter);
      this.#file(waiter, NONE);
      const begun = this.#returns.begin();
      let sleeping: Promise<void>;
      try {
        const result = await takeOnce(call, waiter);
        if (result.granted) return result;
        waiter.statuses = result.statuses;
        this.#file(waiter, result.statuses.filter(({ exceeded }) => exceeded).map(toKey));
        // Even if tokens go back during every attempt.
        if (deadlineMs <= this.#clock.now()) return result;
        // The result does not include tokens that went back during the attempt.
        if (this.#returns.isAnySince(begun, listBuckets(waiter))) continue;
        if (!fitsWithin(result.statuses, deadlineMs - this.#clock.now())) return result;
        // It starts to sleep in the same step, so that no later wake-up is missed.
        sleeping = this.#sleep(waiter, longestWaitMs(result.statuses));
      } finally {
        this.#returns.end();
      }
      await sleeping;
    }
  }

  /**
   * The result of a call that ran out of time behind others. If none of those was refused, the
   * bucket is not short of tokens: its store is just slow, and serves one call after another. Then
   * the call takes, like one that does not wait.
   */
  async #endBehind<T extends Grant>(call: WaitingCall<T>, waiter: Waiter): Promise<TakeResult<T>> {
    const seen = await call.peek();
    if (seen.granted || seen.statuses.some(({ exceeded }) => exceeded)) return seen;
    const ahead = waiter.places.flatMap(({ queue }) => queue.first?.statuses ?? []);
    const isShort = ahead.some(({ exceeded }) => exceeded);
    return isShort ? refuseBehind(ahead, seen.statuses) : takeOnce(call, waiter);
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

  #join(waiter: Waiter, { entityId, resources }: WaitingCall<Grant>): void {
    waiter.places = resources.map(({ resource, leave }) => {
      const key = toKey({ entityId, resource });
      const left = leave === undefined ? "" : toLeftKey(leave);
      const queues = this.#queues.get(key) ?? new Map<string, WaitingQueue<Waiter>>();
      this.#queues.set(key, queues);
      const queue = queues.get(left) ?? new WaitingQueue<Waiter>(key, left);
      queues.set(left, queue);
      return queue.join(waiter);
    });
  }

  #dropQueue({ key, left }: WaitingQueue<Waiter>): void {
    const queues = this.#queues.get(key);
    queues?.delete(left);
    if (queues?.size === 0) this.#queues.delete(key);
  }

  /**
   * Leaves all queues in one step, then wakes the calls that have become first. A call that was
   * first before would only get the same result again.
   */
  #leave(waiter: Waiter): void {
    this.#file(waiter, NONE);
    const advanced = waiter.places.filter(({ ahead }) => ahead === undefined);
    for (const place of waiter.places) {
      place.queue.leave(place);
      if (place.queue.first === undefined) this.#dropQueue(place.queue);
    }
    for (const { queue } of advanced) queue.first?.wake();
  }

  /** Files a head under the buckets that refused it, instead of those that refused it before. */
  #file(waiter: Waiter, buckets: readonly string[]): void {
    for (const key of waiter.refusedBy) {
      const refused = this.#refusedBy.get(key);
      refused?.delete(waiter);
      if (refused?.size === 0) this.#refusedBy.delete(key);
    }
    waiter.refusedBy = buckets;
    for (const key of buckets) {
      const refused = this.#refusedBy.get(key);
      if (refused === undefined) this.#refusedBy.set(key, new Set([waiter]));
      else refused.add(waiter);
    }
  }
}

/** For a waiter that no bucket refuses. */
const NONE: readonly never[] = [];

/** Takes once. Gives back what was granted if the call was ended meanwhile. */
async function takeOnce<T extends Grant>(
  call: WaitingCall<T>,
  waiter: Waiter,
): Promise<TakeResult<T>> {
  const result = await call.take();
  if (result.granted && waiter.ended !== undefined) await call.undo(result);
  throwIfEnded(waiter);
  return result;
}

/** The refusal of a call that would fit, by the limits that the call ahead is waiting for. */
function refuseBehind(
  ahead: readonly LimitStatus[],
  statuses: readonly LimitStatus[],
): { readonly granted: false; readonly statuses: readonly LimitStatus[] } {
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

function newWaiter(): Waiter {
  return {
    places: [],
    refusedBy: NONE,
    wake: () => {},
    ended: undefined,
    end(reason) {
      this.ended ??= { reason };
      this.wake();
    },
    statuses: [],
  };
}

function isHead(waiter: Waiter): boolean {
  return waiter.places.every(({ ahead }) => ahead === undefined);
}

function toKey({ entityId, resource }: BucketName): string {
  return `${entityId}#${resource}`;
}

/** The same text for the same amounts and class. */
function toLeftKey({ amounts, priority }: Leave): string {
  const names = Object.keys(amounts).sort();
  return JSON.stringify([priority, names.map((name) => [name, amounts[name]])]);
}

/** The buckets that a refused head depends on: its own, and those that refused it. */
function listBuckets({ places, refusedBy }: Waiter): readonly string[] {
  return [...places.map(({ queue }) => queue.key), ...refusedBy];
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
