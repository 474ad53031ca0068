/*
 * Takes what no shard holds alone from several shards, in one transaction, for as many calls as
 * there are. Calls are decided one after another, in order of arrival, against what those before
 * them have left on each shard. Each part of the transaction is an ordinary take, with its
 * conditions; what a shard in debt owes is held back on the others.
 */
import { getAmount, MILLI, type Amounts } from "../../../core/amounts.ts";
import { apply, listWindowEnds, type Bucket } from "../../../core/bucket/bucket.ts";
import { countAmounts } from "../../../core/bucket/counted-amounts.ts";
import { divideAmounts, type DividedAmounts } from "../../../core/bucket/decision.ts";
import { computeLeaves, shareLeaves } from "../../../core/bucket/leave.ts";
import { shardSumMilli } from "../../../core/bucket/shard-sums.ts";
import { aboveKept, type WindowEnds } from "../../../core/bucket/windows.ts";
import { countIn, LimitFold, listCosts } from "../write/batch-decision.ts";
import { buildUpdate } from "../write/bucket-update.ts";
import type { LimitOrigin } from "../items/bucket-item.ts";
import { toIncarnation } from "../write/write-plan.ts";
import { applyPolicy, fitsShard, fitsTogether } from "./fit.ts";
import { TRANSACTION_WRITE_UNITS, type TransactItem } from "../table/connection.ts";
import type { KnownShard } from "../cache/known-buckets.ts";
import type { ReceiptPart } from "./receipt.ts";
import type { WantedClaim } from "./wanted-claim.ts";

/** What one call wants of a gather. */
export interface GatherWish {
  readonly claim: WantedClaim;
  /** Granted acquires to count. */
  readonly requests: number;
  /** As in the attempt. */
  readonly undone?: 0 | undefined;
  /** When it must have fitted: now, or earlier. */
  readonly asOfMs: number;
  /** Whether this call must not take from a shard. */
  readonly isBarred: (shard: KnownShard) => boolean;
}

/** What becomes of one call. */
export type GatherVerdict =
  /** It is part of the transaction, with these parts. */
  | { readonly kind: "gathered"; readonly parts: readonly ReceiptPart[] }
  /**
   * `refused`: the shards do not hold it. `alone`: one shard does, so no transaction is needed.
   * `barred`: only shards that it must not take from do. `left`: no more after earlier
   * calls.
   */
  | { readonly kind: "refused" | "alone" | "barred" | "left" };

/** What one shard gives, to all calls together. */
interface Giver {
  readonly shard: KnownShard;
  /** Under the policy of the calls. */
  readonly bucket: Bucket;
  /** What it holds of each limit before any call. */
  readonly heldMilli: ReadonlyMap<string, number>;
  /** What is left of each limit after the calls so far. */
  readonly leftMilli: Map<string, number>;
  readonly folds: Map<string, LimitFold>;
  requests: number;
  /** How many of these came by cascade. */
  cascadedRequests: number;
  /** 0 when any of the calls takes from several buckets. */
  undone: 0 | undefined;
  isGiving: boolean;
}

/** One transaction in the making, for calls under one policy. */
export class Gathering {
  readonly #shards: readonly KnownShard[];
  readonly #givers: readonly Giver[];
  readonly #nowMs: number;
  readonly #origin: LimitOrigin;

