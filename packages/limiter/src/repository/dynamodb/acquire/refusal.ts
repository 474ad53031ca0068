import { NO_AMOUNTS } from "../../../core/amounts.ts";
import { apply } from "../../../core/bucket/bucket.ts";
import {
  fits,
  hasPolicyLimits,
  computeStatuses,
  type BucketClaim,
  type LimitStatus,
} from "../../../core/bucket/decision.ts";
import type { Policy } from "../../../core/bucket/policy.ts";
import { Refused } from "../../../core/bucket/refusal.ts";
import { lastParts } from "../../../core/bucket/settlement.ts";
import { RateLimiterUnavailable } from "../../../core/errors.ts";
import type { ConsumeOutcome, MaybePromise } from "../../port.ts";
import type { Clock } from "../../system-clock.ts";
import type { BucketImage } from "../items/bucket-item.ts";
import { buildSiblingKey, type BucketKey } from "../items/bucket-key.ts";
import { listCosts } from "../write/batch-decision.ts";
import type { BucketWriter } from "../write/bucket-writer.ts";
import { applyPolicy, buildBucketClaim, fitsTogether } from "./fit.ts";
import { isYoung, type KnownBuckets, type SeenShard } from "../cache/known-buckets.ts";
import type { UndecidedCalls } from "../cache/undecided-calls.ts";
import type { ReceiptPart } from "./receipt.ts";
import type { WantedClaim } from "./wanted-claim.ts";

/** A call that may be refused. */
interface RefusedCall {
  readonly claims: readonly WantedClaim[];
  /** The order of the last request before the call began. */
  readonly begun: number;
}

/** Refuses calls by what is known of their buckets, and says what is known of those of a lease. */
export class Refusals {
  readonly #known: KnownBuckets;
  readonly #writer: BucketWriter;
  readonly #clock: Clock;
  readonly #refusalMemoryMs: number;
  readonly #counts: { refusalsFromMemory: number };

  constructor(options: {
    readonly known: KnownBuckets;
    readonly writer: BucketWriter;
    readonly clock: Clock;
    /** How old an image may be and still refuse a call without a read. */
    readonly refusalMemoryMs: number;
    readonly counts: { refusalsFromMemory: number };
  }) {
    this.#known = options.known;
    this.#writer = options.writer;
    this.#clock = options.clock;
    this.#refusalMemoryMs = options.refusalMemoryMs;
    this.#counts = options.counts;
  }

