/*
 * Takes from a bucket that has several shards (ADR 012):
 *
 *   home shard ──▶ holds it: take there                              (one write, as without shards)
 *     │
 *     └──▶ another that holds it alone: take there
 *            │
 *            └──▶ all together (gather-queue.ts): taken in one transaction, refused, or another
 *                 round
 *
 * Each process has a home shard, so that processes spread over the shards and their batches stay
 * large. A home shard that does not exist yet is split off its owner by the first process that
 * wants it.
 */
import { wholeMs, type Clock } from "../../system-clock.ts";
import type { BucketKey } from "../items/bucket-key.ts";
import type { BucketWriter } from "../write/bucket-writer.ts";
import { afterLastEnd, fitsShard, mayFit } from "./fit.ts";
import { asOfMs, noteThrottled, takeFromShard, type TakeAttempt } from "./take.ts";
import { TableUnavailable } from "../table/table-errors.ts";
import type { Connection } from "../table/connection.ts";
import type { PolicyResolver } from "../cache/policy-resolver.ts";
import { GatherQueue } from "./gather-queue.ts";
import type { KnownBucket, KnownBuckets, KnownShard } from "../cache/known-buckets.ts";
import type { Refused, Taken, Undecided } from "./receipt.ts";
import type { MergeMonitor } from "../shards/merge-monitor.ts";
import type { Splitter } from "../shards/splitter.ts";
import type { WantedClaim } from "./wanted-claim.ts";

/**
 * The most shards tried before all are read: the home shard, and one that other processes may have
 * emptied since it was seen. Each failed try is a billed round trip.
 */
export const MAX_TRIES = 2;

/** Takes from buckets with several shards. */
export class ShardTaker {
  readonly #clock: Clock;
  readonly #known: KnownBuckets;
  readonly #writer: BucketWriter;
  readonly #splitter: Splitter;
  /** Which shard is home: this modulo the count. */
  readonly #homeNumber: number;
  readonly #gathers: GatherQueue;
  readonly #homesUnderWay = new Map<string, Promise<void>>();

  constructor(options: {
    readonly connection: Connection;
    readonly known: KnownBuckets;
    readonly writer: BucketWriter;
    readonly splitter: Splitter;
    readonly resolver: PolicyResolver;
    readonly mergeMonitor: Pick<MergeMonitor, "noteWrite">;
    readonly homeNumber: number;
    readonly largestTickMs: number;
  }) {
    this.#clock = options.connection.clock;
    this.#known = options.known;
    this.#writer = options.writer;
    this.#splitter = options.splitter;
    this.#homeNumber = options.homeNumber;
    this.#gathers = new GatherQueue(options);
  }

  /** One round over the shards: takes all that a claim wants, or nothing. */
  async takeOnce(wanted: WantedClaim, attempt: TakeAttempt): Promise<Taken | Refused | Undecided> {
    if (attempt.wantsHome) await this.#ensureHomeShard(wanted.key);
    attempt.wantsHome = false;
    let claim = wanted;
    let tries = 0;
    for (const { key } of this.#holders(claim, attempt)) {
      const outcome = await takeFromShard(claim, key, attempt, this.#writer);
      if (outcome.kind === "taken") return outcome;
      ({ claim } = outcome);
      if (outcome.kind === "refused") attempt.isLate = true;
      else if (outcome.throttled) noteThrottled(attempt, key, outcome.throttled);
      if (++tries === MAX_TRIES) break;
    }
    return this.#gathers.take(claim, attempt);
  }

  /**
   * Finds out whether the home shard exists, and splits it off if not: once for all calls that want
   * it at the same time.
   */
  async #ensureHomeShard(key: BucketKey): Promise<void> {
    const { count, shards } = this.#known.get(key);
    const home = this.#homeNumber % count;
    if (shards.some(({ image }) => image.shard === home)) return;
    const underWay =
      this.#homesUnderWay.get(key.text) ??
      this.#createHomeShard(key, home).finally(() => this.#homesUnderWay.delete(key.text));
    this.#homesUnderWay.set(key.text, underWay);
    await underWay;
  }

  async #createHomeShard(key: BucketKey, home: number): Promise<void> {
    if (!this.#known.get(key).isWhole) await this.#known.readAll(key);
    try {
      await this.#splitter.create(key, home);
    } catch (error) {
      // The owner of the home shard's class is throttled, so it cannot be split now. The call can
      // still take what is there, or take elsewhere.
      if (!(error instanceof TableUnavailable && !error.ambiguous)) throw error;
    }
  }

  /**
   * The shards that hold the whole claim alone, as far as is known, beginning at home. Each is
   * examined only when the caller asks for it.
   */
  *#holders(claim: WantedClaim, attempt: TakeAttempt): Generator<KnownShard> {
    const known = this.#known.get(claim.key);
    const nowMs = wholeMs(this.#clock);
    if (!mayFit(claim, known, afterLastEnd(known.shards, asOfMs(attempt, nowMs), nowMs))) return;
    for (const shard of fromHome(known, this.#homeNumber))
      if (attempt.throttled?.has(shard.key.text) !== true && this.#holds(claim, shard, attempt))
        yield shard;
  }

  /**
   * Whether a shard holds a claim, as far as is known. To a call that has lost a race, an image
   * from before it began shows only what was stored: what the shard has earned since it was seen,
   * others have taken as they did on the shard before.
   */
  #holds(claim: WantedClaim, shard: KnownShard, attempt: TakeAttempt): boolean {
    const { image, seenAt } = shard;
    const nowMs = wholeMs(this.#clock);
    const isOld = attempt.isLate && seenAt.order < attempt.begun;
    const atMs = isOld ? image.bucket.refilledAtMs : asOfMs(attempt, nowMs);
    return fitsShard(claim, image, afterLastEnd([shard], atMs, nowMs));
  }
}

/** The known shards of a bucket, beginning at home. */
export function fromHome(
  { count, shards }: KnownBucket,
  homeNumber: number,
): readonly KnownShard[] {
  const home = Math.max(
    0,
    shards.findIndex(({ image }) => image.shard >= homeNumber % count),
  );
  return [...shards.slice(home), ...shards.slice(0, home)];
}
