/*
 * One write to one bucket, however often it takes.
 *
 *   image ──▶ decide ──▶ refused
 *     ▲          │
 *     │          └──▶ send ──▶ applied ─────────────────────────────────▶ done
 *     │                 ├───▶ condition failed: the reply carries the item ──┐
 *     │                 ├───▶ throttled: pause, the same again               │
 *     │                 └───▶ no answer: the same again, with the same id    │
 *     └──────────────────────────────────────────────────────────────────────┘  a bounded number of times, then contended
 *
 * Writes of one process to one bucket go one after another: they would only fail each other's conditions.
 */
import type { Amounts } from "../../core/amounts.ts";
import { RateLimiterUnavailable } from "../../core/errors.ts";
import type { AttributeMap } from "./attribute-values.ts";
import { imageOf } from "./bucket-item.ts";
import type { BucketKey } from "./bucket-key.ts";
import { planWrite, type BucketIntent, type BucketOutcome, type SentPlan } from "./bucket-plan.ts";
import { TableUnavailable } from "./client-errors.ts";
import type { Connection } from "./connection.ts";
import type { BucketImages, Remembered } from "./images.ts";
import type { OperationIds } from "./operation-ids.ts";
import { pause } from "./retry.ts";
import { nextTickMs } from "./tick.ts";
import { newHistory, outcomeOf, overtaken, stillPending, type OperationHistory, type Unresolved } from "./unresolved.ts";

/** Decisions that one operation may make anew after failed conditions. More than that is contention, which is unavailability. */
const MAX_DECISIONS = 12;

/**
 * Longest pause before a new decision. The reply of a failed write is the freshest image there is, and it ages while we pause: with 50 ms, four
 * processes that shared a scarce bucket overtook each other 12 times in a row about once a second.
 */
const LONGEST_PAUSE_MS = 4;

/** Writes buckets. */
export class BucketWriter {
  readonly #connection: Connection;
  readonly #images: BucketImages;
  readonly #ids: OperationIds;
  readonly #ttlMultiplier: number;
  readonly #largestTickMs: number;
  writes = 0;
  failedConditions = 0;

  constructor(options: {
    readonly connection: Connection;
    readonly images: BucketImages;
    readonly ids: OperationIds;
    readonly ttlMultiplier: number;
    readonly largestTickMs: number;
  }) {
    this.#connection = options.connection;
    this.#images = options.images;
    this.#ids = options.ids;
    this.#ttlMultiplier = options.ttlMultiplier;
    this.#largestTickMs = options.largestTickMs;
  }

