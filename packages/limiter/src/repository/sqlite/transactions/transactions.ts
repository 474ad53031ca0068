import { RateLimiterUnavailable, ZaeLimiterError } from "../../../core/errors.ts";
import type { MaybePromise } from "../../port.ts";
import { monotonicMs, systemClock, type Random } from "../../system-clock.ts";
import type { Connection } from "../database/connection.ts";
import { isBusy, translated } from "../database/driver-errors.ts";
import { WorkingSet } from "./working-set.ts";

/**
 * The writes of one process, at most one transaction in each turn of the event loop.
 *
 *          member arrives                  next turn
 *   idle ─────────────────▶ scheduled ──────────────────▶ BEGIN IMMEDIATE
 *    ▲                       ▲      ▲                       │         │ busy
 *    │ queue empty           │      │ slept, with jitter    │ locked  ▼
 *    └───────── COMMIT ──────┘      └───────────────────────┼────── waiting ──▶ past its deadline:
 *                 ▲                                         ▼                   RateLimiterUnavailable
 *                 └──────────── write ◀─────── decide members one after another
 *
 * Members that share a transaction are decided in order of arrival on one working set, which is
 * written once at the end: a refusal or a ValidationError is thrown before its member has changed
 * anything, so it harms nobody else. Members that change records with statements of their own go
 * alone. From BEGIN to COMMIT nothing gives way, so two connections of one process never meet, and
 * no lock is held across turns. While it waits, new members join the queue: the longer the wait,
 * the larger the next transaction.
 *
 * `busy_timeout` is 0 because SQLite's own waiting would block the event loop, for seconds under
 * load. The waits here are short (8 ms at most) because nobody wakes us when the lock is free; each
 * is drawn at random so that processes do not meet again.
 */
export class Transactions {
  readonly #connection: Connection;
  readonly #path: string;
  readonly #lockTimeoutMs: number;
  readonly #random: Random;
  readonly #assertInPlace: () => void;
  #queue: Member[] = [];
  #state: "idle" | "scheduled" | "waiting" | "closed" = "idle";
  #busyInARow = 0;
  #drained: (() => void) | undefined;
  readonly counts = { requests: 0, writes: 0, retries: 0, batches: 0, batchedOperations: 0 };

  constructor(options: {
    readonly connection: Connection;
    readonly path: string;
    readonly lockTimeoutMs: number;
    readonly random: Random;
    /** Throws when the file is not where it was opened. */
    readonly assertInPlace: () => void;
  }) {
    this.#connection = options.connection;
    this.#path = options.path;
    this.#lockTimeoutMs = options.lockTimeoutMs;
    this.#random = options.random;
    this.#assertInPlace = options.assertInPlace;
  }

  /**
   * Decides in a transaction that others share. `work` may run again after a failed attempt: it
   * changes only the working set.
   */
  share<T>(work: (set: WorkingSet) => T): Promise<T> {
    return this.#enqueue(work, false);
  }

  /** Changes records in a transaction of its own. */
  alone<T>(work: () => T): Promise<T> {
    return this.#enqueue(work, true);
  }

  /**
   * Reads at once where it can. A reader waits for nobody but a process that recovers or closes the
   * file.
   */
  read<T>(work: () => T): MaybePromise<T> {
    try {
      return this.#readOnce(work);
    } catch (error) {
      if (!isBusy(error)) throw this.#translated(error);
      return this.#readLater(work);
    }
  }

