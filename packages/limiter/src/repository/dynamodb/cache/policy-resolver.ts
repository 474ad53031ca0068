import { hasPolicyLimits } from "../../../core/bucket/decision.ts";
import type { Policy } from "../../../core/bucket/policy.ts";
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

  constructor(policies: PolicySource, known: KnownBuckets) {
    this.#policies = policies;
    this.#known = known;
  }

  /**
   * The policy to decide with on one shard. When that shows other limits, the configuration is read
   * again, once for each version. Calls that meet on the shard share the read: one that came with
   * older limits must not write them over newer ones.
   */
  resolveFor(policy: Policy, key: BucketKey, image: BucketImage | undefined): MaybePromise<Policy> {
    if (image === undefined || !showsOtherLimits(policy, image)) return policy;
    const entry = this.#known.entry(key);
    let comparison = this.#comparisons.get(entry);
    if (comparison?.version !== image.version) {
      const reading = Promise.resolve(this.#policies.refresh(key.entityId, key.resource));
      comparison = { version: image.version, reading };
      this.#comparisons.set(entry, comparison);
    }
    if (comparison.reading === undefined)
      return this.#policies.getCached(key.entityId, key.resource)?.policy ?? policy;
    return this.#awaitReading(policy, entry, comparison);
  }

  /** The same for all shards of a bucket: the policy to decide all of them with. */
  async resolveForAll(policy: Policy, shards: readonly KnownShard[]): Promise<Policy> {
    let current = policy;
    for (const { key, image } of shards) current = await this.resolveFor(current, key, image);
    return current;
  }

  async #awaitReading(policy: Policy, entry: BucketEntry, comparison: Comparison): Promise<Policy> {
    const isCurrent = (): boolean => this.#comparisons.get(entry) === comparison;
    try {
      const read = await comparison.reading;
      if (isCurrent())
        this.#comparisons.set(entry, { version: comparison.version, reading: undefined });
      return read ?? policy;
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
