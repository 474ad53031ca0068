/*
 * The life of an acquire on DynamoDB (design §5.1, 5.5):
 *
 *   prepare   which buckets, under which policies: from memory, or in one batch read for everything that is not there
 *   ask       all images; when one refuses, and is not fresh, read all of them once; when it still refuses, nothing is written
 *   write     all buckets in parallel, one conditional write each
 *   settle    all applied: granted. Otherwise what was applied is given back; a call that was refused by one bucket after another was
 *             taken from is decided once more, one bucket after another, because two such calls could have refused each other
 */
import { checkNames, MILLI, type Amounts } from "../../core/amounts.ts";
import { amountsUnder, fits, isUnder, negated, statusesOf, underPolicy, type Charge, type LimitStatus } from "../../core/decision.ts";
import { RateLimiterUnavailable } from "../../core/errors.ts";
import type { Policy } from "../../core/policy.ts";
import { settlementOf } from "../../core/settlement.ts";
import { noLimits } from "../charges.ts";
import type { ConsumeOutcome, ConsumeRequest, MaybePromise, Receipt, ResourceAmounts } from "../port.ts";
import type { BucketStore, PolicySource, StoredBucket } from "../store.ts";
import type { Clock } from "../system-clock.ts";
import { imageOf, type BucketImage } from "./bucket-item.ts";
import { endsOf, type BucketEnd, type ReceiptPart } from "./bucket-ends.ts";
import { bucketKey, type BucketKey } from "./bucket-key.ts";
import type { Costs } from "./bucket-batch.ts";
import type { BucketQueries } from "./bucket-queries.ts";
import type { BucketWriter } from "./bucket-writer.ts";
import type { Families } from "./families.ts";
import type { Asking, BucketImages, Remembered } from "./images.ts";
import type { ItemReader } from "./item-reader.ts";

/** One bucket of a call. */
interface Target {
  key: BucketKey;
  readonly amounts: Amounts;
  readonly costs: Costs;
  readonly override: boolean;
  policy: Policy;
}

interface DynamoReceipt extends Receipt {
  readonly parts: ReceiptPart[];
  /** Decided by the first end; a second one only finishes what is left. */
  ends: readonly BucketEnd[] | undefined;
}

interface Refused {
  readonly refusedAtMs: number;
}

/** Granted, or refused as of a time; `halfTaken` when another bucket had granted, which was given back. */
type Verdict =
  | { readonly granted: true; readonly parts: readonly ReceiptPart[] }
  | { readonly granted: false; readonly refusedAtMs: number; readonly halfTaken: boolean };

interface Surroundings {
  readonly namespaceId: string;
  readonly policies: PolicySource;
  readonly families: Families;
  readonly images: BucketImages;
  readonly reader: ItemReader;
  readonly writer: BucketWriter;
  readonly queries: BucketQueries;
  readonly clock: Clock;
  /** How old an image may be that refuses a call without asking the table. */
  readonly refusalMemoryMs: number;
  readonly assertActive: () => Promise<void>;
  readonly onRefusalFromMemory: () => void;
}

/** Decisions that one call may get when the images that refused it have changed before it could be told. */
const MAX_ROUNDS = 5;

/** Buckets of one namespace on DynamoDB. */
export class DynamoBuckets implements BucketStore {
  readonly #surroundings: Surroundings;

  constructor(surroundings: Surroundings) {
    this.#surroundings = surroundings;
  }

  async consume(request: ConsumeRequest, extending?: Receipt): Promise<ConsumeOutcome> {
    const targets = await this.#prepare(request);
    const grants = extending === undefined ? 1 : 0;
    for (let round = 1; ; round += 1) {
      const verdict = await this.#decide(targets, grants);
      if (verdict.granted) return this.#grant(request, targets, verdict.parts, extending);
      const statuses = this.#statuses(targets, verdict.refusedAtMs);
      if (statuses.some(({ exceeded }) => exceeded)) return this.#refuse(targets, statuses);
      // Since it was refused, another call of this process has given back: it may fit now.
      if (round === MAX_ROUNDS) throw contended(targets[0]!.key);
    }
  }

