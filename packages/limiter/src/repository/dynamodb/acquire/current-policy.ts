import { isUnder } from "../../../core/bucket/decision.ts";
import type { Policy } from "../../../core/bucket/policy.ts";
import type { MaybePromise } from "../../port.ts";
import type { PolicySource } from "../../store.ts";
import type { BucketImage } from "../items/bucket-item.ts";
import type { BucketKey } from "../items/bucket-key.ts";
import type { BucketEntry, KnownBuckets, KnownShard } from "../cache/known-buckets.ts";
import type { PolicyChooser, PolicyHolder } from "./wanted-charge.ts";

/** How far the limits of one shard were compared with the stored configuration. */
interface Comparison {
  /** The version of the item that was compared. */
  readonly version: number;
  /** What the configuration says, while it is being read. */
  readonly reading: Promise<Policy | undefined> | undefined;
}

/** Chooses the policy for buckets whose stored limits differ from the call's (ADR 001). */
export class CurrentPolicies implements PolicyChooser {
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
  on(holder: PolicyHolder, key: BucketKey, image: BucketImage | undefined): MaybePromise<Policy> {
    if (image === undefined || !showsOtherLimits(holder, image)) return holder.policy;
    const entry = this.#known.entry(key);
    let comparison = this.#comparisons.get(entry);
    if (comparison?.version !== image.version) {
      const reading = Promise.resolve(this.#policies.refresh(key.entityId, key.resource));
      comparison = { version: image.version, reading };
      this.#comparisons.set(entry, comparison);
    }
    if (comparison.reading === undefined)
      return this.#policies.cached(key.entityId, key.resource)?.policy ?? holder.policy;
    return this.#compared(holder, entry, comparison);
  }

  /** The same for all shards of a bucket: the policy to decide all of them with. */
  async onAll(holder: PolicyHolder, shards: readonly KnownShard[]): Promise<Policy> {
    let { policy } = holder;
    for (const { key, image } of shards)
      policy = await this.on({ policy, isOverride: holder.isOverride }, key, image);
    return policy;
  }

  async #compared(
    { policy }: PolicyHolder,
    entry: BucketEntry,
    comparison: Comparison,
  ): Promise<Policy> {
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

/** Whether a shard shows other limits than a policy, so that the configuration may have changed. */
export function showsOtherLimits(
  { policy, isOverride }: PolicyHolder,
  image: BucketImage | undefined,
): boolean {
  if (isOverride || image === undefined || image.overridden) return false;
  return !isUnder(image.bucket, policy);
}
