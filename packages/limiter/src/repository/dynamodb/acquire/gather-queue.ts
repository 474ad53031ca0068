/*
 * Gathers of one process, one at a time for each bucket: two would be decided by the same images,
 * and one of them would be cancelled, at twice the price of an ordinary write for each shard.
 *
 *   call ──▶ waits while a gather is under way ──▶ the next gather carries all that wait
 *
 *   read all shards, unless that was done since all of them came ──▶ decide one after another
 *                      ├──▶ refused, by what the shards held as of the call's time
 *                      ├──▶ one shard holds it alone: another round
 *                      └──▶ one transaction for all that fit ──▶ taken, each with its own receipt
 *                               └──▶ another process was faster: read all, and decide again as of
 *                                    when the call started: refused, or another round; also those
 *                                    that did not fit after the others
 *
 * Every member gets an outcome or, if it has other limits, is among the first of the next gather.
 * A transaction that was cancelled, or served few of those that wait, delays the next (`#pause`):
 * meanwhile the shards earn whole tokens, which need no transaction.
 */
import { GroupCommit, type Member } from "../../group-commit.ts";
import { wholeMs } from "../../system-clock.ts";
import type { BucketEntry, KnownBucket, KnownBuckets } from "../cache/known-buckets.ts";
import type { BucketKey } from "../items/bucket-key.ts";
import type { Connection } from "../table/connection.ts";
import type { MergeMonitor } from "../shards/merge-monitor.ts";
import { boundTickMs, nextTickMs } from "../write/tick.ts";
import { countCarried } from "../write/write-plan.ts";
import type { PolicyResolver } from "../cache/policy-resolver.ts";
import { afterLastEnd, fitsTogether } from "./fit.ts";
import { Gathering, type GatherVerdict } from "./gather.ts";
import type { Refused, Taken, Undecided } from "./receipt.ts";
import { asOfMs, type TakeAttempt } from "./take.ts";
import type { WantedClaim } from "./wanted-claim.ts";

interface Work {
  readonly claim: WantedClaim;
  readonly attempt: TakeAttempt;
}

type GatherOutcome = Taken | Refused | Undecided;
type GatherMember = Member<Work, GatherOutcome>;

/** A member of a gather, under the policy that all of its members have. */
interface Carried {
  readonly member: GatherMember;
  readonly claim: WantedClaim;
}

/** What is kept for the gathers from one bucket. */
interface GatherState {
  readonly queue: GroupCommit<Work, GatherOutcome>;
  /**
   * The least time between two transactions: it doubles when another process was faster, and
   * shrinks with every one that succeeds (see tick.ts).
   */
  tickMs: number;
  sentAtMs: number;
}

/** Gathers what no shard holds alone. */
export class GatherQueue {
  readonly #connection: Connection;
  readonly #known: KnownBuckets;
  readonly #resolver: PolicyResolver;
  readonly #mergeMonitor: Pick<MergeMonitor, "noteWrite">;
  readonly #largestTickMs: number;
  /** Keyed by the entry of shard 0. */
  readonly #states = new WeakMap<BucketEntry, GatherState>();

  constructor(options: {
    readonly connection: Connection;
    readonly known: KnownBuckets;
    readonly resolver: PolicyResolver;
    readonly mergeMonitor: Pick<MergeMonitor, "noteWrite">;
    readonly largestTickMs: number;
  }) {
    this.#connection = options.connection;
    this.#known = options.known;
    this.#resolver = options.resolver;
    this.#mergeMonitor = options.mergeMonitor;
    this.#largestTickMs = options.largestTickMs;
  }