  /**
   * Whether the images may refuse a call: those that were requested since it began, and remembered
   * ones while they are young.
   */
  mayRefuse({ claims, begun }: RefusedCall): boolean {
    const nowMs = this.#clock.now();
    return claims.every(({ key }) => {
      const { seenAt, isWhole } = this.#known.get(key);
      if (!isWhole || seenAt === undefined) return false;
      return seenAt.order >= begun || isYoung(seenAt, nowMs, this.#refusalMemoryMs);
    });
  }

  /**
   * Whether a bucket is short of a call even if other processes, and these undecided calls of this
   * one, give back all that they may: by its last image without such takes. An older image counts
   * as of its own time, because others may have taken what was earned since.
   */
  isSure(
    { claims, begun, begunMs }: RefusedCall & { readonly begunMs: number },
    atMs: number,
    undecided?: UndecidedCalls,
  ): boolean {
    const nowMs = this.#clock.now();
    const isShort = (claim: WantedClaim): boolean => {
      if (undecided?.has(claim) === true) return false;
      const { shards } = this.#known.get(claim.key);
      let [isLast, seenMs] = [true, begunMs];
      const sure: SeenShard[] = [];
      for (const shard of shards) {
        if (shard.sure === undefined) return false;
        const { image, seenAt } = shard.sure;
        const isOld = seenAt.order < begun && !isYoung(seenAt, nowMs, this.#refusalMemoryMs);
        if (isOld) return false;
        isLast &&= image === shard.image;
        seenMs = Math.max(seenMs, Math.floor(seenAt.ms));
        sure.push(shard.sure);
      }
      return !fitsTogether(claim, sure, isLast ? atMs : Math.min(seenMs, atMs));
    };
    // More than a full bucket holds is never given.
    return claims.some((claim) => isShort(claim) || !fitsTogether(claim, [], atMs));
  }

  /**
   * Refuses as of a time, and writes limits that have changed (see `afterRefusal`). Returns
   * undefined when the images no longer refuse the call, because another call of this process has
   * given something back since. The waits are what is left of them now.
   */
  refuse(call: RefusedCall, atMs: number, nowMs: number): MaybePromise<ConsumeOutcome> | undefined {
    const decided = this.#toDecided(call.claims, atMs);
    if (fits(decided, atMs)) return undefined;
    let isFromMemory = false;
    const writes: Promise<void>[] = [];
    for (const claim of call.claims) {
      const known = this.#known.get(claim.key);
      isFromMemory ||= known.seenAt!.order < call.begun;
      for (const { key, image } of known.shards)
        if (!hasPolicyLimits(image.bucket, claim.policy))
          writes.push(this.#applyLimits(claim, key));
    }
    if (isFromMemory) this.#counts.refusalsFromMemory += 1;
    const asOf = new Refused(decided, atMs);
    const refused = nowMs > atMs ? laterBy(nowMs - atMs, asOf) : asOf;
    return writes.length === 0 ? refused : Promise.all(writes).then(() => refused);
  }

  /** Refuses a call that one remembered bucket is short of. */
  fromMemory(shortage: BucketClaim, nowMs: number): ConsumeOutcome {
    this.#counts.refusalsFromMemory += 1;
    return new Refused([shortage], Math.floor(nowMs));
  }

  /** The state of every limit of these claims. */
  statuses(claims: readonly WantedClaim[], nowMs: number): readonly LimitStatus[] {
    return computeStatuses(this.#toDecided(claims, nowMs), nowMs);
  }

  /**
   * The state of every limit that a lease took from, without a request. A bucket with several
   * shards shows the sum of those that are known.
   */
  remembered(parts: readonly ReceiptPart[], nowMs: number): readonly LimitStatus[] {
    const claims = lastParts(parts).map((part) => {
      const { key, policy } = part;
      const shards = this.#listShards(part, parts).map((shard) => ({
        image: afterUnseen(shard, policy, nowMs),
      }));
      return buildBucketClaim({ key, policy, amounts: NO_AMOUNTS }, shards, nowMs);
    });
    return computeStatuses(claims, nowMs);
  }

  #toDecided(claims: readonly WantedClaim[], nowMs: number): readonly BucketClaim[] {
    return claims.map((claim) => buildBucketClaim(claim, this.#known.get(claim.key).shards, nowMs));
  }

  /** The shards of a part's bucket; if they were forgotten since, as the takes left them. */
  #listShards(
    { key, entityId, resource }: ReceiptPart,
    parts: readonly ReceiptPart[],
  ): readonly SeenShard[] {
    const { shards, seenAt } = this.#known.get(buildSiblingKey(key, 0));
    if (seenAt !== undefined) return shards;
    const left = new Map<string, SeenShard>();
    for (const part of parts)
      if (part.entityId === entityId && part.resource === resource && part.seen !== undefined)
        left.set(part.key.text, part.seen);
    return [...left.values()];
  }

  /**
   * The refusal is already decided: if its limits cannot be written, it is still a refusal.
   */
  async #applyLimits({ policy }: WantedClaim, key: BucketKey): Promise<void> {
    await unlessUnavailable(
      this.#writer.write(key, {
        kind: "applyLimits",
        costs: {},
        isCascaded: false,
        requests: 0,
        policy,
      }),
    );
  }
}

/** A refusal with what is left of its waits some time later. */
function laterBy(ms: number, { statuses }: Refused): ConsumeOutcome {
  return { granted: false, statuses: statuses.map((status) => shortenWait(status, ms)) };
}

/**
 * A status with what is left of its wait some time later: at least a millisecond, because a limit
 * that would hold enough by now was short all the same.
 */
function shortenWait(status: LimitStatus, ms: number): LimitStatus {
  if (!status.exceeded) return status;
  const leftMs = Math.max(1, Math.round(status.retryAfterSeconds * 1000) - ms);
  return { ...status, retryAfterSeconds: leftMs / 1000 };
}

/** A shard after what its image does not show. */
function afterUnseen(
  { image, unseenMilli }: SeenShard,
  policy: Policy,
  nowMs: number,
): BucketImage {
  if (unseenMilli === undefined) return image;
  const bucket = applyPolicy(policy, image, nowMs);
  return { ...image, bucket: apply(bucket, listCosts(bucket, unseenMilli), nowMs) };
}

/** Waits for a write, and does not report that the store is unavailable. */
export async function unlessUnavailable(write: Promise<unknown>): Promise<void> {
  try {
    await write;
  } catch (error) {
    if (!(error instanceof RateLimiterUnavailable)) throw error;
  }
}
