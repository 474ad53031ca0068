/*
 * Group commit: what concurrent calls want of one key rides on one write, for stores where a write
 * costs money and a round trip.
 *
 *          submit                        the write ends, and nobody waits
 *   idle ──────────▶ writing ──────────────────────────────────────────────▶ idle
 *                     │   ▲
 *     submit: waits ──┘   └── the write ends: those that waited, oldest first, are the next batch
 *
 *   one member:  waiting ──▶ in a batch ──▶ resolved or rejected by the write
 *                   ▲             │
 *                   └─────────────┘  left open by the write: it goes with the next batch,
 *                                    before those that came later
 *
 * The first goes at once and nothing waits for a timer, so an idle key adds no latency, and a busy
 * one writes as often as the store answers. A batch never changes while its write is under way.
 * What one member gets, the others do not notice: each has a promise of its own, and a caller that
 * gives up only stops looking at its own. When the store is away, those for whom a batch had no
 * room fail with it: they have waited for as long as a write is tried, and a queue of thousands
 * would otherwise end one batch and one outage after another.
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

  /** Whether it still waits for its outcome. */
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
 * Carries a batch out: resolves or rejects members, and leaves those open that must go with the
 * next batch. Members it throws for are rejected.
 */
export type WriteBatch<Work, Outcome> = (batch: readonly Member<Work, Outcome>[]) => Promise<void>;

/**
 * Members of one write. Beyond, the arithmetic of a batch would keep the event loop for longer than
 * the write takes.
 */
const MAX_BATCH = 256;

/** The queue of one key. */
export class GroupCommit<Work, Outcome> {
  readonly #onIdle: () => void;
  #waiting: Member<Work, Outcome>[] = [];
  #isWriting = false;

  /** `onIdle` is called when the last write has ended and nothing waits. */
  constructor(onIdle: () => void = () => {}) {
    this.#onIdle = onIdle;
  }

  /** How many wait for the write that is under way. */
  get waiting(): number {
    return this.#waiting.length;
  }

  get isIdle(): boolean {
    return !this.#isWriting;
  }

  /** Goes with the next batch, which leaves at once when no write is under way. */
  submit(work: Work, write: WriteBatch<Work, Outcome>): Promise<Outcome> {
    const member = new Member<Work, Outcome>(work);
    this.#waiting.push(member);
    if (!this.#isWriting) void this.#run(write);
    return member.outcome;
  }

  async #run(write: WriteBatch<Work, Outcome>): Promise<void> {
    this.#isWriting = true;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, MAX_BATCH);
      const leftBehind = this.#waiting.length;
      try {
        await write(batch);
      } catch (error) {
        const failed =
          error instanceof RateLimiterUnavailable ? this.#waiting.splice(0, leftBehind) : [];
        for (const member of [...batch, ...failed]) if (member.isOpen) member.reject(error);
      }
      const open = batch.filter((member) => member.isOpen);
      if (open.length > 0) this.#waiting.unshift(...open);
    }
    this.#isWriting = false;
    this.#onIdle();
  }
}
