/*
 * Takes from a bucket that has several shards (ADR 021):
 *
 *   home shard ──▶ holds it: take there                              (one write, as without shards)
 *     │
 *     └──▶ another that holds it alone: take there
 *            │
 *            └──▶ read all ──▶ one that holds it alone: take there, in the next round
 *                                 ├──▶ together they hold it: gather parts in one transaction
 *                                 └──▶ they do not: refused
 *
 * Each process has a home shard, so that processes spread over the shards and their batches stay
 * large. A home shard that does not exist yet is split off its owner by the first process that
 * wants it.
 */
import { wholeMs } from "../../system-clock.ts";
import type { BucketKey } from "../items/bucket-key.ts";
import type { BucketWriter } from "../write/bucket-writer.ts";
import { fitsShard, fitsTogether, mayFit, takeFromShard } from "./charges.ts";
import { TableUnavailable } from "../table/table-errors.ts";
import type { Connection } from "../table/connection.ts";
import type { CurrentPolicies } from "./current-policy.ts";
import { gather } from "./gather.ts";
import type { KnownBuckets, KnownShard } from "../cache/known-buckets.ts";
import type { Refused, Taken, Undecided } from "./receipt.ts";
import type { Splitter } from "../shards/splitter.ts";
import type { WantedCharge } from "./wanted-charge.ts";

/**
 * The most shards tried before all are read: the home shard, and one that other processes may have
 * emptied since it was seen. Each failed try is a billed round trip.
 */
export const MAX_TRIES = 2;

/** What one call learns while it takes from one bucket, over all its rounds. */
export interface TakeAttempt {
  /** Granted acquires to count. */
  readonly requests: number;
  /** The order of the last request before it began: older images are older than the call. */
  readonly begun: number;
  /** The shards that were throttled: this call does not try them again. */
  readonly throttled: Map<string, TableUnavailable>;
  /** Whether the home shard has yet to be ensured, which only the first round does. */
  wantsHome: boolean;
}

/** Takes from buckets with several shards. */
export class ShardTaker {
  readonly #connection: Connection;
  readonly #known: KnownBuckets;
  readonly #writer: BucketWriter;
  readonly #splitter: Splitter;
  readonly #policies: CurrentPolicies;
  /** Which shard is home: this modulo the count. */
  readonly #homeNumber: number;
  readonly #homesUnderWay = new Map<string, Promise<void>>();

  constructor(options: {
    readonly connection: Connection;
    readonly known: KnownBuckets;
    readonly writer: BucketWriter;
    readonly splitter: Splitter;
    readonly policies: CurrentPolicies;
    readonly homeNumber: number;
  }) {
    this.#connection = options.connection;
    this.#known = options.known;
    this.#writer = options.writer;
    this.#splitter = options.splitter;
    this.#policies = options.policies;
    this.#homeNumber = options.homeNumber;
  }

  /** One round over the shards: takes all that a charge wants, or nothing. */
  async takeOnce(wanted: WantedCharge, attempt: TakeAttempt): Promise<Taken | Refused | Undecided> {
    if (attempt.wantsHome) await this.#ensureHomeShard(wanted.key);
    attempt.wantsHome = false;
    let charge = wanted;
    let tries = 0;
    for (const { key } of this.#holders(charge, attempt)) {
      const outcome = await takeFromShard(charge, key, attempt.requests, {
        writer: this.#writer,
        chooser: this.#policies,
      });
      if (outcome.kind === "taken") return outcome;
      if (outcome.kind === "throttled") attempt.throttled.set(key.text, outcome.error);
      else charge = outcome.charge;
      if (++tries === MAX_TRIES) break;
    }
    return this.#takeFromAll(charge, attempt);
  }