  async settle(receipt: Receipt, deltas: readonly ResourceAmounts[]): Promise<void> {
    const held = receipt as DynamoReceipt;
    held.ends ??= endsOf(deltas.flatMap(({ resource, amounts }) => settlementOf(held.parts, resource, inMilli(amounts))));
    await allOrFirstError(held.ends.map((end) => this.#end(end)));
  }

  async giveBack(receipt: Receipt): Promise<void> {
    const held = receipt as DynamoReceipt;
    held.ends ??= endsOf(held.parts.toReversed().map((part) => ({ part, amounts: negated(part.amounts), grants: -part.grants })));
    await allOrFirstError(held.ends.map((end) => this.#end(end)));
  }

  async read(request: ConsumeRequest): Promise<readonly LimitStatus[]> {
    const { order } = this.#asking();
    const targets = await this.#prepare(request);
    if (targets.some((target) => (this.#asOf(target)?.order ?? 0) < order)) await this.#readAll(targets);
    return this.#statuses(targets, this.#nowMs());
  }

  async ofEntity(entityId: string, resource: string | undefined): Promise<readonly StoredBucket[]> {
    return this.#surroundings.queries.ofEntity(entityId, resource);
  }

  async ofResource(resource: string): Promise<readonly StoredBucket[]> {
    return this.#surroundings.queries.ofResource(resource);
  }

  async #decide(targets: readonly Target[], grants: number): Promise<Verdict> {
    const refusedAtMs = this.#fits(targets, this.#nowMs()) ? undefined : await this.#refusedAtMs(targets);
    if (refusedAtMs !== undefined) return { granted: false, refusedAtMs, halfTaken: false };
    const verdict = await this.#takeAll(targets, grants, "together");
    return !verdict.granted && verdict.halfTaken ? this.#takeAll(targets, grants, "in sequence") : verdict;
  }

  /** Every bucket that a call takes from: for each resource the entity's, then its parent's. */
  async #prepare({ entityId, charges, override }: ConsumeRequest): Promise<readonly Target[]> {
    const { assertActive, families } = this.#surroundings;
    const family = families.of(entityId);
    const own = charges.map(async ({ resource, amounts }) => this.#target(entityId, resource, amounts, override));
    const [, known, ...owned] = await Promise.all([assertActive(), family, ...own]);
    const { parentId } = known;
    const parents = await Promise.all(
      charges.map(async ({ resource, amounts }) =>
        parentId === undefined ? undefined : this.#target(parentId, resource, amounts, undefined),
      ),
    );
    return charges.flatMap(({ resource, amounts }, index) => {
      const target = owned[index];
      if (target === undefined) throw noLimits(entityId, resource);
      checkNames(amounts, target.policy.names, "consume");
      const parent = parents[index];
      // The family of an entity that this process has not met before came with the same read as its bucket.
      if (target.key.family === undefined) target.key = { ...target.key, family: known };
      if (parent === undefined) return [target];
      const shared = amountsUnder(parent.policy, amounts);
      return [target, { ...parent, amounts: shared, costs: inMilli(shared) }];
    });
  }

  async #target(entityId: string, resource: string, amounts: Amounts, override: Policy | undefined): Promise<Target | undefined> {
    const { namespaceId, policies, images, families } = this.#surroundings;
    const key = bucketKey({ namespaceId, entityId, resource, shard: 0 }, families.known(entityId));
    const cached = override === undefined ? policies.cached(entityId, resource) : { policy: override };
    // A process that has not met this entity reads its bucket together with everything else. One that has, and meets a new bucket, tries to
    // create it: if it exists after all, the failed condition brings it.
    const unknown = images.find(key.text) === undefined && (cached === undefined || families.known(entityId) === undefined);
    const [policy] = await Promise.all([
      cached === undefined ? policies.resolve(entityId, resource) : cached.policy,
      unknown ? this.#readImage(key) : undefined,
    ]);
    if (policy === undefined) return undefined;
    const target: Target = { key, amounts, costs: inMilli(amounts), policy, override: override !== undefined };
    target.policy = await this.#policyOn(target, images.find(key.text)?.image);
    return target;
  }

  /**
   * The policy to decide a bucket with: when the bucket shows another than the cache, the configuration is read again, once for each version.
   * Calls that meet on the bucket share what is read: one that came with older limits must not write them over newer ones.
   */
  #policyOn(target: Target, image: BucketImage | undefined): MaybePromise<Policy> {
    const { policies, images } = this.#surroundings;
    const { key, policy } = target;
    if (target.override || image === undefined || image.overridden || isUnder(image.bucket, policy)) return policy;
    const entry = images.entry(key.text);
    if (entry.comparedVersion !== image.version) {
      entry.comparedVersion = image.version;
      entry.comparing = Promise.resolve(policies.refresh(key.entityId, key.resource));
    }
    if (entry.comparing === undefined) return (target.policy = policies.cached(key.entityId, key.resource)?.policy ?? policy);
    return this.#compared(target, entry, entry.comparing);
  }

  async #compared(target: Target, entry: Remembered, comparing: Promise<Policy | undefined>): Promise<Policy> {
    try {
      target.policy = (await comparing) ?? target.policy;
    } finally {
      if (entry.comparing === comparing) entry.comparing = undefined;
    }
    return target.policy;
  }

  #grant(
    request: ConsumeRequest,
    targets: readonly Target[],
    parts: readonly ReceiptPart[],
    extending: Receipt | undefined,
  ): ConsumeOutcome {
    const receipt = (extending ?? { parts: [], ends: undefined }) as DynamoReceipt;
    receipt.parts.push(...parts);
    const limitNames = request.charges.map(({ resource }) => targets.find(({ key }) => key.resource === resource)!.policy.names);
    return { granted: true, receipt, limitNames };
  }

  #charges(targets: readonly Target[], nowMs: number): readonly Charge[] {
    return targets.map(({ key, policy, amounts }) => ({
      entityId: key.entityId,
      resource: key.resource,
      policy,
      amounts,
      bucket: underPolicy(this.#surroundings.images.find(key.text)?.image?.bucket, policy, nowMs),
    }));
  }

  #fits(targets: readonly Target[], nowMs: number): boolean {
    return fits(this.#charges(targets, nowMs), nowMs);
  }

  #statuses(targets: readonly Target[], nowMs: number): readonly LimitStatus[] {
    return statusesOf(this.#charges(targets, nowMs), nowMs);
  }

  /** When the table says so too, where the images are not fresh; undefined when it fits after all. */
  async #refusedAtMs(targets: readonly Target[]): Promise<number | undefined> {
    const { refusalMemoryMs, onRefusalFromMemory, clock } = this.#surroundings;
    const freshMs = clock.now() - refusalMemoryMs;
    if (targets.every((target) => (this.#asOf(target)?.ms ?? -Infinity) > freshMs)) onRefusalFromMemory();
    else await this.#readAll(targets);
    const nowMs = this.#nowMs();
    return this.#fits(targets, nowMs) ? undefined : nowMs;
  }

  /** Refuses, and writes limits that have changed: see `afterRefusal`. */
  async #refuse(targets: readonly Target[], statuses: readonly LimitStatus[]): Promise<ConsumeOutcome> {
    const changed = targets.filter(({ key, policy }) => {
      const image = this.#surroundings.images.find(key.text)?.image;
      return image !== undefined && !isUnder(image.bucket, policy);
    });
    await Promise.all(changed.map((target) => this.#adopt(target)));
    return { granted: false, statuses };
  }

  /** The refusal is decided: that its limits could not be written does not make it unavailability. */
  async #adopt(target: Target): Promise<void> {
    const policy = (image: BucketImage | undefined): MaybePromise<Policy> => this.#policyOn(target, image);
    await unlessUnavailable(this.#surroundings.writer.write(target.key, { kind: "adopt", costs: {}, grants: 0, policy }));
  }

  async #takeAll(targets: readonly Target[], grants: number, how: "together" | "in sequence"): Promise<Verdict> {
    const outcomes =
      how === "together"
        ? await Promise.allSettled(targets.map((target) => this.#take(target, grants)))
        : await this.#takeInSequence(targets, grants);
    const parts = outcomes.flatMap((outcome) => (isTaken(outcome) ? [outcome.value] : []));
    if (parts.length === targets.length) return { granted: true, parts };
    await Promise.all(parts.map((part) => this.#compensate(part)));
    const failed = outcomes.find((outcome) => outcome.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    const refusal = outcomes.find((outcome) => outcome.status === "fulfilled" && "refusedAtMs" in outcome.value);
    const { refusedAtMs } = (refusal as PromiseFulfilledResult<Refused>).value;
    return { granted: false, refusedAtMs, halfTaken: parts.length > 0 };
  }

  async #takeInSequence(targets: readonly Target[], grants: number): Promise<readonly PromiseSettledResult<ReceiptPart | Refused>[]> {
    const outcomes: PromiseSettledResult<ReceiptPart | Refused>[] = [];
    for (const target of targets) {
      const [outcome] = await Promise.allSettled([this.#take(target, grants)]);
      outcomes.push(outcome);
      if (!isTaken(outcome)) break;
    }
    return outcomes;
  }

  async #take(target: Target, grants: number): Promise<ReceiptPart | Refused> {
    const { key, costs } = target;
    const outcome = await this.#surroundings.writer.write(key, {
      kind: "take",
      costs,
      grants,
      policy: (image) => this.#policyOn(target, image),
    });
    if (outcome.kind !== "applied") return { refusedAtMs: outcome.kind === "refused" ? outcome.atMs : this.#nowMs() };
    const { entityId, resource } = key;
    const life = { creation: outcome.image?.creation, expiredBySeconds: outcome.image?.expiresAtSeconds };
    return { key, entityId, resource, amounts: costs, policy: target.policy, grants, life };
  }

  /** Gives back what one bucket granted to a call that another did not. When the store is gone, this call's own cost stays charged until it refills. */
  async #compensate({ key, amounts, policy, grants, life }: ReceiptPart): Promise<void> {
    const giving = { kind: "give", costs: negated(amounts), grants: -grants, policy: () => policy, life } as const;
    await unlessUnavailable(this.#surroundings.writer.write(key, giving));
  }

  /** Writes what the end of a lease does to one bucket. When that fails it may be tried again: the history keeps it from happening twice. */
  async #end(end: BucketEnd): Promise<void> {
    if (end.done) return;
    const { costs, grants, history } = end;
    const { key, policy, life } = end.part;
    const kind = Object.values(costs).some((cost) => cost > 0) ? "charge" : "give";
    if (this.#surroundings.images.find(key.text)?.image === undefined) await this.#readImage(key);
    await this.#surroundings.writer.write(key, { kind, costs, grants, policy: () => policy, life, history });
    end.done = true;
  }

  async #readAll(targets: readonly Target[]): Promise<void> {
    await Promise.all(targets.map(({ key }) => this.#readImage(key)));
    for (const target of targets) target.policy = await this.#policyOn(target, this.#surroundings.images.find(target.key.text)?.image);
  }

  async #readImage(key: BucketKey): Promise<void> {
    const asking = this.#asking();
    const item = await this.#surroundings.reader.get(key.primary);
    this.#surroundings.images.remember(key.text, item === undefined ? undefined : imageOf(item), asking);
  }

  #asking(): Asking {
    return this.#surroundings.images.asking(this.#surroundings.clock.now());
  }

  #asOf({ key }: Target): Asking | undefined {
    return this.#surroundings.images.find(key.text)?.asOf;
  }

  #nowMs(): number {
    return Math.floor(this.#surroundings.clock.now());
  }
}

function contended({ entityId, resource }: BucketKey): RateLimiterUnavailable {
  return new RateLimiterUnavailable("The bucket changes too fast to be decided. Try again.", { entityId, resource });
}

function isTaken(outcome: PromiseSettledResult<ReceiptPart | Refused>): outcome is PromiseFulfilledResult<ReceiptPart> {
  return outcome.status === "fulfilled" && !("refusedAtMs" in outcome.value);
}

function inMilli(amounts: Amounts): Costs {
  return Object.fromEntries(Object.entries(amounts).map(([name, amount]) => [name, amount * MILLI]));
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
  const failed = (await Promise.allSettled(writes)).find((outcome) => outcome.status === "rejected");
  if (failed !== undefined) throw failed.reason;
}
