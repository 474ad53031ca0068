/*
 * The buckets of one namespace on DynamoDB. An acquire goes through named phases:
 *
 *   prepare   which buckets, under which policies: from memory, or in one batch read of all that is
 *             missing (prepare.ts)
 *   fit       decide by the images in memory (fit.ts). What may fit is taken. What cannot fit is
 *             refused if the images are fresh enough; otherwise all of them are read, once
 *   take      from one bucket in one conditional write (take.ts); from its shards if it has several
 *             (take-from-shards.ts); from several buckets all or none (take-from-several.ts)
 *   refuse    with the state of every limit (refusal.ts); when the images have changed meanwhile,
 *             decide again
 *
 * The end of a lease, and a charge without one, are in lease-end.ts.
 *
 * The bound of one acquire: at most MAX_DECISIONS decisions and, for each of its buckets,
 * MAX_TAKE_ROUNDS rounds of takes over all of them, and so no more than `mostRequests` requests
 * (bounds.ts), each attempted at most `maxAttempts` times and ended after `requestTimeoutMs`.
 * Waiting for a write, a gather or a read of other calls of this process is not a round, and sends
 * nothing.
 */
import type { LimitStatus } from "../../core/bucket/decision.ts";
import type {
  ConsumeOutcome,
  ConsumeRequest,
  MaybePromise,
  Receipt,
  ResourceAmounts,
} from "../port.ts";
import type { BucketStore, Keyed, KeyPage, PolicySource, StoredBucket } from "../store.ts";
import type { Clock, Random } from "../system-clock.ts";
import { BucketWriter } from "./write/bucket-writer.ts";
import type { BucketKey } from "./items/bucket-key.ts";
import type { BucketCounts } from "./write/write-observer.ts";
import {
  buildContentionError,
  MAX_DECISIONS,
  MAX_TAKE_ROUNDS,
  type OverloadGuard,
} from "./acquire/bounds.ts";
import { afterLastEnd, mayFit } from "./acquire/fit.ts";
import { ClaimPreparation, type KnownEntity } from "./acquire/prepare.ts";
import { noteThrottled, takeFromShard, type TakeAttempt } from "./acquire/take.ts";
import type { Connection } from "./table/connection.ts";
import type { Expiring } from "./cache/expiring.ts";
import { KnownBuckets, type RequestStamp } from "./cache/known-buckets.ts";
import { PolicyResolver } from "./cache/policy-resolver.ts";
import type { ItemReader } from "./table/item-reader.ts";
import type { SharedRequests } from "./table/shared-requests.ts";
import { LeaseEnds, type DynamoReceipt } from "./acquire/lease-end.ts";
import { BucketList } from "./acquire/list-buckets.ts";
import type { OperationIds } from "./write/operation-ids.ts";
import type { Merger } from "./shards/merger.ts";
import { createResharding } from "./shards/create-resharding.ts";
import type { ReceiptPart, Refused, Taken, Undecided } from "./acquire/receipt.ts";
import { Refusals, unlessUnavailable } from "./acquire/refusal.ts";
import type { Splitter } from "./shards/splitter.ts";
import { ShardTaker } from "./acquire/take-from-shards.ts";
import { UndecidedCalls } from "./cache/undecided-calls.ts";
import { takeFromSeveral, type SeveralRefused } from "./acquire/take-from-several.ts";
import type { WantedClaim } from "./acquire/wanted-claim.ts";

/** What the buckets of one namespace are made of. */
export interface BucketsOptions {
  readonly namespaceId: string;
  readonly connection: Connection;
  readonly requests: SharedRequests;
  readonly reader: ItemReader;
  readonly known: KnownBuckets;
  readonly ids: OperationIds;
  readonly policies: PolicySource;
  /** How old limits from the defaults of another process may be and still hold. */
  readonly configTtlMs: number;
  readonly entities: Expiring<KnownEntity>;
  readonly overload: OverloadGuard;
  readonly counts: BucketCounts;
  /** The names of active namespaces, by id. */
  readonly active: Expiring<string>;
  /** How old an image may be and still refuse a call without a read. */
  readonly refusalMemoryMs: number;
  readonly ttlMultiplier: number;
  readonly largestTickMs: number;
  readonly maxShards: number;
  /**
   * Which shard is home: this modulo the count.
   * @default random, so that processes spread over the shards
   */
  readonly homeNumber?: number | undefined;
}

/** A call, and what it takes from. */
interface Call {
  readonly request: ConsumeRequest;
  readonly claims: readonly WantedClaim[];
  /** The receipt that it adds to. */
  readonly extending: Receipt | undefined;
  /** Its place in the order of requests: higher ones were sent after the call began. */
  readonly begun: number;
  readonly begunMs: number;
  /** Decisions, this one included. */
  readonly decisions: number;
  readonly rounds: TakeRounds;
}