  /** Carries an intent out when the writes before it have ended. */
  async write(key: BucketKey, intent: BucketIntent): Promise<BucketOutcome> {
    const entry = this.#images.entry(key.text);
    const writing = entry.tail.then(() => this.#decideAndSend(key, entry, intent));
    entry.tail = writing.catch(() => {});
    entry.waiting += 1;
    try {
      return await writing;
    } finally {
      entry.waiting -= 1;
    }
  }

  async #decideAndSend(key: BucketKey, entry: Remembered, intent: BucketIntent): Promise<BucketOutcome> {
    const history = intent.history ?? newHistory();
    const forgotten = history.unanswered.filter((write) => write.outcome === "pending" && !entry.unresolved.includes(write));
    entry.unresolved = [...entry.unresolved, ...forgotten];
    for (let decision = 1; decision <= MAX_DECISIONS; decision += 1) {
      const policy = await intent.policy(entry.image);
      entry.unresolved = stillPending(entry.unresolved, entry.image);
      const known = knownOutcome(intent, history);
      if (known === "not granted") throw unavailable(key, "its outcome is unknown, so the call is not granted");
      if (known !== undefined) return known;
      const plan = planWrite({
        key,
        intent: history.onlyCharges ? { ...intent, amounts: chargesOf(intent.amounts) } : intent,
        policy,
        image: entry.image,
        nowMs: Math.floor(this.#connection.clock.now()),
        tickMs: entry.tickMs,
        ids: this.#ids,
        pending: entry.unresolved[0]?.mark,
        writeUnits: entry.failedUnits + 1,
        ttlMultiplier: this.#ttlMultiplier,
      });
      if (plan.kind === "nothing") return plan.outcome;
      if (await this.#send(key, entry, plan, history)) return plan.outcome;
      if (decision > 1)
        await pause(decision, { clock: this.#connection.clock, random: this.#connection.random, maxPauseMs: LONGEST_PAUSE_MS });
    }
    throw unavailable(key, `contended: ${MAX_DECISIONS} writes were overtaken by others`);
  }

  /** Whether it was applied. Otherwise its condition failed, or nobody knows, which the history tells. */
  async #send(key: BucketKey, entry: Remembered, plan: SentPlan, history: OperationHistory): Promise<boolean> {
    let ambiguous = false;
    for (let attempt = 1; ; attempt += 1) {
      const asking = this.#images.asking(this.#connection.clock.now());
      try {
        const reply = await this.#connection.conditional<{ readonly Attributes?: AttributeMap }>(plan.operation, plan.input);
        const item = reply.applied ? (reply.output.Attributes ?? plan.item) : reply.item;
        this.#images.remember(key.text, item === undefined ? undefined : imageOf(item), asking);
        this.#count(entry, reply.applied);
        if (ambiguous && !reply.applied) remain(entry, plan, history);
        return reply.applied;
      } catch (error) {
        if (!(error instanceof TableUnavailable)) throw error;
        ambiguous ||= error.ambiguous;
        const mayRepeat = !ambiguous || plan.mark !== undefined;
        if (attempt >= this.#connection.maxAttempts || !mayRepeat) {
          if (ambiguous) remain(entry, plan, history);
          if (mayRepeat) throw withAmbiguity(error, ambiguous);
          return false;
        }
        this.#connection.countRetry();
        if (!error.timedOut) await pause(attempt, this.#connection.retryOptions());
      }
    }
  }

  #count(entry: Remembered, applied: boolean): void {
    entry.failedUnits = applied ? 0 : entry.failedUnits + 1;
    entry.tickMs = nextTickMs(entry.tickMs, { applied, largestMs: this.#largestTickMs });
    if (!applied) {
      this.failedConditions += 1;
      return;
    }
    this.writes += 1;
    overtaken(entry.unresolved);
    entry.unresolved = [];
  }
}

/** Remembers a write whose outcome is open; one without an id leaves no trace, so it stays unknown. */
function remain(entry: Remembered, { mark }: SentPlan, history: OperationHistory): void {
  const write: Unresolved = mark === undefined ? UNKNOWABLE : { mark, outcome: "pending" };
  history.unanswered = [...history.unanswered, write];
  if (mark !== undefined) entry.unresolved = [...entry.unresolved, write];
}

const UNKNOWABLE: Unresolved = { mark: { id: "", writer: "", slot: 0, seenId: undefined }, outcome: "unknown" };

/**
 * What is known already of an operation that was sent before. When nobody can tell any more, the side that charges more counts: a take is
 * not granted, a give-back is not repeated, and of a charge only what it charges is.
 */
function knownOutcome({ kind, amounts }: BucketIntent, history: OperationHistory): BucketOutcome | "not granted" | undefined {
  const outcome = outcomeOf(history);
  if (outcome === "applied") return { kind: "applied" };
  if (outcome !== "unknown") return undefined;
  if (kind === "take") return "not granted";
  if (kind !== "charge" || Object.keys(chargesOf(amounts)).length === 0) return { kind: "applied" };
  history.onlyCharges = true;
  history.unanswered = [];
  return undefined;
}

function chargesOf(amounts: Amounts): Amounts {
  return Object.fromEntries(Object.entries(amounts).filter(([, amount]) => amount > 0));
}

/** The last attempt may have been refused outright while an earlier one is still unknown. */
function withAmbiguity(error: TableUnavailable, ambiguous: boolean): TableUnavailable {
  if (error.ambiguous === ambiguous) return error;
  const { message, throttled, timedOut } = error;
  return new TableUnavailable(message, { throttled, timedOut, ambiguous, cause: error });
}

function unavailable({ entityId, resource }: BucketKey, reason: string): RateLimiterUnavailable {
  return new RateLimiterUnavailable(`The bucket could not be written: ${reason}. Try again.`, { entityId, resource });
}
