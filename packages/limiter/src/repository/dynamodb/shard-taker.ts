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
 * Each process has a home shard, so that processes spread over the shards and their batches stay
 * large. A home that does not exist yet is split off its owner by whoever comes home first.
 */
import { RateLimiterUnavailable } from "../../core/errors.ts";
import type { BucketPolicies } from "./bucket-policies.ts";
import type { Costs } from "./bucket-batch.ts";
import type { ReceiptPart } from "./bucket-ends.ts";
import type { BucketImage } from "./bucket-item.ts";
import type { BucketKey } from "./bucket-key.ts";
import type { BucketLife } from "./bucket-plan.ts";
import type { BucketShards, KnownShard } from "./bucket-shards.ts";
import type { BucketWriter } from "./bucket-writer.ts";
import { TableUnavailable } from "./client-errors.ts";
import type { Connection } from "./connection.ts";
import { gather } from "./gather.ts";
import type { Splitter } from "./splitter.ts";
import { holdsAlone, holdTogether, serve, type Target } from "./target.ts";

/** Refused as of a time. */
export interface Refused {
  readonly refusedAtMs: number;
}

/**
 * Rounds before a call counts as contended: in each of them somebody else took what this call had
 * seen.
 */
const MAX_ROUNDS = 12;

/**
 * Shards tried before all are read: home, and one that others may have emptied since it was seen.
 * Each that fails is a billed round trip.
 */
const MAX_TRIES = 2;

/** What one call knows while it is decided. */
interface Attempt {
  readonly grants: number;
  /** Images of requests before this one are older than the call. */
  readonly begun: number;
  /** The shards that turned this call away because they have too much to do. */
  readonly throttled: Map<string, TableUnavailable>;
  cameHome: boolean;
}

