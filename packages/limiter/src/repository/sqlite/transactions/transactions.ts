import { RateLimiterUnavailable, ZaeLimiterError } from "../../../core/errors.ts";
import type { MaybePromise } from "../../port.ts";
import { monotonicMs, systemClock, type Random } from "../../system-clock.ts";
import type { Connection } from "../database/connection.ts";
import { isBusy, translateError } from "../database/driver-errors.ts";
import { WorkingSet } from "./working-set.ts";

/**
 * Runs the writes of one process, with at most one transaction in each turn of the event loop.
 *
 *          member arrives                  next turn
 *   idle ─────────────────▶ scheduled ──────────────────▶ BEGIN IMMEDIATE
 *    ▲                       ▲      ▲                       │         │ busy
 *    │ queue empty           │      │ slept, with jitter    │ locked  ▼
 *    └───────── COMMIT ──────┘      └───────────────────────┼────── waiting ──▶ past the deadline:
 *                 ▲                                         ▼                   unavailable
 *                 └──────────── write ◀─────── decide members one after another
 *
 * Members that share a transaction are decided in order of arrival on one working set, which is
 * written once at the end. A refusal or a ValidationError is thrown before its member has changed
 * anything, so it does not affect the other members. Members that change records with their own
 * statements get a transaction alone. Everything from BEGIN to COMMIT runs synchronously, so two
 * connections of one process never compete, and no lock is held across turns. New members join the
 * queue while it waits for the lock: the longer the wait, the larger the next transaction.
 *
 * `busy_timeout` is 0, because SQLite's own wait would block the event loop, for seconds under
 * load. The waits here are short, at most 8 ms, because there is no notification when the lock is
 * released. They are random, so that processes do not keep colliding.
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
    /** Throws if the path no longer leads to the opened file. */
    readonly assertInPlace: () => void;
  }) {
    this.#connection = options.connection;
    this.#path = options.path;
    this.#lockTimeoutMs = options.lockTimeoutMs;
    this.#random = options.random;
    this.#assertInPlace = options.assertInPlace;
  }

  /**
   * Runs `work` in a transaction that other members share. It may run again after a failed attempt,
   * so it must change nothing but the working set.
   */
  share<T>(work: (set: WorkingSet) => T): Promise<T> {
    return this.#enqueue(work, false);
  }

  /** Runs `work`, which changes records, in a transaction of its own. */
  alone<T>(work: () => T): Promise<T> {
    return this.#enqueue(work, true);
  }

  /**
   * Reads at once if possible. A reader only has to wait while another process recovers or closes
   * the file.
   */
  read<T>(work: () => T): MaybePromise<T> {
    try {
      return this.#readOnce(work);
    } catch (error) {
      if (!isBusy(error)) throw this.#translate(error);
      return this.#readLater(work);
    }
  }

  /** Reads several rows as of the same moment. */
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

  /** Accepts no new members, and resolves when the last one is done. */
  async close(): Promise<void> {
    if (this.#state !== "idle") await new Promise<void>((resolve) => (this.#drained = resolve));
    this.#state = "closed";
  }

  #enqueue<T>(work: (set: WorkingSet) => T, alone: boolean): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#state === "closed" || this.#drained !== undefined)
        return reject(buildRepositoryClosedError(this.#path));
      if (this.#queue.length >= MAX_QUEUE)
        return reject(
          new RateLimiterUnavailable(
            `More than ${MAX_QUEUE} calls wait for the database ${this.#path}. Slow down, and try again.`,
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

  /** One turn: tries one transaction. */
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
   * The members of the next transaction: one that runs alone, or several that share it. They stay
   * in the queue until the transaction is done.
   */
  #nextMembers(): readonly Member[] {
    const [first] = this.#queue;
    if (first?.alone) return [first];
    const firstAlone = this.#queue.findIndex(({ alone }) => alone);
    return this.#queue.slice(0, Math.min(MAX_BATCH, firstAlone < 0 ? MAX_BATCH : firstAlone));
  }

  /**
   * Returns one outcome for each member, or "busy", or "isolate" if an error that does not come
   * from the store broke the transaction. Then each member runs alone, so that only the broken one
   * fails.
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
      return members.length > 1 && translateError(error, this.#path) === undefined
        ? "isolate"
        : this.#allFail(members, error);
    }
  }

  #allFail(members: readonly Member[], error: unknown): readonly Outcome[] {
    const failure = { error: this.#translate(error) };
    return members.map(() => failure);
  }

  /**
   * After a full disk or an I/O error, SQLite has already rolled back, and ROLLBACK fails because
   * there is nothing left to undo.
   */
  #rollback(): void {
    try {
      this.#connection.exec("ROLLBACK");
    } catch {
      // See above. Any other problem is met again and reported by the next BEGIN.
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
    for (const { reject } of late) reject(this.#buildLockedTooLongError());
  }

  #buildLockedTooLongError(): RateLimiterUnavailable {
    return new RateLimiterUnavailable(
      `The database ${this.#path} was locked by other processes for more than ${this.#lockTimeoutMs} ms. Try again, or raise lockTimeoutMs.`,
    );
  }

  #readOnce<T>(work: () => T): T {
    if (this.#state === "closed") throw buildRepositoryClosedError(this.#path);
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
        if (!isBusy(error)) throw this.#translate(error);
      }
    }
    throw this.#buildLockedTooLongError();
  }

  #translate(error: unknown): unknown {
    return translateError(error, this.#path) ?? error;
  }
}

/**
 * The longest wait for the lock. A transaction takes far less than a millisecond, so longer waits
 * would only add latency.
 */
const LONGEST_WAIT_MS = 8;

/** Most members of one transaction: about two milliseconds of work for the event loop. */
const MAX_BATCH = 256;

/** Most members in the queue. With more, the store is overloaded, and memory has to be bounded. */
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
 * The result of one member, or its error. Errors of this library are thrown before anything is
 * changed; other errors break the transaction.
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

function buildRepositoryClosedError(path: string): RateLimiterUnavailable {
  return new RateLimiterUnavailable(`The repository on ${path} is closed. Open it again.`);
}
