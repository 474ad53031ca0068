/*
 * The life of an acquire on DynamoDB (design §5.1, 5.5):
 *
 *   prepare   which buckets, under which policies: from memory, or in one batch read for everything that is not there
 *   ask       all images; when one refuses, and is not fresh, read all of them once; when it still refuses, nothing is written
 *   write     all buckets in parallel, one conditional write each (shard-taker.ts says which shard of a bucket)
 *   settle    all applied: granted. Otherwise what was applied is given back; a call that was refused by one bucket after another was
 *             taken from is decided once more, one bucket after another, because two such calls could have refused each other
 */
import { checkNames, MILLI, type Amounts } from "../../core/amounts.ts";
import {
  amountsUnder,
  isUnder,
  negated,
  statusesOf,
  type LimitStatus,
} from "../../core/decision.ts";
import { RateLimiterUnavailable } from "../../core/errors.ts";
import type { Policy } from "../../core/policy.ts";
import { settlementOf } from "../../core/settlement.ts";
import { noLimits } from "../charges.ts";
import { allThere, whenThere } from "../maybe-promise.ts";
import type {
  ConsumeOutcome,
  ConsumeRequest,
  MaybePromise,
  Receipt,
  ResourceAmounts,
} from "../port.ts";
import type { BucketStore, PolicySource, StoredBucket } from "../store.ts";
import type { Clock } from "../system-clock.ts";
import type { Admission } from "./admission.ts";
import type { Costs } from "./bucket-batch.ts";
import type { BucketCounts } from "./bucket-counts.ts";
import { dividedEnd, endsOf, reversal, type BucketEnd, type ReceiptPart } from "./bucket-ends.ts";
import type { BucketImage } from "./bucket-item.ts";
import type { BucketKey } from "./bucket-key.ts";
import type { BucketKeys } from "./bucket-keys.ts";
import type { BucketPolicies } from "./bucket-policies.ts";
import type { BucketQueries } from "./bucket-queries.ts";
import { siblingKey, type BucketShards } from "./bucket-shards.ts";
import type { BucketWriter } from "./bucket-writer.ts";
import type { Families, Family } from "./families.ts";
import type { BucketImages } from "./images.ts";
import { contended, type Refused, type ShardTaker } from "./shard-taker.ts";
import type { Splitter } from "./splitter.ts";
import { chargeOf, serve, type Target } from "./target.ts";

interface DynamoReceipt extends Receipt {
  readonly parts: ReceiptPart[];
  /** Decided by the first end; a second one only finishes what is left. */
  ends: readonly BucketEnd[] | undefined;
}

/**
 * Granted, or refused as of a time; `halfTaken` when another bucket had granted, which was given
 * back.
 */
type Verdict =
  | { readonly granted: true; readonly parts: readonly ReceiptPart[] }
  | { readonly granted: false; readonly refusedAtMs: number; readonly halfTaken: boolean };

/** A call, and what it takes from. */
interface Call {
  readonly request: ConsumeRequest;
  readonly targets: readonly Target[];
  /** The receipt that it adds to. */
  readonly extending: Receipt | undefined;
  /**
   * Its place in the order of requests: what was asked for later was asked for since the call
   * began.
   */
  readonly begun: number;
}

interface Surroundings {
  readonly keys: BucketKeys;
  readonly policies: PolicySource;
  readonly bucketPolicies: BucketPolicies;
  readonly families: Families;
  readonly images: BucketImages;
  readonly shards: BucketShards;
  readonly taker: ShardTaker;
  readonly splitter: Splitter;
  readonly writer: BucketWriter;
  readonly queries: BucketQueries;
  readonly clock: Clock;
  /** How old an image may be that refuses a call without asking the table. */
  readonly refusalMemoryMs: number;
  readonly assertActive: () => MaybePromise<void>;
  readonly admission: Admission;
  readonly counts: BucketCounts;
}

/**
 * Decisions that one call may get when the images that refused it have changed before it could be
 * told.
 */
const MAX_ROUNDS = 5;

/** Buckets of one namespace on DynamoDB. */
export class DynamoBuckets implements BucketStore {
  readonly #surroundings: Surroundings;

  constructor(surroundings: Surroundings) {
    this.#surroundings = surroundings;
  }

  consume(request: ConsumeRequest, extending?: Receipt): MaybePromise<ConsumeOutcome> {
    return this.#surroundings.admission.admit(() => this.#consume(request, extending));
  }