/** Takes from buckets. */
export class ShardTaker {
  readonly #connection: Connection;
  readonly #shards: BucketShards;
  readonly #writer: BucketWriter;
  readonly #splitter: Splitter;
  readonly #policies: BucketPolicies;
  /** Which shard is home: this modulo the count. */
  readonly #residence: number;
  readonly #comingHome = new Map<string, Promise<void>>();

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
    const attempt: Attempt = {
      grants,
      begun: this.#shards.asking().order,
      throttled: new Map(),
      cameHome: false,
    };
    for (let round = 1; round <= MAX_ROUNDS; round += 1) {
      const isUndivided = this.#shards.known(target.key).count === 1;
      const taken = isUndivided
        ? await this.#takeUndivided(target, attempt)
        : await this.#takeFromShards(target, attempt);
      if (taken !== undefined) return taken;
    }
    throw contended(target.key);
  }

  /** Undefined when the bucket turned out to have shards: then shard 0 alone has no say. */
  async #takeUndivided(
    target: Target,
    attempt: Attempt,
  ): Promise<readonly ReceiptPart[] | Refused | undefined> {
    const taken = await this.#takeUnlessThrottled(target, target.key, attempt);
    if (!("refusedAtMs" in taken)) return taken;
    const throttled = attempt.throttled.get(target.key.text);
    // Reads are not throttled by writes: if the bucket has other shards, they say so.
    const { count } =
      throttled === undefined
        ? this.#shards.known(target.key)
        : await this.#shards.readAll(target.key);
    if (count > 1) return undefined;
    if (throttled !== undefined) throw throttled;
    return taken;
  }

  /** One round over the shards; undefined when it must be decided again. */
  async #takeFromShards(
    target: Target,
    attempt: Attempt,
  ): Promise<readonly ReceiptPart[] | Refused | undefined> {
    if (!attempt.cameHome) await this.#comeHome(target.key);
    attempt.cameHome = true;
    let tries = 0;
    for (const { key } of this.#holders(target, attempt)) {
      const taken = await this.#takeUnlessThrottled(target, key, attempt);
      if (!("refusedAtMs" in taken)) return taken;
      if (++tries === MAX_TRIES) break;
    }
    let known = this.#shards.known(target.key);
    if (!known.isWhole || (known.asOf?.order ?? 0) < attempt.begun)
      known = await this.#shards.readAll(target.key);
    await this.#policies.onAll(target, known.shards);
    const nowMs = this.#nowMs();
    const free = known.shards.filter(({ key }) => !attempt.throttled.has(key.text));
    if (!known.isWhole) return undefined;
    if (!fitsTogether(target, known.shards, nowMs)) return { refusedAtMs: nowMs };
    if (free.some(({ image }) => holdsAlone(target, image, nowMs))) return undefined;
    if (!fitsTogether(target, free, nowMs)) throw [...attempt.throttled.values()][0]!;
    const gathered = await this.#gather(target, free, { nowMs, grants: attempt.grants });
    if (gathered === undefined) await this.#shards.readAll(target.key);
    return gathered;
  }

  /**
   * Learns whether the home shard exists, and splits it off if not: once, however many calls come
   * home together.
   */
  async #comeHome(key: BucketKey): Promise<void> {
    const { count, shards } = this.#shards.known(key);
    const home = this.#residence % count;
    if (shards.some(({ image }) => image.shard === home)) return;
    const coming =
      this.#comingHome.get(key.text) ??
      this.#makeHome(key, home).finally(() => this.#comingHome.delete(key.text));
    this.#comingHome.set(key.text, coming);
    await coming;
  }

  async #makeHome(key: BucketKey, home: number): Promise<void> {
    if (!this.#shards.known(key).isWhole) await this.#shards.readAll(key);
    try {
      await this.#splitter.create(key, home);
    } catch (error) {
      // The owner of the home's class has too much to do to be split. What it holds may be taken
      // all the same, there or elsewhere.
      if (!(error instanceof TableUnavailable && !error.ambiguous)) throw error;
    }
  }

  /**
   * The shards that hold it alone, as far as is known, beginning at home; looked at only as far as
   * they are asked for.
   */
  *#holders(target: Target, { throttled }: Attempt): Generator<KnownShard> {
    const known = this.#shards.known(target.key);
    const { count, shards } = known;
    const nowMs = this.#nowMs();
    if (!serve(target, known, nowMs)) return;
    const home = Math.max(
      0,
      shards.findIndex(({ image }) => image.shard >= this.#residence % count),
    );
    for (const shard of [...shards.slice(home), ...shards.slice(0, home)])
      if (!throttled.has(shard.key.text) && holdsAlone(target, shard.image, nowMs)) yield shard;
  }

  /** A shard that has too much to do is left to others for the rest of the call. */
  async #takeUnlessThrottled(
    target: Target,
    key: BucketKey,
    { grants, throttled }: Attempt,
  ): Promise<readonly ReceiptPart[] | Refused> {
    const { costs } = target;
    const policy = (image: BucketImage | undefined): ReturnType<BucketPolicies["on"]> =>
      this.#policies.on(target, key, image);
    try {
      const outcome = await this.#writer.write(key, { kind: "take", costs, grants, policy });
      if (outcome.kind !== "applied")
        return { refusedAtMs: outcome.kind === "refused" ? outcome.atMs : this.#nowMs() };
      return [partOf(target, key, { life: outcome.life, costs, grants })];
    } catch (error) {
      if (!(error instanceof TableUnavailable && error.throttled && !error.ambiguous)) throw error;
      throttled.set(key.text, error);
      return { refusedAtMs: this.#nowMs() };
    }
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
    for (const { shard } of parts) this.#shards.outdate(shard.key);
    return parts.map(({ shard: { key, image }, costs }, index) => {
      const life = {
        creation: image.creation,
        divisor: image.divisor,
        expiredBySeconds: image.expiresAtSeconds,
      };
      return partOf(target, key, { life, costs, grants: index === 0 ? options.grants : 0 });
    });
  }

  #nowMs(): number {
    return Math.floor(this.#connection.clock.now());
  }
}

/** Unlike a bucket that does not exist yet, shards of which none is left hold nothing. */
function fitsTogether(target: Target, shards: readonly KnownShard[], nowMs: number): boolean {
  return shards.length > 0 && holdTogether(target, shards, nowMs);
}

function partOf(
  { policy }: Target,
  key: BucketKey,
  {
    life,
    costs,
    grants,
  }: { readonly life: BucketLife; readonly costs: Costs; readonly grants: number },
): ReceiptPart {
  const { entityId, resource } = key;
  return { key, entityId, resource, amounts: costs, policy, grants, life };
}

/** The error of a call that others were always faster than. */
export function contended({ entityId, resource }: BucketKey): RateLimiterUnavailable {
  return new RateLimiterUnavailable("The bucket changes too fast to be decided. Try again.", {
    entityId,
    resource,
  });
}