  /** Decides a call with all shards of its bucket, as they were read since it began. */
  take(claim: WantedClaim, attempt: TakeAttempt): Promise<GatherOutcome> {
    const { key } = claim;
    const entry = this.#known.entry(key);
    const state = this.#states.get(entry) ?? { queue: new GroupCommit(), tickMs: 1, sentAtMs: 0 };
    this.#states.set(entry, state);
    return state.queue.submit({ claim, attempt }, (members) => this.#gather(key, state, members));
  }

  async #gather(
    key: BucketKey,
    state: GatherState,
    members: readonly GatherMember[],
  ): Promise<void> {
    await this.#pause(key, state);
    const known = await this.#readSince(key, members);
    const carried = await this.#selectCarried(members, known);
    if (carried.length === 0) return;
    if (!known.isWhole) return leaveUndecided(carried);
    const nowMs = wholeMs(this.#connection.clock);
    const gathering = new Gathering(carried[0]!.claim, known.shards, nowMs);
    const [gathered, left] = [new Map<Carried, Taken>(), [] as Carried[]];
    for (const each of carried) {
      const { claim, member } = each;
      const { requests, undone, throttled } = member.work.attempt;
      const atMs = afterLastEnd(known.shards, asOfMs(member.work.attempt, nowMs), nowMs);
      const isBarred = ({ key: { text } }: { readonly key: BucketKey }): boolean =>
        throttled?.has(text) === true;
      const verdict = gathering.decide({ claim, requests, undone, asOfMs: atMs, isBarred });
      if (verdict.kind === "gathered") gathered.set(each, { kind: "taken", parts: verdict.parts });
      else if (verdict.kind === "left") left.push(each);
      else conclude(each, verdict.kind, atMs);
    }
    if (gathered.size === 0) return this.#decideAgain(key, left);
    const writes = gathering.writes();
    state.sentAtMs = nowMs;
    const { applied } = await this.#connection.transact(writes);
    const isCostly = left.length > 0 && gathered.size < writes.length;
    const largestMs = this.#largestTickMs;
    state.tickMs = nextTickMs(state.tickMs, { applied: applied && !isCostly, largestMs });
    if (applied) {
      // Where shards are small, nothing else may ever be written to them.
      const { image, seenAt } = known.shards[0]!;
      this.#mergeMonitor.noteWrite(key, image, seenAt.ms);
      for (const [{ member }, taken] of gathered) {
        for (const { key: written, amounts } of taken.parts) this.#known.outdate(written, amounts);
        member.resolve(taken);
      }
    }
    await this.#decideAgain(key, applied ? left : [...gathered.keys(), ...left]);
  }

  /** Decides the others again, as of when they started: refused, or another round. */
  async #decideAgain(key: BucketKey, rest: readonly Carried[]): Promise<void> {
    if (rest.length === 0) return;
    const { shards, isWhole } = await this.#known.readAll(key);
    for (const each of rest) {
      const { attempt } = each.member.work;
      attempt.isLate = true;
      const nowMs = wholeMs(this.#connection.clock);
      const atMs = afterLastEnd(shards, asOfMs(attempt, nowMs), nowMs);
      const isRefused = isWhole && shards.length > 0 && !fitsTogether(each.claim, shards, atMs);
      conclude(each, isRefused ? "refused" : "alone", atMs);
    }
  }

  /** Waits until a tick has passed since the last transaction. */
  async #pause(key: BucketKey, { tickMs, sentAtMs }: GatherState): Promise<void> {
    const limits = this.#known.getImage(key)?.bucket.limits;
    if (tickMs === 1 || limits === undefined) return;
    const sinceMs = wholeMs(this.#connection.clock) - sentAtMs;
    const leftMs = boundTickMs(tickMs, limits) - sinceMs;
    if (sinceMs >= 0 && leftMs > 0) await this.#connection.clock.sleep(leftMs);
  }

  /** All shards, as they were requested since the last of these calls began. */
  async #readSince(key: BucketKey, members: readonly GatherMember[]): Promise<KnownBucket> {
    const known = this.#known.get(key);
    const begun = Math.max(...members.map(({ work }) => work.attempt.begun));
    const isRead = known.isWhole && (known.seenAt?.order ?? 0) >= begun;
    return isRead ? known : this.#known.readAll(key);
  }

  /**
   * The members that one transaction can carry, under the policy that the shards show to be
   * current. The others stay open, and go first into the next. A policy that cannot be read rejects
   * its member, and no other.
   */
  async #selectCarried(
    members: readonly GatherMember[],
    { shards }: KnownBucket,
  ): Promise<readonly Carried[]> {
    const current: Carried[] = [];
    for (const member of members) {
      const { claim } = member.work;
      try {
        const policy = await this.#resolver.resolveForAll(claim.policy, shards);
        current.push({ member, claim: { ...claim, policy } });
      } catch (error) {
        member.reject(error);
      }
    }
    const chosen = current.map(({ claim: { costs, policy, isCascaded } }) => ({
      intent: { kind: "take" as const, costs, requests: 0, policy, isCascaded },
      policy,
    }));
    return current.slice(0, countCarried(chosen));
  }
}

/** Gives a member that is not part of the transaction its outcome. */
function conclude(
  { member, claim }: Carried,
  verdict: Exclude<GatherVerdict["kind"], "gathered" | "left">,
  atMs: number,
): void {
  if (verdict === "refused") member.resolve({ kind: "refused", atMs, claim });
  else if (verdict === "alone") member.resolve({ kind: "undecided", claim });
  else member.reject(member.work.attempt.throttled?.values().next().value);
}

function leaveUndecided(carried: readonly Carried[]): void {
  for (const { member, claim } of carried) member.resolve({ kind: "undecided", claim });
}