  async settle(receipt: Receipt, deltas: readonly ResourceAmounts[]): Promise<void> {
    const held = receipt as DynamoReceipt;
    held.ends ??= endsOf(
      deltas.flatMap(({ resource, amounts }) =>
        settlementOf(held.parts, resource, inMilli(amounts)),
      ),
    );
    await allOrFirstError(held.ends.map((end) => this.#end(end)));
  }

  async giveBack(receipt: Receipt): Promise<void> {
    const held = receipt as DynamoReceipt;
    held.ends ??= endsOf(
      held.parts
        .toReversed()
        .map((part) => ({ part, amounts: negated(part.amounts), grants: -part.grants })),
    );
    await allOrFirstError(held.ends.map((end) => this.#end(end)));
  }

  async read(request: ConsumeRequest): Promise<readonly LimitStatus[]> {
    const { shards } = this.#surroundings;
    const { order } = shards.asking();
    const targets = await this.#prepare(request);
    const isRead = ({ key }: Target): boolean => {
      const { isWhole, asOf } = shards.known(key);
      return isWhole && asOf !== undefined && asOf.order >= order;
    };
    if (!targets.every(isRead)) await this.#readAll(targets);
    return this.#statuses(targets, this.#nowMs());
  }

  /** Splits a bucket until it has so many shards; answers how many it has. */
  async split(entityId: string, resource: string, shards: number): Promise<number> {
    const { splitter, keys } = this.#surroundings;
    return splitter.splitInto(keys.of(entityId, resource), shards);
  }

  async ofEntity(entityId: string, resource: string | undefined): Promise<readonly StoredBucket[]> {
    return this.#surroundings.queries.ofEntity(entityId, resource);
  }

  async ofResource(resource: string): Promise<readonly StoredBucket[]> {
    return this.#surroundings.queries.ofResource(resource);
  }

  #consume(request: ConsumeRequest, extending: Receipt | undefined): MaybePromise<ConsumeOutcome> {
    const { order: begun } = this.#surroundings.shards.asking();
    return whenThere(this.#prepare(request), (targets) =>
      this.#decide({ request, targets, extending, begun }, 1),
    );
  }

  /** Answers at once when memory alone refuses the call. */
  #decide(call: Call, round: number): MaybePromise<ConsumeOutcome> {
    const nowMs = this.#nowMs();
    if (this.#mayFit(call.targets, nowMs)) return this.#take(call, round);
    return this.#mayRefuse(call)
      ? this.#refuse(call, nowMs, round)
      : this.#decideFromTable(call, round);
  }

  async #decideFromTable(call: Call, round: number): Promise<ConsumeOutcome> {
    await this.#readAll(call.targets);
    const nowMs = this.#nowMs();
    if (this.#mayFit(call.targets, nowMs)) return this.#take(call, round);
    return this.#mayRefuse(call)
      ? this.#refuse(call, nowMs, round)
      : this.#decideAgain(call, round);
  }

  async #take(call: Call, round: number): Promise<ConsumeOutcome> {
    const { targets, extending } = call;
    const grants = extending === undefined ? 1 : 0;
    let verdict = await this.#takeAll(targets, grants, "together");
    if (!verdict.granted && verdict.halfTaken)
      verdict = await this.#takeAll(targets, grants, "in sequence");
    if (verdict.granted) return this.#grant(call, verdict.parts);
    // What refused it may be the answer to a write that was under way before it came.
    return this.#mayRefuse(call)
      ? this.#refuse(call, verdict.refusedAtMs, round)
      : this.#decideAgain(call, round);
  }

  #decideAgain(call: Call, round: number): MaybePromise<ConsumeOutcome> {
    if (round === MAX_ROUNDS) throw contended(call.targets[0]!.key);
    return this.#decide(call, round + 1);
  }

  /** Every bucket that a call takes from: for each resource the entity's, then its parent's. */
  #prepare(request: ConsumeRequest): MaybePromise<readonly Target[]> {
    const { assertActive, families } = this.#surroundings;
    const { entityId, override } = request;
    const active = assertActive();
    const family = families.of(entityId);
    const own = allThere(request.charges.map((charge) => this.#target(entityId, charge, override)));
    return whenThere(allThere([active, family, own]), ([, known, owned]) =>
      this.#withParents(request, known, owned),
    );
  }

  #withParents(
    { entityId, charges }: ConsumeRequest,
    family: Family,
    owned: readonly (Target | undefined)[],
  ): MaybePromise<readonly Target[]> {
    const { parentId } = family;
    const shared =
      parentId === undefined
        ? []
        : allThere(charges.map((charge) => this.#target(parentId, charge, undefined)));
    return whenThere(shared, (parents) => {
      const targets: Target[] = [];
      for (const [index, { resource, amounts }] of charges.entries()) {
        const target = owned[index];
        if (target === undefined) throw noLimits(entityId, resource);
        checkNames(amounts, target.policy.names, "consume");
        // The family of an entity that this process has not met before came with the same read as
        // its bucket.
        if (target.key.family === undefined) target.key = { ...target.key, family };
        targets.push(target);
        const parent = parents[index];
        if (parent !== undefined) targets.push(onlyKnownLimits(parent));
      }
      return targets;
    });
  }

  #target(
    entityId: string,
    { resource, amounts }: ResourceAmounts,
    override: Policy | undefined,
  ): MaybePromise<Target | undefined> {
    const { policies, images, shards, bucketPolicies, keys } = this.#surroundings;
    const key = keys.of(entityId, resource);
    const cached =
      override === undefined ? policies.cached(entityId, resource) : { policy: override };
    // A process that has not met this entity reads its bucket together with everything else. One
    // that has, and meets a new bucket, tries to create it: if it exists after all, the failed
    // condition brings it.
    const unknown =
      images.find(key.text) === undefined && (cached === undefined || key.family === undefined);
    const found = allThere([
      cached === undefined ? policies.resolve(entityId, resource) : cached.policy,
      unknown ? shards.read(key) : undefined,
    ]);
    return whenThere(found, ([policy]) => {
      if (policy === undefined) return undefined;
      const target: Target = {
        key,
        amounts,
        costs: inMilli(amounts),
        policy,
        override: override !== undefined,
      };
      return whenThere(bucketPolicies.on(target, key, images.find(key.text)?.image), (current) => {
        target.policy = current;
        return target;
      });
    });
  }

  #grant({ request, targets, extending }: Call, parts: readonly ReceiptPart[]): ConsumeOutcome {
    const receipt = (extending ?? { parts: [], ends: undefined }) as DynamoReceipt;
    receipt.parts.push(...parts);
    const limitNames = request.charges.map(
      ({ resource }) => targets.find(({ key }) => key.resource === resource)!.policy.names,
    );
    return { granted: true, receipt, limitNames };
  }

  /** Whether every bucket holds its part, in one shard or in all together, as far as is known. */
  #mayFit(targets: readonly Target[], nowMs: number): boolean {
    return targets.every((target) =>
      serve(target, this.#surroundings.shards.known(target.key), nowMs),
    );
  }

  #statuses(targets: readonly Target[], nowMs: number): readonly LimitStatus[] {
    const charges = targets.map((target) =>
      chargeOf(target, this.#surroundings.shards.known(target.key).shards, nowMs),
    );
    return statusesOf(charges, nowMs);
  }

  /**
   * Whether the images may refuse a call: those that were asked for since it began, and remembered
   * ones while they are fresh.
   */
  #mayRefuse({ targets, begun }: Call): boolean {
    const { refusalMemoryMs, clock, shards } = this.#surroundings;
    const askedMs = clock.now();
    return targets.every(({ key }) => {
      const { asOf, isWhole } = shards.known(key);
      if (!isWhole || asOf === undefined) return false;
      // An image from the future is not fresh: the clock was set back, and would call it fresh
      // until it has caught up.
      return asOf.order >= begun || (asOf.ms > askedMs - refusalMemoryMs && asOf.ms <= askedMs);
    });
  }

