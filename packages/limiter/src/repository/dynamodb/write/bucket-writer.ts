/*
 * One write to one shard, for a batch of operations (see group-commit.ts), repeated until it is
 * decided.
 *
 *   image ──▶ decide ──▶ no member fits: refused, if need be after a fence
 *     ▲         │
 *     │         └──▶ send ──▶ applied ──▶ its members are done; those that did not fit are refused
 *     │                ├───▶ condition failed: the reply carries the item ──┐
 *     │                ├───▶ throttled: pause, the same again               │
 *     │                └───▶ no answer: the same again, with the same id    │
 *     └─────────────────────────────────────────────────────────────────────┘
 *       at most MAX_OVERTAKEN times; then acquires end as contended
 *
 * Writes of one process to one shard go one after another: they would only fail each other's
 * conditions. The writer keeps a `ShardWrites` for each shard, and it alone changes that. What
 * became of writes that got no answer, and of their members, is in write-outcomes.ts.
 *
 * A batch that was overtaken by a refill is decided as of that refill, not as of now: it takes what
 * the other has left, which needs no refill and no lock, and what did not fit then is refused.
 * Otherwise every process that lost a race for the last token would earn the next one during
 * the round trip and lose the race for that too, until its calls count as contended: 644 calls in 5
 * s, of 8 processes that asked for more than a bucket of 200 a second gives. One that was overtaken
 * and still needs the next token waits for the next tick, when one refill serves all.
 */
import { listWindowEnds } from "../../../core/bucket/bucket.ts";
import { GroupCommit } from "../../group-commit.ts";
import { wholeMs } from "../../system-clock.ts";
import type { BucketImage } from "../items/bucket-item.ts";
import type { BucketKey } from "../items/bucket-key.ts";
import { TableUnavailable } from "../table/table-errors.ts";
import type { Connection } from "../table/connection.ts";
import type { SharedRequests } from "../table/shared-requests.ts";
import type { Expiring } from "../cache/expiring.ts";
import type { BucketEntry, KnownBuckets } from "../cache/known-buckets.ts";
import type { PolicyResolver } from "../cache/policy-resolver.ts";
import { ENDS_LEASE, UNDER_POLICY } from "./batch-decision.ts";
import {
  refuse,
  rejectContended,
  type BatchMember,
  selectUnwritten,
  type Work,
} from "./member-outcomes.ts";
import type { OperationIds } from "./operation-ids.ts";
import { pause } from "../table/retry.ts";
import { nextTickMs } from "./tick.ts";
import type { WriteIntent, WriteOutcome } from "./write-intent.ts";
import type { WriteCounts, WriteObserver } from "./write-observer.ts";
import { WriteOutcomes } from "./write-outcomes.ts";
import {
  buildAppliedOutcome,
  countCarried,
  imageAfter,
  planWrite,
  type Plan,
  type PlannedWrite,
} from "./write-plan.ts";

/** Failed conditions after which a call ends as contended; the end of a lease goes on. */
export const MAX_OVERTAKEN = 12;

/** What the writer keeps for one shard. */
interface ShardWrites {
  /** Operations that are queued or being written. */
  readonly queue: GroupCommit<Work, WriteOutcome>;
  readonly outcomes: WriteOutcomes;
  /** What the clock is rounded to for this shard; see tick.ts. */
  tickMs: number;
  /** Write units of failed conditions since the last write that succeeded. */
  failedUnits: number;
}

/** A batch that is being written. */
interface Batch {
  readonly key: BucketKey;
  readonly entry: BucketEntry;
  readonly shardWrites: ShardWrites;
  readonly members: readonly BatchMember[];
  /** When the batch began: all its members were there by then. */
  readonly begunMs: number;
}

/** A plan, the members that it is for, and when the acquires among them had to fit. */
interface Planned {
  readonly carried: readonly BatchMember[];
  readonly plan: Plan;
  readonly asOfMs: number;
}

/** An attempt at a write, and whether one before it may have been carried out. */
interface Sending {
  readonly write: PlannedWrite;
  readonly planned: Planned;
  readonly attempt: number;
  readonly ambiguous: boolean;
}

/** Writes buckets. */
export class BucketWriter {
  readonly #connection: Connection;
  readonly #requests: SharedRequests;
  readonly #known: KnownBuckets;
  readonly #active: Expiring<string>;
  readonly #ids: OperationIds;
  readonly #resolver: Pick<PolicyResolver, "resolveFor">;
  readonly #ttlMultiplier: number;
  readonly #largestTickMs: number;
  readonly #observer: WriteObserver;
  readonly #counts: WriteCounts;
  readonly #shardWrites = new WeakMap<BucketEntry, ShardWrites>();

