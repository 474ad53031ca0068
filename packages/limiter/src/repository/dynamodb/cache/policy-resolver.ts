import type { BucketLimit } from "../../../core/bucket/bucket.ts";
import { hasPolicyLimits, isSameOnBucket } from "../../../core/bucket/decision.ts";
import {
  buildPolicy,
  sourceOfLimit,
  withDefaults,
  type ConfigSource,
  type Policy,
} from "../../../core/bucket/policy.ts";
import { MAX_LIMITS } from "../../../core/limit.ts";
import type { SupportedLimit } from "../../../core/supported-limits.ts";
import type { MaybePromise } from "../../port.ts";
import type { PolicySource } from "../../store.ts";
import type { BucketImage } from "../items/bucket-item.ts";
import type { BucketKey } from "../items/bucket-key.ts";
import type { BucketEntry, KnownBuckets, KnownShard } from "./known-buckets.ts";

/** How far the limits of one shard were compared with the stored configuration. */
interface Comparison {
  /** The version of the item that was compared. */
  readonly version: number;
  /** What the configuration says, while it is being read. */
  readonly reading: Promise<Policy | undefined> | undefined;
}

/**
 * Resolves the policy to decide with, where a bucket's stored limits may differ from the call's
 * (ADR 001).
 */
export class PolicyResolver {
  readonly #policies: PolicySource;
  readonly #known: KnownBuckets;
  readonly #comparisons = new WeakMap<BucketEntry, Comparison>();
  /** Whether limits that were set at this time may still be those of another process. */
  readonly #isYoung: (setAtMs: number) => boolean;
  readonly #accepted = new WeakMap<Policy, WeakMap<readonly BucketLimit[], Policy>>();
  /** What accepted policies were made from: the next image is to be compared with that. */
  readonly #own = new WeakMap<Policy, Policy>();

  constructor(policies: PolicySource, known: KnownBuckets, isYoung: (setAtMs: number) => boolean) {
    this.#policies = policies;
    this.#known = known;
    this.#isYoung = isYoung;
  }

  /**
   * The policy to decide with on one shard. When that shows other limits, the configuration is read
   * again, once for each version. Calls that meet on the shard share the read: one that came with
   * older limits must not write them over newer ones.
   */
  resolveFor(given: Policy, key: BucketKey, image: BucketImage | undefined): MaybePromise<Policy> {
    const policy = this.#own.get(given) ?? given;
    if (image === undefined || !showsOtherLimits(policy, image)) return policy;
    const current = showsOtherStored(policy, image) ? this.#compare(policy, key, image) : policy;
    return current instanceof Promise
      ? current.then((read) => this.#accept(read, image))
      : this.#accept(current, image);
  }

  /** The policy with what is stored now below the limiter's own defaults. */
  #compare(policy: Policy, key: BucketKey, image: BucketImage): MaybePromise<Policy> {
    const entry = this.#known.entry(key);
    let comparison = this.#comparisons.get(entry);
    if (comparison?.version !== image.version) {
      const reading = Promise.resolve(this.#policies.refresh(key.entityId, key.resource));
      comparison = { version: image.version, reading };
      this.#comparisons.set(entry, comparison);
    }
    if (comparison.reading === undefined) {
      const cached = this.#policies.getCached(key.entityId, key.resource);
      return (cached && withDefaults(cached.policy, policy.defaults)) ?? policy;
    }
    return this.#awaitReading(policy, entry, comparison);
  }

  /**
   * The same for all shards of a bucket: the policy to decide all of them with. The shard that was
   * changed last has the last word.
   */
  async resolveForAll(policy: Policy, shards: readonly KnownShard[]): Promise<Policy> {
    let current = policy;
    for (const { key, image } of shards.toSorted(byVersion))
      current = await this.resolveFor(current, key, image);
    return current;
  }

  /**
   * The policy with the limits from the defaults of another process, if they are young: two
   * processes with different defaults would otherwise undo each other's limits with every call.
   * Own defaults that the bucket lacks are added to it. Older ones are given up for one's own.
   */
  #accept(policy: Policy, { bucket, version, fromCode }: BucketImage): Policy {
    if (fromCode === undefined || !policy.inherits || !this.#isYoung(version)) return policy;
    const memo = this.#accepted.get(policy) ?? new WeakMap<readonly BucketLimit[], Policy>();
    this.#accepted.set(policy, memo);
    const accepted = memo.get(bucket.limits) ?? acceptLimits(policy, bucket.limits, fromCode);
    memo.set(bucket.limits, accepted);
    if (accepted !== policy) this.#own.set(accepted, policy);
    return accepted;
  }

  async #awaitReading(policy: Policy, entry: BucketEntry, comparison: Comparison): Promise<Policy> {
    const isCurrent = (): boolean => this.#comparisons.get(entry) === comparison;
    try {
      const read = await comparison.reading;
      if (isCurrent())
        this.#comparisons.set(entry, { version: comparison.version, reading: undefined });
      return withDefaults(read, policy.defaults) ?? policy;
    } catch (error) {
      // Nothing was compared: the next call must not write what it remembers over newer limits.
      if (isCurrent()) this.#comparisons.delete(entry);
      throw error;
    }
  }
}

