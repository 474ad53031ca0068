/*
 * The life of an acquire on DynamoDB (design §5.1, 5.5):
 *
 *   prepare   which buckets, under which policies: from memory, or in one batch read for everything that is not there
 *   ask       all images; when one refuses, and is not fresh, read all of them once; when it still refuses, nothing is written
 *   write     all buckets in parallel, one conditional write each
 *   settle    all applied: granted. Otherwise what was applied is given back; a call that was refused by one bucket after another was
 *             taken from is decided once more, one bucket after another, because two such calls could have refused each other
 */
import { checkNames, type Amounts } from "../../core/amounts.ts";
import { amountsUnder, fits, isUnder, negated, statusesOf, underPolicy, type Charge, type LimitStatus } from "../../core/decision.ts";
import { RateLimiterUnavailable } from "../../core/errors.ts";
import type { Policy } from "../../core/policy.ts";
import { settlementOf } from "../../core/settlement.ts";
import { noLimits } from "../charges.ts";
import type { ConsumeOutcome, ConsumeRequest, Receipt, ResourceAmounts } from "../port.ts";
import type { BucketStore, PolicySource, StoredBucket } from "../store.ts";
import type { Clock } from "../system-clock.ts";
import { imageOf, type BucketImage } from "./bucket-item.ts";
import { endsOf, type BucketEnd, type ReceiptPart } from "./bucket-ends.ts";
import { bucketKey, type BucketKey } from "./bucket-key.ts";
import type { BucketOutcome } from "./bucket-plan.ts";
import type { BucketQueries } from "./bucket-queries.ts";
import type { BucketWriter } from "./bucket-writer.ts";
import type { Families } from "./families.ts";
import type { Asking, BucketImages } from "./images.ts";
import type { ItemReader } from "./item-reader.ts";

/** One bucket of a call. */
interface Target {
  key: BucketKey;
  readonly amounts: Amounts;
  readonly override: boolean;
  policy: Policy;
}

interface DynamoReceipt extends Receipt {
  readonly parts: ReceiptPart[];
  /** Decided by the first end; a second one only finishes what is left. */
  ends: readonly BucketEnd[] | undefined;
}

/** Granted, or refused as of a time; `halfTaken` when another bucket had granted, which was given back. */
type Verdict = "granted" | { readonly refusedAtMs: number; readonly halfTaken: boolean };

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
      if (verdict === "granted") break;
      const statuses = this.#statuses(targets, verdict.refusedAtMs);
      if (statuses.some(({ exceeded }) => exceeded)) return this.#refuse(targets, statuses);
      // Since it was refused, another call of this process has given back: it may fit now.
      if (round === MAX_ROUNDS) throw contended(targets[0]!.key);
    }
    const receipt = (extending ?? { parts: [], ends: undefined }) as DynamoReceipt;
    receipt.parts.push(...targets.map((target) => this.#part(target, grants)));
    return {
      granted: true,
      receipt,
      limitNames: request.charges.map(({ resource }) => targets.find(({ key }) => key.resource === resource)!.policy.names),
    };
  }

  async settle(receipt: Receipt, deltas: readonly ResourceAmounts[]): Promise<void> {
    const held = receipt as DynamoReceipt;
    held.ends ??= endsOf(deltas.flatMap(({ resource, amounts }) => settlementOf(held.parts, resource, amounts)));
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
    if (refusedAtMs !== undefined) return { refusedAtMs, halfTaken: false };
    const verdict = await this.#takeAll(targets, grants, "together");
    return verdict !== "granted" && verdict.halfTaken ? this.#takeAll(targets, grants, "in sequence") : verdict;
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
      return parent === undefined ? [target] : [target, { ...parent, amounts: amountsUnder(parent.policy, amounts) }];
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
    const target: Target = { key, amounts, policy, override: override !== undefined };
    target.policy = await this.#policyOn(target, images.find(key.text)?.image);
    return target;
  }

  /** The policy to decide a bucket with: when the bucket shows another than the cache, the configuration is read again, once for each version. */
  async #policyOn(target: Target, image: BucketImage | undefined): Promise<Policy> {
    const { policies, images } = this.#surroundings;
    const { key, policy } = target;
    if (target.override || image === undefined || image.overridden || isUnder(image.bucket, policy)) return policy;
    const entry = images.entry(key.text);
    if (entry.comparedVersion === image.version) return policy;
    entry.comparedVersion = image.version;
    target.policy = (await policies.refresh(key.entityId, key.resource)) ?? policy;
    return target.policy;
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
    const policy = (image: BucketImage | undefined): Promise<Policy> => this.#policyOn(target, image);
    await unlessUnavailable(this.#surroundings.writer.write(target.key, { kind: "adopt", amounts: {}, grants: 0, policy }));
  }

  async #takeAll(targets: readonly Target[], grants: number, how: "together" | "in sequence"): Promise<Verdict> {
    const outcomes: PromiseSettledResult<BucketOutcome>[] = [];
    if (how === "together") outcomes.push(...(await Promise.allSettled(targets.map((target) => this.#take(target, grants)))));
    else
      for (const target of targets)
        if (outcomes.every(isApplied)) outcomes.push(...(await Promise.allSettled([this.#take(target, grants)])));
    if (outcomes.every(isApplied)) return "granted";
    const taken = targets.filter((_, index) => outcomes[index] !== undefined && isApplied(outcomes[index]));
    await Promise.all(taken.map((target) => this.#compensate(target, grants)));
    const failed = outcomes.find((outcome) => outcome.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    const refused = outcomes.flatMap((outcome) =>
      outcome.status === "fulfilled" && outcome.value.kind === "refused" ? [outcome.value] : [],
    );
    return { refusedAtMs: refused[0]?.atMs ?? this.#nowMs(), halfTaken: taken.length > 0 };
  }

  #take(target: Target, grants: number): Promise<BucketOutcome> {
    const { key, amounts } = target;
    return this.#surroundings.writer.write(key, { kind: "take", amounts, grants, policy: (image) => this.#policyOn(target, image) });
  }

  /** Gives back what one bucket granted to a call that another did not. When the store is gone, this call's own cost stays charged until it refills. */
  async #compensate({ key, amounts, policy }: Target, grants: number): Promise<void> {
    const giving = { kind: "give", amounts: negated(amounts), grants: -grants, policy: () => policy } as const;
    await unlessUnavailable(this.#surroundings.writer.write(key, giving));
  }

  #part({ key, amounts, policy }: Target, grants: number): ReceiptPart {
    const { entityId, resource } = key;
    const image = this.#surroundings.images.find(key.text)?.image;
    const life = { creation: image?.creation, expiredBySeconds: image?.expiresAtSeconds };
    return { key, entityId, resource, amounts, policy, grants, life };
  }

  /** Writes what the end of a lease does to one bucket. When that fails it may be tried again: the history keeps it from happening twice. */
  async #end(end: BucketEnd): Promise<void> {
    if (end.done) return;
    const { amounts, grants, history } = end;
    const { key, policy, life } = end.part;
    const kind = Object.values(amounts).some((amount) => amount > 0) ? "charge" : "give";
    if (this.#surroundings.images.find(key.text)?.image === undefined) await this.#readImage(key);
    await this.#surroundings.writer.write(key, { kind, amounts, grants, policy: () => policy, life, history });
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

function isApplied(outcome: PromiseSettledResult<BucketOutcome>): boolean {
  return outcome.status === "fulfilled" && outcome.value.kind === "applied";
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
