import { describe, expect, it } from "vitest";
import { heldAnswer, type HeldAnswer } from "../../../../test/support/held-answer.ts";
import { scriptedProcess } from "../../../../test/support/scripted-table.ts";
import {
  NOW_MS,
  shardImage,
  shardKey,
  TPM,
  type StoredShard,
} from "../../../../test/support/shard-images.ts";
import { Limit } from "../../../core/limit.ts";
import { policyOf, type Policy } from "../../../core/bucket/policy.ts";
import type { PolicySource } from "../../store.ts";
import type { KnownShard } from "../cache/known-buckets.ts";
import { CurrentPolicies } from "./current-policy.ts";
import type { PolicyHolder } from "./wanted-charge.ts";

const OLD = policyOf([TPM], "resource");
const NEW = policyOf([Limit.perMinute("tpm", 120)], "resource");
const KEY = shardKey();
const HOLDER: PolicyHolder = { policy: OLD, isOverride: false };
const OTHER_LIMITS = { limits: NEW.limits };

describe("the policy for a shard", () => {
  it("is the caller's, at once, while the shard shows its limits or is not known", () => {
    const { current, reads } = newPolicies();
    expect(current.on(HOLDER, KEY, shardImage())).toBe(OLD);
    expect(current.on(HOLDER, KEY, undefined)).toBe(OLD);
    expect(reads).toHaveLength(0);
  });

  it("is read once by calls that meet on a shard that shows other limits", async () => {
    const { current, reads } = newPolicies();
    const both = [1, 2].map(() => current.on(HOLDER, KEY, shardImage(OTHER_LIMITS)));
    reads[0]!.resolve(NEW);
    expect(await Promise.all(both)).toEqual([NEW, NEW]);
    expect(reads).toHaveLength(1);
  });

  it("is the remembered one after that, and read again for the next version only", async () => {
    const { current, reads, cache } = newPolicies();
    const first = current.on(HOLDER, KEY, shardImage(OTHER_LIMITS));
    reads[0]!.resolve(NEW);
    await first;
    expect(current.on(HOLDER, KEY, shardImage(OTHER_LIMITS))).toBe(OLD);
    cache.policy = NEW;
    expect(current.on(HOLDER, KEY, shardImage(OTHER_LIMITS))).toBe(NEW);
    expect(reads).toHaveLength(1);
    const next = current.on(HOLDER, KEY, shardImage({ ...OTHER_LIMITS, version: 6 }));
    expect(reads).toHaveLength(2);
    reads[1]!.resolve(OLD);
    expect(await next).toBe(OLD);
  });

  it("is still being read for a version when the read for an older one ends", async () => {
    const { current, reads } = newPolicies();
    const older = current.on(HOLDER, KEY, shardImage(OTHER_LIMITS));
    const newer = current.on(HOLDER, KEY, shardImage({ ...OTHER_LIMITS, version: 6 }));
    reads[0]!.resolve(OLD);
    await older;
    const meanwhile = current.on(HOLDER, KEY, shardImage({ ...OTHER_LIMITS, version: 6 }));
    reads[1]!.resolve(NEW);
    expect(await Promise.all([newer, meanwhile])).toEqual([NEW, NEW]);
    expect(reads).toHaveLength(2);
  });

  it("is read again by the next call when it could not be read", async () => {
    const { current, reads } = newPolicies();
    const failed = [1, 2].map(() => current.on(HOLDER, KEY, shardImage(OTHER_LIMITS)));
    reads[0]!.reject(new Error("away"));
    for (const { status } of await Promise.allSettled(failed)) expect(status).toBe("rejected");
    const next = current.on(HOLDER, KEY, shardImage(OTHER_LIMITS));
    reads[1]!.resolve(NEW);
    expect(await next).toBe(NEW);
  });

  it("is the caller's when nothing is stored", async () => {
    const { current, reads } = newPolicies();
    const chosen = current.on(HOLDER, KEY, shardImage(OTHER_LIMITS));
    reads[0]!.resolve(undefined);
    expect(await chosen).toBe(OLD);
  });

  it("is not compared with that of an override, nor on a shard that shows one", () => {
    const { current, reads } = newPolicies();
    const overridden = shardImage({ ...OTHER_LIMITS, overridden: true });
    expect(current.on({ ...HOLDER, isOverride: true }, KEY, shardImage(OTHER_LIMITS))).toBe(OLD);
    expect(current.on(HOLDER, KEY, overridden)).toBe(OLD);
    expect(reads).toHaveLength(0);
  });
});

describe("the policy for all shards of a bucket", () => {
  it("is carried from shard to shard, so that those that show it already are not compared", async () => {
    const { current, reads } = newPolicies();
    const chosen = current.onAll(HOLDER, [
      knownShard(0, OTHER_LIMITS),
      knownShard(1, OTHER_LIMITS),
    ]);
    reads[0]!.resolve(NEW);
    expect(await chosen).toBe(NEW);
    expect(reads).toHaveLength(1);
  });

  it("is the caller's when there are no shards", async () => {
    const { current } = newPolicies();
    expect(await current.onAll(HOLDER, [])).toBe(OLD);
  });
});

function knownShard(shard: number, stored: StoredShard): KnownShard {
  const image = shardImage({ ...stored, shard, divisor: 2 });
  return { key: shardKey(shard), image, seenAt: { ms: NOW_MS, order: 1 } };
}

/** Reads of the configuration that the test answers, and what is cached of it. */
function newPolicies(): {
  readonly current: CurrentPolicies;
  readonly reads: readonly HeldAnswer<Policy | undefined>[];
  readonly cache: { policy: Policy | undefined };
} {
  const reads: HeldAnswer<Policy | undefined>[] = [];
  const cache: { policy: Policy | undefined } = { policy: undefined };
  const source: Pick<PolicySource, "cached" | "refresh"> = {
    cached: () => ({ ...cache, version: 0, fromMs: 0, untilMs: 0 }),
    refresh: () => {
      const read = heldAnswer<Policy | undefined>();
      reads.push(read);
      return read.promise;
    },
  };
  const current = new CurrentPolicies(source as PolicySource, scriptedProcess().known);
  return { current, reads, cache };
}