/**
 * Whether a shard shows other limits than a policy, so that the configuration may have changed. A
 * policy that came with the call cannot be read again, and counts as current.
 */
function showsOtherLimits(policy: Policy, image: BucketImage): boolean {
  if (policy.source === "override" || image.overridden) return false;
  return !hasPolicyLimits(image.bucket, policy);
}

/**
 * Whether the difference may be about what is stored: it is about more than limits that the shard
 * has from code. Own defaults that it lacks may be hidden by a level that is new to this process.
 */
function showsOtherStored(policy: Policy, { bucket, fromCode = [] }: BucketImage): boolean {
  const shown = bucket.limits.filter(({ hidden }) => !hidden);
  const isOfBoth = ({ limit: { name } }: BucketLimit): boolean =>
    policy.fromCode?.includes(name) === true && fromCode.includes(name);
  return (
    policy.bucketLimits.some((limit) => !hasLimit(shown, limit) && !isOfBoth(limit)) ||
    shown.some(
      (limit) => !fromCode.includes(limit.limit.name) && !hasLimit(policy.bucketLimits, limit),
    )
  );
}

function hasLimit(limits: readonly BucketLimit[], limit: BucketLimit): boolean {
  return limits.some((other) => isSameOnBucket(limit, other));
}

function acceptLimits(
  policy: Policy,
  bucketLimits: readonly BucketLimit[],
  fromCode: readonly string[],
): Policy {
  const shown = listVisible(bucketLimits).filter(({ name }) => fromCode.includes(name));
  const limits = policy.limits.map((limit) =>
    policy.fromCode?.includes(limit.name) === true
      ? (shown.find(({ name }) => name === limit.name) ?? limit)
      : limit,
  );
  const others = shown.filter(({ name }) => !policy.names.has(name));
  const all = [...limits, ...others].slice(0, MAX_LIMITS);
  const inherited = all.map(({ name }) => [name, findSource(policy, name)] as const);
  return buildPolicy(all, policy.source, {
    inherits: policy.inherits,
    inherited: new Map(inherited),
    defaults: policy.defaults,
  });
}

function findSource(policy: Policy, limitName: string): ConfigSource {
  return policy.names.has(limitName) ? sourceOfLimit(policy, limitName) : "constructor";
}

function listVisible(limits: readonly BucketLimit[]): readonly SupportedLimit[] {
  return limits.flatMap(({ limit, hidden }) => (hidden ? [] : [limit]));
}

function byVersion(left: KnownShard, right: KnownShard): number {
  return left.image.version - right.image.version;
}
