/*
 * Group commit: concurrent calls on one key share one write, for stores where a write costs money
 * and a round trip.
 *
 *          submit                        the write ends, and none waits
 *   idle ──────────▶ writing ──────────────────────────────────────────────▶ idle
 *                     │   ▲
 *     submit: waits ──┘   └── the write ends: the waiting members, oldest first, are the next batch
 *
 *   one member:  waiting ──▶ in a batch ──▶ resolved or rejected by the write
 *                   ▲             │
 *                   └─────────────┘  left open by the write: it goes into the next batch,
 *                                    ahead of later members
 *
 * The first member is written at once, and nothing waits for a timer, so an idle key adds no
 * latency, and a busy key writes as often as the store responds. A batch never changes while it is
 * being written. Members do not affect each other: each has its own promise, and a caller that
 * gives up only stops awaiting its own. When the store is unavailable, the members that did not fit
 * into the batch fail with it. They have waited for as long as a write is retried; otherwise a
 * queue of thousands would fail batch by batch, each after a full round of retries.
 */
import { RateLimiterUnavailable } from "../core/errors.ts";

/** One call's part of a batch. */
export class Member<Work, Outcome> {
  readonly work: Work;
  readonly outcome: Promise<Outcome>;
  #isOpen = true;
  #resolve!: (outcome: Outcome) => void;
  #reject!: (error: unknown) => void;

  constructor(work: Work) {
    this.work = work;
    this.outcome = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  /** Whether the member has no outcome yet. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  resolve(outcome: Outcome): void {
    this.#isOpen = false;
    this.#resolve(outcome);
  }

  reject(error: unknown): void {
    this.#isOpen = false;
    this.#reject(error);
  }
}

/**
 * Writes a batch: resolves or rejects members, and leaves those open that have to go into the next
 * batch. If it throws, the open members are rejected.
 */
export type WriteBatch<Work, Outcome> = (batch: readonly Member<Work, Outcome>[]) => Promise<void>;

/**
 * The most members in one write. With more, deciding the batch would block the event loop for
 * longer than the write itself takes.
 */
const MAX_BATCH = 256;

/** The queue of one key. */
export class GroupCommit<Work, Outcome> {
  readonly #onIdle: () => void;
  #waiting: Member<Work, Outcome>[] = [];
  #isWriting = false;

  /** `onIdle` is called when a write has ended and no member waits. */
  constructor(onIdle: () => void = () => {}) {
    this.#onIdle = onIdle;
  }

  /** How many members wait for the current write to end. */
  get waiting(): number {
    return this.#waiting.length;
  }

  get isIdle(): boolean {
    return !this.#isWriting;
  }

  /** Adds work to the next batch, which is written at once if no write is in progress. */
  submit(work: Work, write: WriteBatch<Work, Outcome>): Promise<Outcome> {
    const member = new Member<Work, Outcome>(work);
    this.#waiting.push(member);
    if (!this.#isWriting) void this.#run(write);
    return member.outcome;
  }

  async #run(write: WriteBatch<Work, Outcome>): Promise<void> {
    this.#isWriting = true;
    while (this.#waiting.length > 0) {
      const batch = this.#nextBatch();
      const leftBehind = this.#waiting.length;
      try {
        await write(batch);
      } catch (error) {
        const failed =
          error instanceof RateLimiterUnavailable ? this.#waiting.splice(0, leftBehind) : [];
        for (const member of [...batch, ...failed]) if (member.isOpen) member.reject(error);
      }
      if (batch.some(isOpen)) this.#waiting.unshift(...batch.filter(isOpen));
    }
    this.#isWriting = false;
    this.#onIdle();
  }

  #nextBatch(): readonly Member<Work, Outcome>[] {
    if (this.#waiting.length > MAX_BATCH) return this.#waiting.splice(0, MAX_BATCH);
    const batch = this.#waiting;
    this.#waiting = [];
    return batch;
  }
}

/** Whether a member has no outcome yet. */
export function isOpen(member: { readonly isOpen: boolean }): boolean {
  return member.isOpen;
}
