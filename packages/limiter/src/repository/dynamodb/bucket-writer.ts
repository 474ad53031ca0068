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
import { RateLimiterUnavailable } from "../../core/errors.ts";
import type { AttributeMap } from "./attribute-values.ts";
import { imageOf, type BucketImage } from "./bucket-item.ts";
import type { BucketKey } from "./bucket-key.ts";
import { planWrite, type BucketIntent, type BucketOutcome, type SentPlan } from "./bucket-plan.ts";
import { TableUnavailable } from "./client-errors.ts";
import type { Connection } from "./connection.ts";
import type { BucketImages, Remembered } from "./images.ts";
import type { OperationIds } from "./operation-ids.ts";
import { pause } from "./retry.ts";

/** Decisions that one operation may make anew after failed conditions. More than that is contention, which is unavailability. */
const MAX_DECISIONS = 12;

/** Longest pause before a new decision: others need a few milliseconds each. */
const LONGEST_PAUSE_MS = 50;

/** Writes buckets. */
export class BucketWriter {
  readonly #connection: Connection;
  readonly #images: BucketImages;
  readonly #ids: OperationIds;
  readonly #ttlMultiplier: number;
  writes = 0;
  failedConditions = 0;

  constructor(options: {
    readonly connection: Connection;
    readonly images: BucketImages;
    readonly ids: OperationIds;
    readonly ttlMultiplier: number;
  }) {
    this.#connection = options.connection;
    this.#images = options.images;
    this.#ids = options.ids;
    this.#ttlMultiplier = options.ttlMultiplier;
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
    for (let decision = 1; decision <= MAX_DECISIONS; decision += 1) {
      const policy = await intent.policy(entry.image);
      const nowMs = Math.floor(this.#connection.clock.now());
      const plan = planWrite({
        key,
        intent,
        policy,
        image: entry.image,
        nowMs,
        ids: this.#ids,
        writeUnits: entry.failedUnits + 1,
        ttlMultiplier: this.#ttlMultiplier,
      });
      if (plan.kind === "nothing") return plan.outcome;
      const applied = await this.#send(key, entry, plan);
      if (applied === true) return plan.outcome;
      if (applied === "unknown" && intent.kind !== "charge") return this.#assumed(key, intent);
      if (decision > 1)
        await pause(decision, { clock: this.#connection.clock, random: this.#connection.random, maxPauseMs: LONGEST_PAUSE_MS });
    }
    throw unavailable(key, `contended: ${MAX_DECISIONS} writes were overtaken by others`);
  }

  /** What counts when nobody can tell any more: the side that charges more. A take is not granted, a give-back is not repeated. */
  #assumed(key: BucketKey, { kind }: BucketIntent): BucketOutcome {
    if (kind === "give") return { kind: "applied" };
    throw unavailable(key, "its outcome is unknown, so the call is not granted");
  }

  /** True when it was applied, false when the condition failed, and `unknown` when that cannot be found out any more. */
  async #send(key: BucketKey, entry: Remembered, plan: SentPlan): Promise<boolean | "unknown"> {
    let ambiguous = false;
    for (let attempt = 1; ; attempt += 1) {
      const sentMs = this.#connection.clock.now();
      try {
        const reply = await this.#connection.conditional<{ readonly Attributes?: AttributeMap }>(plan.operation, plan.input);
        const item = reply.applied ? (reply.output.Attributes ?? plan.item) : reply.item;
        const image = item === undefined ? undefined : imageOf(item);
        this.#images.remember(key.text, image, sentMs);
        entry.failedUnits = reply.applied ? 0 : entry.failedUnits + 1;
        if (reply.applied) this.writes += 1;
        else this.failedConditions += 1;
        return reply.applied || (ambiguous ? outcomeOfRepeated(plan, image) : false);
      } catch (error) {
        if (!(error instanceof TableUnavailable)) throw error;
        ambiguous ||= error.ambiguous;
        if (ambiguous && plan.mark === undefined) return "unknown";
        if (attempt >= this.#connection.maxAttempts) throw withAmbiguity(error, ambiguous);
        this.#connection.countRetry();
        if (!error.timedOut) await pause(attempt, this.#connection.retryOptions());
      }
    }
  }
}

/** A repeated write whose condition failed: was it this operation that changed the item before? */
function outcomeOfRepeated({ mark, seen }: SentPlan, image: BucketImage | undefined): boolean | "unknown" {
  if (mark === undefined || image === undefined) return "unknown";
  const held = image.slots[mark.slot];
  if (held === mark.id) return true;
  return held === seen?.slots[mark.slot] ? false : "unknown";
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