  /** Decides with all shards, as they were read since the call began. */
  async #takeFromAll(
    wanted: WantedCharge,
    { begun, requests, throttled }: TakeAttempt,
  ): Promise<Taken | Refused | Undecided> {
    let known = this.#known.known(wanted.key);
    if (!known.isWhole || (known.seenAt?.order ?? 0) < begun)
      known = await this.#known.readAll(wanted.key);
    const charge = { ...wanted, policy: await this.#policies.onAll(wanted, known.shards) };
    const nowMs = wholeMs(this.#connection.clock);
    const free = known.shards.filter(({ key }) => !throttled.has(key.text));
    if (!known.isWhole) return { kind: "undecided", charge };
    if (!existAndFit(charge, known.shards, nowMs)) return { kind: "refused", atMs: nowMs, charge };
    if (free.some(({ image }) => fitsShard(charge, image, nowMs)))
      return { kind: "undecided", charge };
    if (!existAndFit(charge, free, nowMs)) throw [...throttled.values()][0]!;
    const gathered = await this.#gather(charge, free, { nowMs, requests });
    if (gathered !== undefined) return gathered;
    await this.#known.readAll(charge.key);
    return { kind: "undecided", charge };
  }

  /**
   * Finds out whether the home shard exists, and splits it off if not: once for all calls that want
   * it at the same time.
   */
  async #ensureHomeShard(key: BucketKey): Promise<void> {
    const { count, shards } = this.#known.known(key);
    const home = this.#homeNumber % count;
    if (shards.some(({ image }) => image.shard === home)) return;
    const underWay =
      this.#homesUnderWay.get(key.text) ??
      this.#createHomeShard(key, home).finally(() => this.#homesUnderWay.delete(key.text));
    this.#homesUnderWay.set(key.text, underWay);
    await underWay;
  }

  async #createHomeShard(key: BucketKey, home: number): Promise<void> {
    if (!this.#known.known(key).isWhole) await this.#known.readAll(key);
    try {
      await this.#splitter.create(key, home);
    } catch (error) {
      // The owner of the home shard's class is throttled, so it cannot be split now. The call can
      // still take what is there, or take elsewhere.
      if (!(error instanceof TableUnavailable && !error.ambiguous)) throw error;
    }
  }

  /**
   * The shards that hold the whole charge alone, as far as is known, beginning at home. Each is
   * examined only when the caller asks for it.
   */
  *#holders(charge: WantedCharge, { throttled }: TakeAttempt): Generator<KnownShard> {
    const known = this.#known.known(charge.key);
    const { count, shards } = known;
    const nowMs = wholeMs(this.#connection.clock);
    if (!mayFit(charge, known, nowMs)) return;
    const home = Math.max(
      0,
      shards.findIndex(({ image }) => image.shard >= this.#homeNumber % count),
    );
    for (const shard of [...shards.slice(home), ...shards.slice(0, home)])
      if (!throttled.has(shard.key.text) && fitsShard(charge, shard.image, nowMs)) yield shard;
  }

  /** Undefined when another process was faster. */
  async #gather(
    charge: WantedCharge,
    shards: readonly KnownShard[],
    options: { readonly nowMs: number; readonly requests: number },
  ): Promise<Taken | undefined> {
    const parts = gather(charge, shards, options);
    const { applied } = await this.#connection.transact(parts.map(({ write }) => write));
    if (!applied) return undefined;
    for (const { shard } of parts) this.#known.outdate(shard.key);
    const { policy } = charge;
    return {
      kind: "taken",
      parts: parts.map(({ shard: { key, image }, costs }, index) => ({
        key,
        entityId: key.entityId,
        resource: key.resource,
        amounts: costs,
        policy,
        requests: index === 0 ? options.requests : 0,
        incarnation: {
          creation: image.creation,
          divisor: image.divisor,
          splitAtMs: image.splitAtMs,
          expiredBySeconds: image.expiresAtSeconds,
        },
      })),
    };
  }
}

/**
 * Whether shards are left and together hold the charge; `fitsTogether` takes none for a new, full
 * bucket.
 */
function existAndFit(charge: WantedCharge, shards: readonly KnownShard[], nowMs: number): boolean {
  return shards.length > 0 && fitsTogether(charge, shards, nowMs);
}
