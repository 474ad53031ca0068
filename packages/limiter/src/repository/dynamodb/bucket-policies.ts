import { isUnder } from "../../core/decision.ts";
import type { Policy } from "../../core/policy.ts";
import type { MaybePromise } from "../port.ts";
import type { PolicySource } from "../store.ts";
import type { BucketImage } from "./bucket-item.ts";
import type { BucketKey } from "./bucket-key.ts";
import type { KnownShard } from "./bucket-shards.ts";
import type { BucketImages, Remembered } from "./images.ts";
import type { Target } from "./target.ts";

/**
 * Which policy buckets are decided with, when they show another than the one that a call came with
 * (design §5.6).
 */
export class BucketPolicies {
  readonly #policies: PolicySource;
  readonly #images: BucketImages;

  constructor(policies: PolicySource, images: BucketImages) {
    this.#policies = policies;
    this.#images = images;
  }

  /**
   * The policy to decide a target with on one shard. When that shows another, the configuration is
   * read again, once for each version. Calls that meet on the shard share what is read: one that
   * came with older limits must not write them over newer ones.
   */
  on(target: Target, key: BucketKey, image: BucketImage | undefined): MaybePromise<Policy> {
    const { policy } = target;
    if (target.override || image === undefined || image.overridden || isUnder(image.bucket, policy))
      return policy;
    const entry = this.#images.entry(key.text);
    if (entry.comparedVersion !== image.version) {
      entry.comparedVersion = image.version;
      entry.comparing = Promise.resolve(this.#policies.refresh(key.entityId, key.resource));
    }
    if (entry.comparing === undefined)
      return (target.policy = this.#policies.cached(key.entityId, key.resource)?.policy ?? policy);
    return this.#compared(target, entry, entry.comparing);
  }

  /**
   * The same for all shards of a bucket: the target's policy is then the one to decide all of them
   * with.
   */
  async onAll(target: Target, shards: readonly KnownShard[]): Promise<void> {
    for (const { key, image } of shards) target.policy = await this.on(target, key, image);
  }

  async #compared(
    target: Target,
    entry: Remembered,
    comparing: Promise<Policy | undefined>,
  ): Promise<Policy> {
    try {
      target.policy = (await comparing) ?? target.policy;
    } catch (error) {
      // Nothing was compared: the next call must not write what it remembers over limits that are
      // newer.
      if (entry.comparing === comparing) entry.comparedVersion = undefined;
      throw error;
    } finally {
      if (entry.comparing === comparing) entry.comparing = undefined;
    }
    return target.policy;
  }
}
