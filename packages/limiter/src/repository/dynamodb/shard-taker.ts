/*
 * Takes from a bucket that may have several shards (design §5.7):
 *
 *   home ──▶ holds it: take there                                      (one write, as without shards)
 *     │
 *     └──▶ another that holds it alone: take there
 *            │
 *            └──▶ read all ──▶ one that holds it alone: take there
 *                                 └──▶ all together hold it: gather from several in one transaction
 *                                 └──▶ they do not: refused
 *
 * Each process has a home shard, so that processes spread over the shards and their batches stay large. A home that does not exist yet is
 * split off its owner by whoever comes home first.
 */
import { fits } from "../../core/decision.ts";
import { RateLimiterUnavailable } from "../../core/errors.ts";
import type { BucketPolicies } from "./bucket-policies.ts";
import type { Costs } from "./bucket-batch.ts";
import type { ReceiptPart } from "./bucket-ends.ts";
import type { BucketImage } from "./bucket-item.ts";
import type { BucketKey } from "./bucket-key.ts";
import type { BucketShards, KnownShard } from "./bucket-shards.ts";
import type { BucketWriter } from "./bucket-writer.ts";
import { TableUnavailable } from "./client-errors.ts";
import type { Connection } from "./connection.ts";
import { gather } from "./gather.ts";
import type { Splitter } from "./splitter.ts";
import { chargeOf, holdsAlone, type Target } from "./target.ts";

/** Refused as of a time. */
export interface Refused {
  readonly refusedAtMs: number;
}

/** Rounds over all shards before a call counts as contended: in each of them somebody else took what this call had seen. */
const MAX_ROUNDS = 12;

/** Takes from buckets. */
export class ShardTaker {
  readonly #connection: Connection;
  readonly #shards: BucketShards;
  readonly #writer: BucketWriter;
  readonly #splitter: Splitter;
  readonly #policies: BucketPolicies;
  /** Which shard is home: this modulo the count. */
  readonly #residence: number;

  constructor(options: {
    readonly connection: Connection;
    readonly shards: BucketShards;
    readonly writer: BucketWriter;
    readonly splitter: Splitter;
    readonly policies: BucketPolicies;
    readonly residence: number;
  }) {
    this.#connection = options.connection;
    this.#shards = options.shards;
    this.#writer = options.writer;
    this.#splitter = options.splitter;
    this.#policies = options.policies;
    this.#residence = options.residence;
  }

  /** Takes all that a target wants, or nothing. */
  async take(target: Target, grants: number): Promise<readonly ReceiptPart[] | Refused> {
    if (this.#shards.known(target.key).count === 1) {
      const taken = await this.#takeFrom(target, target.key, grants);
      // Refused by shard 0 alone says nothing when it turned out to be one of several.
      if (!("refusedAtMs" in taken) || this.#shards.known(target.key).count === 1) return taken;
    }
    return this.#takeFromShards(target, grants);
  }

  async #takeFromShards(target: Target, grants: number): Promise<readonly ReceiptPart[] | Refused> {
    const { order: begun } = this.#shards.asking();
    let throttled: TableUnavailable | undefined;
    for (let round = 1; round <= MAX_ROUNDS; round += 1) {
      if (round === 1) await this.#comeHome(target.key);
      for (const { key } of this.#holders(target)) {
        const taken = await this.#takeFrom(target, key, grants).catch((error: unknown) => {
          // A shard that has too much to do is left to others while there are any.
          if (!(error instanceof TableUnavailable && error.throttled && !error.ambiguous)) throw error;
          throttled = error;
          return { refusedAtMs: this.#nowMs() };
        });
        if (!("refusedAtMs" in taken)) return taken;
      }
      let known = this.#shards.known(target.key);
      if (!known.isWhole || (known.asOf?.order ?? 0) < begun) known = await this.#shards.readAll(target.key);
      const nowMs = this.#nowMs();
      if (!known.isWhole || known.shards.some(({ image }) => holdsAlone(target, image, nowMs))) continue;
      const images = known.shards.map(({ image }) => image);
      if (!fits([chargeOf(target, images, nowMs)], nowMs)) return { refusedAtMs: nowMs };
      const gathered = await this.#gather(target, known.shards, { nowMs, grants });
      if (gathered !== undefined) return gathered;
      await this.#shards.readAll(target.key);
    }
    throw throttled ?? contended(target.key);
  }

  /** Learns whether the home shard exists, and splits it off if not. */
  async #comeHome(key: BucketKey): Promise<void> {
    const { count, shards } = this.#shards.known(key);
    const home = this.#residence % count;
    if (shards.some(({ image }) => image.shard === home)) return;
    await this.#shards.readAll(key);
    await this.#splitter.create(key, home);
  }

  /** The shards that hold it alone, as far as is known, beginning at home. */
  #holders(target: Target): readonly KnownShard[] {
    const { count, shards } = this.#shards.known(target.key);
    const nowMs = this.#nowMs();
    const fromHome = ({ image }: KnownShard): number => (image.shard - (this.#residence % count) + count) % count;
    return shards.filter(({ image }) => holdsAlone(target, image, nowMs)).toSorted((left, right) => fromHome(left) - fromHome(right));
  }

  async #takeFrom(target: Target, key: BucketKey, grants: number): Promise<readonly ReceiptPart[] | Refused> {
    const { costs } = target;
    const policy = (image: BucketImage | undefined): ReturnType<BucketPolicies["on"]> => this.#policies.on(target, key, image);
    const outcome = await this.#writer.write(key, { kind: "take", costs, grants, policy });
    if (outcome.kind !== "applied") return { refusedAtMs: outcome.kind === "refused" ? outcome.atMs : this.#nowMs() };
    return [partOf(target, key, { image: outcome.image, costs, grants })];
  }

  /** Undefined when somebody was faster. */
  async #gather(
    target: Target,
    shards: readonly KnownShard[],
    options: { readonly nowMs: number; readonly grants: number },
  ): Promise<readonly ReceiptPart[] | undefined> {
    const parts = gather(target, shards, options);
    const { applied } = await this.#connection.transact(parts.map(({ write }) => write));
    if (!applied) return undefined;
    return parts.map(({ shard, costs }, index) =>
      partOf(target, shard.key, { image: shard.image, costs, grants: index === 0 ? options.grants : 0 }),
    );
  }

  #nowMs(): number {
    return Math.floor(this.#connection.clock.now());
  }
}

function partOf(
  { policy }: Target,
  key: BucketKey,
  { image, costs, grants }: { readonly image: BucketImage | undefined; readonly costs: Costs; readonly grants: number },
): ReceiptPart {
  const { entityId, resource } = key;
  const life = { creation: image?.creation, expiredBySeconds: image?.expiresAtSeconds, divisor: image?.divisor ?? 1 };
  return { key, entityId, resource, amounts: costs, policy, grants, life };
}

function contended({ entityId, resource }: BucketKey): RateLimiterUnavailable {
  return new RateLimiterUnavailable("The bucket changes too fast to be decided. Try again.", { entityId, resource });
}