  /**
   * Refuses as of a time, and writes limits that have changed (see `afterRefusal`); decides again
   * where the images do not refuse any more.
   */
  #refuse(call: Call, refusedAtMs: number, round: number): MaybePromise<ConsumeOutcome> {
    const { shards, counts } = this.#surroundings;
    const { targets, begun } = call;
    const statuses = this.#statuses(targets, refusedAtMs);
    // Since it was refused, another call of this process has given back, so that it may fit now.
    if (!statuses.some(({ exceeded }) => exceeded)) return this.#decideAgain(call, round);
    let isFromMemory = false;
    const adoptions: Promise<void>[] = [];
    for (const target of targets) {
      const known = shards.known(target.key);
      isFromMemory ||= known.asOf!.order < begun;
      for (const { key, image } of known.shards)
        if (!isUnder(image.bucket, target.policy)) adoptions.push(this.#adopt(target, key));
    }
    if (isFromMemory) counts.refusalsFromMemory += 1;
    return whenThere(allThere(adoptions), () => ({ granted: false, statuses }));
  }

  /**
   * The refusal is decided: that its limits could not be written does not make it unavailability.
   */
  async #adopt(target: Target, key: BucketKey): Promise<void> {
    const { writer, bucketPolicies } = this.#surroundings;
    const policy = (image: BucketImage | undefined): MaybePromise<Policy> =>
      bucketPolicies.on(target, key, image);
    await unlessUnavailable(writer.write(key, { kind: "adopt", costs: {}, grants: 0, policy }));
  }

  async #takeAll(
    targets: readonly Target[],
    grants: number,
    how: "together" | "in sequence",
  ): Promise<Verdict> {
    const { taker } = this.#surroundings;
    if (targets.length === 1) return verdictOf(await taker.take(targets[0]!, grants));
    const outcomes =
      how === "together"
        ? await Promise.allSettled(targets.map((target) => taker.take(target, grants)))
        : await this.#takeInSequence(targets, grants);
    const taken = outcomes.flatMap((outcome) => (isTaken(outcome) ? [outcome.value] : []));
    const parts = taken.flat();
    if (taken.length === targets.length) return { granted: true, parts };
    // When the store is gone, this call's own cost stays charged until it refills.
    await Promise.all(parts.map((part) => unlessUnavailable(this.#end(reversal(part)))));
    const failed = outcomes.find((outcome) => outcome.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    const refusal = outcomes.find(
      (outcome) => !isTaken(outcome),
    ) as PromiseFulfilledResult<Refused>;
    return { granted: false, refusedAtMs: refusal.value.refusedAtMs, halfTaken: parts.length > 0 };
  }

  async #takeInSequence(
    targets: readonly Target[],
    grants: number,
  ): Promise<readonly PromiseSettledResult<readonly ReceiptPart[] | Refused>[]> {
    const outcomes: PromiseSettledResult<readonly ReceiptPart[] | Refused>[] = [];
    for (const target of targets) {
      const [outcome] = await Promise.allSettled([this.#surroundings.taker.take(target, grants)]);
      outcomes.push(outcome);
      if (!isTaken(outcome)) break;
    }
    return outcomes;
  }

  /**
   * Writes what the end of a lease does to one shard. When that fails it may be tried again: the
   * history keeps it from happening twice.
   */
  async #end(end: BucketEnd): Promise<void> {
    if (end.done) return;
    if (end.successors === undefined && !(await this.#written(end))) {
      const { shards } = await this.#surroundings.shards.readAll(siblingKey(end.part.key, 0));
      end.successors = dividedEnd(end, shards, this.#nowMs());
    }
    await allOrFirstError((end.successors ?? []).map((successor) => this.#end(successor)));
    end.done = true;
  }

  /**
   * Whether it could be written to the shard that was taken from: what goes back to one that was
   * split since, and what it cannot pay, concerns others.
   */
  async #written({ part, costs, grants, mayOwe, history }: BucketEnd): Promise<boolean> {
    const { images, shards, writer } = this.#surroundings;
    const { key, policy, life } = part;
    const kind = Object.values(costs).some((cost) => cost > 0) ? "charge" : "give";
    if (images.find(key.text)?.image === undefined) await shards.read(key);
    const outcome = await writer.write(key, {
      kind,
      costs,
      grants,
      policy: () => policy,
      life,
      mayOwe,
      history,
    });
    return outcome.kind !== "split";
  }

  async #readAll(targets: readonly Target[]): Promise<void> {
    const { shards, bucketPolicies } = this.#surroundings;
    const known = await Promise.all(targets.map(({ key }) => shards.readAll(key)));
    for (const [index, target] of targets.entries())
      await bucketPolicies.onAll(target, known[index]!.shards);
  }

  #nowMs(): number {
    return Math.floor(this.#surroundings.clock.now());
  }
}

/** The verdict of a call that takes from one bucket: there is nothing to give back. */
function verdictOf(taken: readonly ReceiptPart[] | Refused): Verdict {
  return "refusedAtMs" in taken
    ? { granted: false, refusedAtMs: taken.refusedAtMs, halfTaken: false }
    : { granted: true, parts: taken };
}

function isTaken(
  outcome: PromiseSettledResult<readonly ReceiptPart[] | Refused>,
): outcome is PromiseFulfilledResult<readonly ReceiptPart[]> {
  return outcome.status === "fulfilled" && !("refusedAtMs" in outcome.value);
}

/** A parent's part of a call: a name that it lacks is not charged there. */
function onlyKnownLimits(parent: Target): Target {
  const amounts = amountsUnder(parent.policy, parent.amounts);
  return amounts === parent.amounts ? parent : { ...parent, amounts, costs: inMilli(amounts) };
}

function inMilli(amounts: Amounts): Costs {
  const costs: Record<string, number> = {};
  for (const name in amounts) costs[name] = amounts[name]! * MILLI;
  return costs;
}

/** Waits for a write that nobody is told about when the store is away. */
async function unlessUnavailable(write: Promise<unknown>): Promise<void> {
  try {
    await write;
  } catch (error) {
    if (!(error instanceof RateLimiterUnavailable)) throw error;
  }
}

/** Waits for all writes, so that none is left running, then fails with the first error. */
async function allOrFirstError(writes: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(writes)).find(
    (outcome) => outcome.status === "rejected",
  );
  if (failed !== undefined) throw failed.reason;
}