  /** Reads several rows of the same moment. */
  readTogether<T>(work: (set: WorkingSet) => T): MaybePromise<T> {
    return this.read(() => {
      this.#connection.exec("BEGIN");
      try {
        return work(new WorkingSet(this.#connection));
      } finally {
        this.#rollback();
      }
    });
  }

  /** Takes no new members and resolves when the last one is through. */
  async close(): Promise<void> {
    if (this.#state !== "idle") await new Promise<void>((resolve) => (this.#drained = resolve));
    this.#state = "closed";
  }

  #enqueue<T>(work: (set: WorkingSet) => T, alone: boolean): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#state === "closed" || this.#drained !== undefined)
        return reject(closed(this.#path));
      if (this.#queue.length >= MAX_QUEUE)
        return reject(
          new RateLimiterUnavailable(
            `More than ${MAX_QUEUE} calls wait for the database ${this.#path}.`,
          ),
        );
      const deadlineMs = monotonicMs() + this.#lockTimeoutMs;
      this.#queue.push({
        work,
        alone,
        deadlineMs,
        resolve: resolve as (value: unknown) => void,
        reject,
      });
      if (this.#state === "idle") this.#schedule();
    });
  }

  #schedule(): void {
    this.#state = "scheduled";
    setImmediate(() => this.#turn());
  }

  /** One turn: one transaction, or the attempt at one. */
  #turn(): void {
    const members = this.#nextMembers();
    if (members.length > 0) {
      const outcome = this.#attempt(members);
      if (outcome === "busy") return this.#waitForLock();
      this.#busyInARow = 0;
      if (outcome === "isolate") for (const member of members) member.alone = true;
      else {
        this.#queue = this.#queue.slice(members.length);
        members.forEach((member, index) => settle(member, outcome[index]!));
      }
    }
    if (this.#queue.length > 0) return this.#schedule();
    this.#state = "idle";
    this.#drained?.();
  }

  /**
   * The members of the next transaction: one that goes alone, or as many as share. They stay in the
   * queue until it is through.
   */
  #nextMembers(): readonly Member[] {
    const [first] = this.#queue;
    if (first?.alone) return [first];
    const firstAlone = this.#queue.findIndex(({ alone }) => alone);
    return this.#queue.slice(0, Math.min(MAX_BATCH, firstAlone < 0 ? MAX_BATCH : firstAlone));
  }

  /**
   * One outcome for each member; or "busy"; or "isolate": something that is no fault of the store
   * broke the transaction, so each member tries alone and only the broken one fails.
   */
  #attempt(members: readonly Member[]): readonly Outcome[] | "busy" | "isolate" {
    this.counts.requests += 1;
    try {
      this.#assertInPlace();
      this.#connection.exec("BEGIN IMMEDIATE");
    } catch (error) {
      return isBusy(error) ? "busy" : this.#allFail(members, error);
    }
    try {
      const set = new WorkingSet(this.#connection);
      const outcomes = members.map((member) => decide(member, set));
      const written = set.write();
      this.#connection.exec("COMMIT");
      this.counts.writes += written;
      this.counts.batches += 1;
      this.counts.batchedOperations += members.length;
      return outcomes;
    } catch (error) {
      this.#rollback();
      if (isBusy(error)) return "busy";
      return members.length > 1 && translated(error, this.#path) === undefined
        ? "isolate"
        : this.#allFail(members, error);
    }
  }

  #allFail(members: readonly Member[], error: unknown): readonly Outcome[] {
    const failure = { error: this.#translated(error) };
    return members.map(() => failure);
  }

  /**
   * After a full disk or an I/O error SQLite has rolled back already, and says so: there is nothing
   * left to undo.
   */
  #rollback(): void {
    try {
      this.#connection.exec("ROLLBACK");
    } catch {
      // See above. Whatever else was wrong, the next BEGIN meets it again and reports it.
    }
  }

  #waitForLock(): void {
    this.counts.retries += 1;
    this.#state = "waiting";
    const waitMs = this.#nextWaitMs();
    this.#dropLate(monotonicMs());
    const earliestMs = Math.min(...this.#queue.map(({ deadlineMs }) => deadlineMs));
    const untilDeadlineMs = Math.max(0, earliestMs - monotonicMs());
    void systemClock.sleep(Math.min(waitMs, untilDeadlineMs)).then(() => this.#turn());
  }

  #nextWaitMs(): number {
    this.#busyInARow += 1;
    return this.#random() * Math.min(LONGEST_WAIT_MS, 2 ** this.#busyInARow);
  }

  #dropLate(nowMs: number): void {
    const late = this.#queue.filter(({ deadlineMs }) => deadlineMs <= nowMs);
    this.#queue = this.#queue.filter(({ deadlineMs }) => deadlineMs > nowMs);
    for (const { reject } of late) reject(this.#lockedTooLong());
  }

  #lockedTooLong(): RateLimiterUnavailable {
    return new RateLimiterUnavailable(
      `The database ${this.#path} was locked by other processes for more than ${this.#lockTimeoutMs} ms (lockTimeoutMs).`,
    );
  }

  #readOnce<T>(work: () => T): T {
    if (this.#state === "closed") throw closed(this.#path);
    this.#assertInPlace();
    return work();
  }

  async #readLater<T>(work: () => T): Promise<T> {
    const deadlineMs = monotonicMs() + this.#lockTimeoutMs;
    for (let attempt = 1; monotonicMs() < deadlineMs; attempt += 1) {
      this.counts.retries += 1;
      await systemClock.sleep(this.#random() * Math.min(LONGEST_WAIT_MS, 2 ** attempt));
      try {
        return this.#readOnce(work);
      } catch (error) {
        if (!isBusy(error)) throw this.#translated(error);
      }
    }
    throw this.#lockedTooLong();
  }

  #translated(error: unknown): unknown {
    return translated(error, this.#path) ?? error;
  }
}

/**
 * Waits for the lock grow up to this: a transaction takes far less than a millisecond, and longer
 * waits only add latency.
 */
const LONGEST_WAIT_MS = 8;

/**
 * Members of one transaction at most: about two milliseconds of work, after which the event loop
 * has its turn.
 */
const MAX_BATCH = 256;

/**
 * Members that wait at most. Beyond that the store is overloaded, and memory must not pay for it.
 */
const MAX_QUEUE = 10_000;

interface Member {
  readonly work: (set: WorkingSet) => unknown;
  alone: boolean;
  readonly deadlineMs: number;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

type Outcome = { readonly value: unknown } | { readonly error: unknown };

/**
 * What a member decides, or why it cannot: errors of ours are thrown before anything is changed,
 * others break the transaction.
 */
function decide({ work }: Member, set: WorkingSet): Outcome {
  try {
    return { value: work(set) };
  } catch (error) {
    if (error instanceof ZaeLimiterError) return { error };
    throw error;
  }
}

function settle({ resolve, reject }: Member, outcome: Outcome): void {
  if ("error" in outcome) reject(outcome.error);
  else resolve(outcome.value);
}

function closed(path: string): RateLimiterUnavailable {
  return new RateLimiterUnavailable(`The repository on ${path} is closed.`);
}