/** Buckets of one namespace on DynamoDB. */
export class DynamoBuckets implements BucketStore {
  readonly #overload: OverloadGuard;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #undecided = new UndecidedCalls();
  readonly #known: KnownBuckets;
  readonly #namespaceId: string;
  readonly #active: Expiring<string>;
  readonly #resolver: PolicyResolver;
  readonly #preparation: ClaimPreparation;
  readonly #writer: BucketWriter;
  readonly #shardTaker: ShardTaker;
  readonly #splitter: Splitter;
  readonly #merger: Merger;
  readonly #refusals: Refusals;
  readonly #leaseEnds: LeaseEnds;
  readonly #list: BucketList;

  constructor(options: BucketsOptions) {
    const { connection, known, namespaceId } = options;
    const { clock } = connection;
    this.#overload = options.overload;
    this.#clock = clock;
    this.#random = connection.random;
    this.#known = known;
    this.#namespaceId = namespaceId;
    this.#active = options.active;
    const isYoung = (setAtMs: number): boolean => clock.now() - setAtMs < options.configTtlMs;
    const resolver = new PolicyResolver(options.policies, known, isYoung);
    this.#resolver = resolver;
    const undecided = this.#undecided;
    this.#preparation = new ClaimPreparation({ ...options, resolver, undecided });
    const { splitter, merger, mergeMonitor, pressure } = createResharding({
      ...options,
      refreshPolicy: ({ entityId, resource }) => options.policies.refresh(entityId, resource),
    });
    this.#splitter = splitter;
    this.#merger = merger;
    const writer = new BucketWriter({ ...options, resolver, observer: pressure });
    this.#writer = writer;
    const homeNumber = options.homeNumber ?? Math.floor(connection.random() * 2 ** 16);
    this.#shardTaker = new ShardTaker({
      connection,
      known,
      writer,
      splitter,
      resolver,
      mergeMonitor,
      homeNumber,
      largestTickMs: options.largestTickMs,
    });
    this.#refusals = new Refusals({ ...options, writer, clock });
    this.#leaseEnds = new LeaseEnds({ ...options, writer, resolver, homeNumber, clock });
    this.#list = new BucketList(connection, namespaceId);
  }

  consume(request: ConsumeRequest, extending?: Receipt): MaybePromise<ConsumeOutcome> {
    this.#overload.check();
    const begun = this.#known.stampRequest();
    const shortage = this.#preparation.shortage(request, begun.ms);
    if (shortage !== undefined) return this.#refusals.fromMemory(shortage, begun.ms);
    const claims = this.#preparation.prepare(request);
    return this.#overload.count(
      claims instanceof Promise
        ? claims.then((read) => this.#decide(newCall(request, read, extending, begun)))
        : this.#decide(newCall(request, claims, extending, begun)),
    );
  }

  charge(request: ConsumeRequest): MaybePromise<void> {
    this.#overload.check();
    const claims = Promise.resolve(this.#preparation.prepare(request));
    return this.#overload.count(claims.then((read) => this.#leaseEnds.charge(read)));
  }

  settle(receipt: Receipt, deltas: readonly ResourceAmounts[]): Promise<void> {
    return this.#leaseEnds.settle(receipt as DynamoReceipt, deltas);
  }

  giveBack(receipt: Receipt): Promise<void> {
    return this.#leaseEnds.giveBack(receipt as DynamoReceipt);
  }

  async read(request: ConsumeRequest): Promise<readonly LimitStatus[]> {
    const { order } = this.#known.stampRequest();
    const claims = await this.#preparation.prepare(request);
    const isRead = ({ key }: WantedClaim): boolean => {
      const { isWhole, seenAt } = this.#known.get(key);
      return isWhole && seenAt !== undefined && seenAt.order >= order;
    };
    const current = claims.every(isRead) ? claims : await this.#readAll(claims);
    return this.#refusals.statuses(current, this.#nowMs());
  }

  remembered(receipt: Receipt): readonly LimitStatus[] {
    return this.#refusals.remembered((receipt as DynamoReceipt).parts, this.#nowMs());
  }

  /** Splits a bucket into at least `shards` shards; returns the actual count. */
  split(entityId: string, resource: string, shards: number): Promise<number> {
    return this.#splitter.splitInto(this.#preparation.findKey(entityId, resource), shards);
  }

  /** Merges a bucket into at most `shards` shards; returns the actual count. */
  merge(entityId: string, resource: string, shards: number): Promise<number> {
    return this.#merger.mergeInto(this.#preparation.findKey(entityId, resource), shards);
  }

  ofEntity(entityId: string, resource: string | undefined): Promise<readonly StoredBucket[]> {
    return this.#list.ofEntity(entityId, resource);
  }

  ofResource(resource: string): Promise<readonly StoredBucket[]> {
    return this.#list.ofResource(resource);
  }

  async get(entityId: string, resource: string, shard: number): Promise<StoredBucket | undefined> {
    const active = this.#active.get(this.#namespaceId);
    const [bucket] = await Promise.all([this.#list.get({ entityId, resource, shard }), active]);
    return bucket;
  }

  ofEntities(
    entityIds: readonly string[],
    resource: string | undefined,
  ): Promise<readonly StoredBucket[]> {
    return this.#list.ofEntities(entityIds, resource);
  }

  ofResourcePage(resource: string, page: KeyPage): Promise<Keyed<StoredBucket>> {
    return this.#list.ofResourcePage(resource, page);
  }

  /** Returns at once when memory alone refuses the call. */
  #decide(call: Call, isRead = false): MaybePromise<ConsumeOutcome> {
    const [atMs, nowMs] = this.#decisionTimes(call);
    if (this.#mayFit(call, atMs)) return this.#take(call);
    if (this.#refusals.mayRefuse(call)) return this.#refuse(call, atMs, nowMs);
    return isRead ? this.#decideAgain(call) : this.#decideFromTable(call);
  }

  async #decideFromTable(call: Call): Promise<ConsumeOutcome> {
    return this.#decide({ ...call, claims: await this.#readAll(call.claims) }, true);
  }

  /**
   * As of when a call is decided, and what time it is. A call that has lost a race is decided as of
   * when it started, as in `TakeAttempt`: tokens given back since count, tokens earned do not.
   */
  #decisionTimes({ claims, decisions, begunMs }: Call): readonly [atMs: number, nowMs: number] {
    const nowMs = this.#nowMs();
    if (decisions === 1) return [nowMs, nowMs];
    const shards = claims.flatMap(({ key }) => this.#known.get(key).shards);
    return [afterLastEnd(shards, Math.min(begunMs, nowMs), nowMs), nowMs];
  }

  #decideAgain(call: Call): MaybePromise<ConsumeOutcome> {
    if (call.decisions === MAX_DECISIONS) throw buildContentionError(call.claims[0]!.key);
    return this.#decide({ ...call, decisions: call.decisions + 1 });
  }

  /** Whether every bucket holds its part, in one shard or in all together, as far as is known. */
  #mayFit({ claims }: Call, nowMs: number): boolean {
    return claims.every((claim) => mayFit(claim, this.#known.get(claim.key), nowMs));
  }

  #take(call: Call): Promise<ConsumeOutcome> {
    const { claims } = call;
    const taking =
      claims.length === 1 ? this.#takeFromBucket(claims[0]!, call) : this.#takeFromSeveral(call);
    return taking.then((outcome) =>
      outcome.kind === "taken" ? toGranted(call, outcome) : this.#notGranted(call, outcome),
    );
  }

  #takeFromSeveral(call: Call): Promise<Taken | SeveralRefused> {
    const steps = {
      take: (claim: WantedClaim) => this.#takeFromBucket(claim, call),
      // When the store is gone, this call's own cost stays charged until it refills.
      giveBack: (part: ReceiptPart) => unlessUnavailable(this.#leaseEnds.undo(part)),
    };
    return this.#undecided.note(call.claims, takeFromSeveral(call.claims, steps));
  }

  #notGranted(call: Call, outcome: Refused | SeveralRefused): MaybePromise<ConsumeOutcome> {
    const claims = "claims" in outcome ? outcome.claims : [outcome.claim];
    const refused = { ...call, claims };
    // The refusal may come from the answer to a write that was sent before this call began.
    return this.#refusals.mayRefuse(refused)
      ? this.#refuse(refused, outcome.atMs, this.#nowMs())
      : this.#decideAgain(refused);
  }

  async #takeFromBucket(wanted: WantedClaim, call: Call): Promise<Taken | Refused> {
    const attempt: TakeAttempt = {
      requests: call.extending === undefined ? 1 : 0,
      undone: call.claims.length > 1 ? 0 : undefined,
      begun: call.begun,
      begunMs: call.begunMs,
      throttled: undefined,
      wantsHome: true,
      isLate: call.decisions > 1,
    };
    for (let claim = wanted; ;) {
      const { key } = claim;
      call.rounds.begin(key);
      const isSingle = this.#known.getCount(key) === 1;
      let outcome = isSingle
        ? await takeFromShard(claim, key, attempt, this.#writer)
        : await this.#shardTaker.takeOnce(claim, attempt);
      if (isSingle && outcome.kind !== "taken") outcome = await this.#notTaken(outcome, attempt);
      if (outcome.kind !== "undecided") return outcome;
      ({ claim } = outcome);
    }
  }

  /**
   * What follows when a bucket with one shard did not give what is wanted. Undecided when it turned
   * out to have more: then shard 0 alone does not decide.
   */
  async #notTaken(
    outcome: Refused | Undecided,
    attempt: TakeAttempt,
  ): Promise<Refused | Undecided> {
    const { claim } = outcome;
    const { key } = claim;
    const throttled = outcome.kind === "undecided" ? outcome.throttled : undefined;
    if (throttled !== undefined) noteThrottled(attempt, key, throttled);
    // Reads are not throttled by writes: if the bucket has other shards, they show it.
    const { count } =
      throttled === undefined ? this.#known.get(key) : await this.#known.readAll(key);
    if (count > 1) return { kind: "undecided", claim };
    if (throttled !== undefined) throw throttled;
    return outcome.kind === "refused" ? outcome : { kind: "refused", atMs: this.#nowMs(), claim };
  }

  /** Refuses, unless what a bucket is short of may still be given back. */
  #refuse(call: Call, atMs: number, nowMs: number): MaybePromise<ConsumeOutcome> {
    if (!this.#refusals.isSure(call, atMs, this.#undecided)) return this.#lookAgain(call, atMs);
    return this.#refusals.refuse(call, atMs, nowMs) ?? this.#decideAgain(call);
  }

  /**
   * Waits until the calls that were taking from the same buckets are decided: those of this process
   * say so themselves; others get the time that a few requests take. If nothing was undone since,
   * all of them keep what they took, and the call is refused by it.
   */
  async #lookAgain(call: Call, atMs: number): Promise<ConsumeOutcome> {
    const isShort = (claim: WantedClaim): boolean =>
      !mayFit(claim, this.#known.get(claim.key), atMs);
    const short = call.claims.filter(isShort);
    const before = short.map(({ key }) => this.#known.get(key));
    const isSureOfOthers = this.#refusals.isSure(call, atMs);
    const own = this.#undecided.wait(short);
    let { claims } = call;
    if (!isSureOfOthers) {
      await this.#clock.sleep(this.#known.decisionMs * (1 + this.#random()));
      const read = await this.#readAll(short);
      claims = claims.map((claim) => read[short.indexOf(claim)] ?? claim);
    }
    await own;
    const current = { ...call, claims };
    if (short.some(({ key }, index) => !this.#known.isSame(key, before[index]!)))
      return this.#decideAgain(current);
    if (!isSureOfOthers)
      for (const [index, { key }] of short.entries()) this.#known.confirm(key, before[index]!);
    return this.#refusals.refuse(current, atMs, this.#nowMs()) ?? this.#decideAgain(current);
  }

  /** Reads all shards of all buckets; returns the claims with the policies that they show. */
  async #readAll(claims: readonly WantedClaim[]): Promise<readonly WantedClaim[]> {
    const known = await Promise.all(claims.map(({ key }) => this.#known.readAll(key)));
    const current: WantedClaim[] = [];
    for (const [index, claim] of claims.entries()) {
      const policy = await this.#resolver.resolveForAll(claim.policy, known[index]!.shards);
      current.push({ ...claim, policy });
    }
    return current;
  }

  #nowMs(): number {
    return Math.floor(this.#clock.now());
  }
}

/** Counts the rounds of takes that one acquire makes. */
class TakeRounds {
  #left: number;

  constructor(buckets: number) {
    this.#left = buckets * MAX_TAKE_ROUNDS;
  }

  /** Throws when there were too many. */
  begin(key: BucketKey): void {
    if (this.#left === 0) throw buildContentionError(key);
    this.#left -= 1;
  }
}

function newCall(
  request: ConsumeRequest,
  claims: readonly WantedClaim[],
  extending: Receipt | undefined,
  { order: begun, ms }: RequestStamp,
): Call {
  const rounds = new TakeRounds(claims.length);
  const begunMs = Math.floor(ms);
  return { request, claims, extending, begun, begunMs, decisions: 1, rounds };
}

function toGranted({ request, extending }: Call, { parts }: Taken): ConsumeOutcome {
  const receipt = (extending ?? { parts: [], ends: undefined }) as DynamoReceipt;
  receipt.parts.push(...parts);
  const policies = request.resources.map(
    ({ resource }) => parts.find((part) => part.resource === resource)!.policy,
  );
  return { granted: true, receipt, policies };
}