  constructor(options: {
    readonly connection: Connection;
    readonly requests: SharedRequests;
    readonly known: KnownBuckets;
    /** The names of active namespaces, by id; reading another one throws. */
    readonly active: Expiring<string>;
    readonly ids: OperationIds;
    readonly resolver: Pick<PolicyResolver, "resolveFor">;
    readonly ttlMultiplier: number;
    readonly largestTickMs: number;
    readonly observer: WriteObserver;
    readonly counts: WriteCounts;
  }) {
    this.#connection = options.connection;
    this.#requests = options.requests;
    this.#known = options.known;
    this.#active = options.active;
    this.#ids = options.ids;
    this.#resolver = options.resolver;
    this.#ttlMultiplier = options.ttlMultiplier;
    this.#largestTickMs = options.largestTickMs;
    this.#observer = options.observer;
    this.#counts = options.counts;
  }

  /**
   * Carries an intent out, together with those that arrive while the write before it is under way.
   */
  write(key: BucketKey, intent: WriteIntent): Promise<WriteOutcome> {
    const entry = this.#known.entry(key);
    const shardWrites = this.#shardWrites.get(entry) ?? this.#newShardWrites(key, entry);
    this.#known.pin(entry);
    const operation = intent.operation ?? { history: undefined };
    return shardWrites.queue.submit({ intent, operation, policy: undefined }, (members) =>
      this.#writeBatch({
        key,
        entry,
        shardWrites,
        members,
        begunMs: wholeMs(this.#connection.clock),
      }),
    );
  }

  #newShardWrites(key: BucketKey, entry: BucketEntry): ShardWrites {
    const queue = new GroupCommit<Work, WriteOutcome>(() => this.#known.unpin(entry));
    const outcomes = new WriteOutcomes(key, { ids: this.#ids, known: this.#known });
    const shardWrites: ShardWrites = { queue, outcomes, tickMs: 1, failedUnits: 0 };
    this.#shardWrites.set(entry, shardWrites);
    return shardWrites;
  }

  async #writeBatch(batch: Batch): Promise<void> {
    const { key, entry, shardWrites, members } = batch;
    let carried: readonly BatchMember[] = [];
    for (let decision = 1; decision <= MAX_OVERTAKEN; decision += 1) {
      const { image } = entry;
      const reading = this.#resolvePolicies(key, members, image);
      if (reading !== undefined) await reading;
      const learning = shardWrites.outcomes.learn(members, image);
      const open = learning instanceof Promise ? await learning : learning;
      if (open.length === 0) return;
      carried =
        open.length === 1 ? open : open.slice(0, countCarried(open.map((member) => member.work)));
      const planned = this.#plan(batch, carried, image);
      if (decision > 1 && planned.plan.tickInMs !== undefined) {
        await this.#connection.clock.sleep(planned.plan.tickInMs);
        continue;
      }
      const write =
        planned.plan.write ??
        shardWrites.outcomes.fence(carried, image, {
          nowMs: wholeMs(this.#connection.clock),
          writeUnits: shardWrites.failedUnits + 1,
        });
      // The purge of a namespace deletes its buckets, so a write to one finds out; one that creates
      // a bucket must ask. What a call read before it met a bucket that is gone since is too old.
      if (write?.item !== undefined) {
        const isRead = decision === 1 && carried.every(({ work }) => work.intent.isNamespaceRead);
        if (!isRead) await this.#active.renew(key.namespaceId);
      }
      const first = write && { write, planned, attempt: 1, ambiguous: false };
      if (first === undefined || (await this.#send(batch, first)))
        return this.#conclude(batch, planned);
    }
    rejectContended(key, carried, MAX_OVERTAKEN);
  }

  /**
   * Resolves the policy of each open member, given the image; returns what to wait for, if there is
   * anything. A policy that cannot be read rejects its member, and no other.
   */
  #resolvePolicies(
    key: BucketKey,
    members: readonly BatchMember[],
    image: BucketImage | undefined,
  ): Promise<unknown> | undefined {
    let readings: Promise<unknown>[] | undefined;
    for (const member of members) {
      if (!member.isOpen) continue;
      const { work } = member;
      const { intent } = work;
      // The end of a lease keeps to what the lease took from.
      const policy = ENDS_LEASE.has(intent.kind)
        ? intent.policy
        : this.#resolver.resolveFor(work.policy ?? intent.policy, key, image);
      if (!(policy instanceof Promise)) work.policy = policy;
      else
        (readings ??= []).push(
          policy.then(
            (read) => void (work.policy = read),
            (error: unknown) => member.reject(error),
          ),
        );
    }
    return readings && Promise.all(readings);
  }

  /**
   * The image is the one that the policies belong to: a newer one may show limits that they must
   * not be written over.
   */
  #plan(
    { key, shardWrites, begunMs }: Batch,
    carried: readonly BatchMember[],
    image: BucketImage | undefined,
  ): Planned {
    const nowMs = wholeMs(this.#connection.clock);
    const refilledAtMs = image?.bucket.refilledAtMs ?? nowMs;
    const asOfMs = refilledAtMs >= begunMs && refilledAtMs <= nowMs ? refilledAtMs : nowMs;
    // What is owed comes first, and decides nothing for others.
    const decisive = carried.find(({ work }) => UNDER_POLICY.has(work.intent.kind));
    const plan = planWrite({
      key,
      intents: carried.map(({ work }) =>
        work.operation.history ? selectUnwritten(work) : work.intent,
      ),
      policy: (decisive ?? carried.at(-1)!).work.policy!,
      image,
      nowMs,
      asOfMs,
      tickMs: shardWrites.tickMs,
      outcomes: shardWrites.outcomes,
      writeUnits: shardWrites.failedUnits + 1,
      ttlMultiplier: this.#ttlMultiplier,
    });
    return { carried, plan, asOfMs };
  }

  /**
   * Gives the members of a plan that was carried out their outcome. One without a verdict stays
   * open, and goes with the next batch.
   */
  #conclude({ key, entry }: Batch, { carried, plan, asOfMs }: Planned): void {
    const { verdicts, write } = plan;
    let written = 0;
    for (const [index, verdict] of verdicts.entries()) {
      const member = carried[index]!;
      const policy = member.work.policy!;
      if (verdict === "written") {
        written += 1;
        member.resolve(buildAppliedOutcome(write?.incarnation, entry.image, policy));
      } else if (verdict !== "refused") member.resolve({ kind: verdict });
      else refuse(key, member, { kind: "refused", atMs: asOfMs, policy });
    }
    if (write === undefined) return;
    this.#counts.batches += 1;
    this.#counts.batchedOperations += written;
  }

  /**
   * Returns whether the write was applied. Otherwise its condition failed, or the outcome is
   * unknown, which the members' histories show.
   */
  #send(batch: Batch, sending: Sending): Promise<boolean> {
    const { write, attempt } = sending;
    const sent = this.#known.stampRequest();
    return this.#requests.send(write.request, { isRetry: attempt > 1 }).then(
      (reply) => {
        const image = imageAfter(reply, write, batch.entry.image);
        if (reply.applied) noteWindows(write, image);
        const units = reply.applied ? batch.shardWrites.failedUnits + 1 : 0;
        this.#known.remember(batch.key, image, sent, units);
        this.#count(batch.shardWrites, write, reply.applied);
        if (image !== undefined) this.#observer.noteWrite(batch.key, image, sent.ms);
        if (sending.ambiguous && !reply.applied) noteUnanswered(batch.shardWrites, sending);
        return reply.applied;
      },
      (error: unknown) => this.#sendAgain(batch, sending, error),
    );
  }

  /** What follows an error: another attempt, or the end of them. */
  async #sendAgain(batch: Batch, failed: Sending, error: unknown): Promise<boolean> {
    if (!(error instanceof TableUnavailable)) throw error;
    const [{ key, shardWrites }, { write, attempt }] = [batch, failed];
    const ambiguous = failed.ambiguous || error.ambiguous;
    const sending = { ...failed, ambiguous, attempt: attempt + 1 };
    if (error.throttled && !error.tableWide) this.#observer.noteThrottled(key, error.keysThrottled);
    const mayRepeat = !ambiguous || write.mark !== undefined;
    if (attempt >= this.#connection.maxAttempts || !mayRepeat) {
      if (ambiguous) noteUnanswered(shardWrites, sending);
      if (mayRepeat) throw error.ambiguous === ambiguous ? error : error.withFacts({ ambiguous });
      return false;
    }
    this.#connection.countRetry();
    if (!error.timedOut) await pause(attempt, this.#connection.retryOptions());
    return this.#send(batch, sending);
  }

  #count(shardWrites: ShardWrites, write: PlannedWrite, isApplied: boolean): void {
    if (isApplied) {
      this.#counts.writes += 1;
      shardWrites.failedUnits = 0;
      shardWrites.outcomes.concludeApplied(write);
      // A process that is alone stays at a tick of 1.
      if (shardWrites.tickMs === 1) return;
    } else {
      this.#counts.failedConditions += 1;
      shardWrites.failedUnits += 1;
    }
    shardWrites.tickMs = nextTickMs(shardWrites.tickMs, {
      applied: isApplied,
      largestMs: this.#largestTickMs,
    });
  }
}

/** Notes which windows a write charged, as its own answer shows them. */
function noteWindows(write: PlannedWrite, image: BucketImage | undefined): void {
  if (write.incarnation.windowEnds === undefined || image === undefined) return;
  write.incarnation = { ...write.incarnation, windowEnds: listWindowEnds(image.bucket) };
}

/** Notes a write whose outcome is open, for the members that it carried. */
function noteUnanswered({ outcomes }: ShardWrites, { write, planned }: Sending): void {
  const { verdicts } = planned.plan;
  const isWritten = (_: unknown, index: number): boolean => verdicts[index] === "written";
  outcomes.concludeUnanswered(write, planned.carried.filter(isWritten));
}