  /** From all shards of the bucket; those that come first are preferred. */
  constructor({ policy }: WantedClaim, shards: readonly KnownShard[], nowMs: number) {
    this.#shards = shards;
    this.#nowMs = nowMs;
    this.#origin = { overridden: policy.source === "override", fromCode: policy.fromCode };
    this.#givers = shards.map((shard) => {
      const bucket = applyPolicy(policy, shard.image, nowMs);
      const heldMilli = new Map(
        bucket.limits.map(({ limit: { name } }) => [name, shardSumMilli([bucket], name, nowMs)]),
      );
      return {
        shard,
        bucket,
        heldMilli,
        leftMilli: new Map(heldMilli),
        folds: new Map(),
        requests: 0,
        cascadedRequests: 0,
        undone: undefined,
        isGiving: false,
      };
    });
  }

  /** Decides one call, after those before it. */
  decide(wish: GatherWish): GatherVerdict {
    const { claim, asOfMs, isBarred } = wish;
    if (this.#shards.length === 0 || !fitsTogether(claim, this.#shards, asOfMs))
      return { kind: "refused" };
    const free = this.#givers.filter(({ shard }) => !isBarred(shard));
    if (free.some(({ shard }) => fitsShard(claim, shard.image, asOfMs))) return { kind: "alone" };
    const images = free.map(({ shard }) => shard);
    if (images.length === 0 || !fitsTogether(claim, images, asOfMs)) return { kind: "barred" };
    const isEnough = [this.#givers, free].every((givers) => holdTogether(givers, wish));
    return isEnough ? { kind: "gathered", parts: this.#take(wish, free) } : { kind: "left" };
  }

  /** The writes of the transaction; none when no call is part of it. */
  writes(): readonly TransactItem[] {
    const giving = this.#givers.filter(({ isGiving }) => isGiving);
    return giving.map(({ shard, bucket, folds, requests, cascadedRequests, undone }) => {
      const change = {
        folds,
        limits: bucket.limits,
        ...this.#origin,
        requests,
        cascadedRequests,
        undone,
        writeUnits: TRANSACTION_WRITE_UNITS,
        mark: undefined,
        ttlMultiplier: 0,
      };
      // A transaction returns no items, and its updates have no field that asks for them.
      const update = buildUpdate(shard.image, change, this.#nowMs).expression.build();
      return { Update: { Key: shard.key.marshalled, ...update } };
    });
  }

  /** Divides a call that fits into parts of shards. */
  #take({ claim, requests, undone }: GatherWish, free: readonly Giver[]): readonly ReceiptPart[] {
    const parts = new Map<Giver, Record<string, number>>();
    const { isCascaded } = claim;
    const { amounts, unlimited } = divideAmounts(claim.policy, claim.costs);
    const leaves = computeLeaves(claim.policy, claim.leave);
    for (const [name, cost] of Object.entries(amounts)) {
      let missing = cost;
      for (const giver of free) {
        const kept = findKept(giver, leaves, name);
        const part = Math.min(missing, Math.max(0, (giver.leftMilli.get(name) ?? 0) - kept));
        if (part === 0) continue;
        this.#takePart(giver, name, part, isCascaded, kept);
        parts.set(giver, { ...parts.get(giver), [name]: part });
        missing -= part;
      }
    }
    // A call that costs nothing is still counted as a request.
    if (parts.size === 0) parts.set(free[0]!, {});
    return [...parts].map(([giver, costs], index) => {
      const counted = index === 0 ? requests : 0;
      giver.requests += counted;
      if (isCascaded) giver.cascadedRequests += counted;
      giver.undone ??= undone;
      giver.isGiving = true;
      const isCounting = index === 0 && unlimited !== undefined;
      if (isCounting) countIn(giver.folds, unlimited, isCascaded);
      const taken = { amounts: costs, unlimited: isCounting ? unlimited : undefined };
      // Of a transaction nothing is returned: these windows are those of its plan.
      const charged = apply(giver.bucket, listCosts(giver.bucket, costs), this.#nowMs);
      return receiptPart(giver.shard, claim, taken, {
        requests: counted,
        windowEnds: listWindowEnds(charged),
      });
    });
  }

  #takePart(giver: Giver, name: string, part: number, isCascaded: boolean, kept: number): void {
    const { heldMilli, leftMilli, folds } = giver;
    const fold = folds.get(name) ?? new LimitFold();
    folds.set(name, fold);
    fold.take(part, isCascaded, kept);
    const isIndebted = this.#givers.some((other) => (other.heldMilli.get(name) ?? 0) < 0);
    if (isIndebted) fold.needMilli = heldMilli.get(name);
    leftMilli.set(name, leftMilli.get(name)! - part);
  }
}

/**
 * Whether shards hold what a call wants after those before it: of what they held as of its time,
 * what is left now.
 */
function holdTogether(givers: readonly Giver[], { claim, asOfMs }: GatherWish): boolean {
  const leaves = computeLeaves(claim.policy, claim.leave);
  const amounts = countAmounts(claim.policy, claim.amounts);
  return claim.policy.limits.every(({ name }) => {
    const cost = getAmount(amounts, name) * MILLI;
    let held = 0;
    for (const giver of givers) {
      const { shard, leftMilli } = giver;
      const thenMilli = shardSumMilli(
        [applyPolicy(claim.policy, shard.image, asOfMs)],
        name,
        asOfMs,
      );
      // What a call takes nothing of may be left anywhere.
      const kept = cost === 0 ? 0 : findKept(giver, leaves, name);
      held += aboveKept(Math.min(thenMilli, leftMilli.get(name) ?? 0), kept);
    }
    return held >= (cost === 0 && leaves ? getAmount(leaves, name) * MILLI : cost);
  });
}

/** What a shard keeps of a limit for others. */
function findKept({ shard }: Giver, leaves: Amounts | undefined, name: string): number {
  return leaves === undefined ? 0 : getAmount(shareLeaves(leaves, shard.image), name);
}

function receiptPart(
  { key, image }: KnownShard,
  { policy, isCascaded }: WantedClaim,
  { amounts, unlimited }: DividedAmounts,
  {
    requests,
    windowEnds,
  }: { readonly requests: number; readonly windowEnds: WindowEnds | undefined },
): ReceiptPart {
  return {
    key,
    entityId: key.entityId,
    resource: key.resource,
    amounts,
    unlimited,
    policy,
    requests,
    isCascaded,
    incarnation: {
      ...toIncarnation(image),
      windowEnds,
      expiredBySeconds: image.expiresAtSeconds,
    },
    seen: { image, unseenMilli: amounts },
  };
}
