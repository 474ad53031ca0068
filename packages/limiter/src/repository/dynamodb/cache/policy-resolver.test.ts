import type { SupportedLimit } from "../../../core/supported-limits.ts";
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
import {
  buildDefaults,
  buildPolicy,
  sourceOfLimit,
  withDefaults,
  type Policy,
} from "../../../core/bucket/policy.ts";
import type { PolicySource } from "../../store.ts";
import type { KnownShard } from "./known-buckets.ts";
import { PolicyResolver } from "./policy-resolver.ts";

const OLD = buildPolicy([TPM], "resource");
const NEW = buildPolicy([Limit.perMinute("tpm", 120)], "resource");
const OVERRIDE = buildPolicy([TPM], "override");
const KEY = shardKey();
const OTHER_LIMITS = { limits: NEW.limits };

describe("the policy for a shard", () => {
  it("is the caller's, at once, while the shard shows its limits or is not known", () => {
    const { resolver, reads } = newPolicies();
    expect(resolver.resolveFor(OLD, KEY, shardImage())).toBe(OLD);
    expect(resolver.resolveFor(OLD, KEY, undefined)).toBe(OLD);
    expect(reads).toHaveLength(0);
  });

  it("is read once by calls that meet on a shard that shows other limits", async () => {
    const { resolver, reads } = newPolicies();
    const both = [1, 2].map(() => resolver.resolveFor(OLD, KEY, shardImage(OTHER_LIMITS)));
    reads[0]!.resolve(NEW);
    expect(await Promise.all(both)).toEqual([NEW, NEW]);
    expect(reads).toHaveLength(1);
  });

  it("is the remembered one after that, and read again for the next version only", async () => {
    const { resolver, reads, cache } = newPolicies();
    const first = resolver.resolveFor(OLD, KEY, shardImage(OTHER_LIMITS));
    reads[0]!.resolve(NEW);
    await first;
    expect(resolver.resolveFor(OLD, KEY, shardImage(OTHER_LIMITS))).toBe(OLD);
    cache.policy = NEW;
    expect(resolver.resolveFor(OLD, KEY, shardImage(OTHER_LIMITS))).toBe(NEW);
    expect(reads).toHaveLength(1);
    const next = resolver.resolveFor(OLD, KEY, shardImage({ ...OTHER_LIMITS, version: 6 }));
    expect(reads).toHaveLength(2);
    reads[1]!.resolve(OLD);
    expect(await next).toBe(OLD);
  });

  it("is still being read for a version when the read for an older one ends", async () => {
    const { resolver, reads } = newPolicies();
    const older = resolver.resolveFor(OLD, KEY, shardImage(OTHER_LIMITS));
    const newer = resolver.resolveFor(OLD, KEY, shardImage({ ...OTHER_LIMITS, version: 6 }));
    reads[0]!.resolve(OLD);
    await older;
    const meanwhile = resolver.resolveFor(OLD, KEY, shardImage({ ...OTHER_LIMITS, version: 6 }));
    reads[1]!.resolve(NEW);
    expect(await Promise.all([newer, meanwhile])).toEqual([NEW, NEW]);
    expect(reads).toHaveLength(2);
  });

  it("is read again by the next call when it could not be read", async () => {
    const { resolver, reads } = newPolicies();
    const failed = [1, 2].map(() => resolver.resolveFor(OLD, KEY, shardImage(OTHER_LIMITS)));
    reads[0]!.reject(new Error("away"));
    for (const { status } of await Promise.allSettled(failed)) expect(status).toBe("rejected");
    const next = resolver.resolveFor(OLD, KEY, shardImage(OTHER_LIMITS));
    reads[1]!.resolve(NEW);
    expect(await next).toBe(NEW);
  });

  it("is the caller's when nothing is stored", async () => {
    const { resolver, reads } = newPolicies();
    const chosen = resolver.resolveFor(OLD, KEY, shardImage(OTHER_LIMITS));
    reads[0]!.resolve(undefined);
    expect(await chosen).toBe(OLD);
  });

  it("is not compared with that of an override, nor on a shard that shows one", () => {
    const { resolver, reads } = newPolicies();
    const overridden = shardImage({ ...OTHER_LIMITS, overridden: true });
    expect(resolver.resolveFor(OVERRIDE, KEY, shardImage(OTHER_LIMITS))).toBe(OVERRIDE);
    expect(resolver.resolveFor(OLD, KEY, overridden)).toBe(OLD);
    expect(reads).toHaveLength(0);
  });
});

describe("the policy for all shards of a bucket", () => {
  it("is carried from shard to shard, so that those that show it already are not compared", async () => {
    const { resolver, reads } = newPolicies();
    const chosen = resolver.resolveForAll(OLD, [
      knownShard(0, OTHER_LIMITS),
      knownShard(1, OTHER_LIMITS),
    ]);
    reads[0]!.resolve(NEW);
    expect(await chosen).toBe(NEW);
    expect(reads).toHaveLength(1);
  });

  it("is the caller's when there are no shards", async () => {
    const { resolver } = newPolicies();
    expect(await resolver.resolveForAll(OLD, [])).toBe(OLD);
  });
});

describe("limits from the defaults of another process", () => {
  const [small, tpd] = [Limit.perMinute("tpm", 7), Limit.perDay("tpd", 5)];
  const system = buildPolicy([Limit.perHour("rph", 3)], "system", { inherits: true });
  const own = merge(system, TPM);
  const shown = { limits: [small, tpd, ...system.limits], fromCode: ["tpm", "tpd"] };

  it("are accepted without a read while they are young, and given up afterwards", () => {
    const { resolver, reads, youth } = newPolicies();
    const accepted = resolver.resolveFor(own, KEY, shardImage(shown)) as Policy;
    expect(listLimits(accepted)).toEqual([
      "rph:3/hour system",
      "tpm:7/min constructor",
      "tpd:5/day constructor",
    ]);
    const image = shardImage(shown);
    expect(resolver.resolveFor(own, KEY, image)).toBe(resolver.resolveFor(own, KEY, image));
    youth.isYoung = false;
    expect(resolver.resolveFor(accepted, KEY, image), "also by a call under way").toBe(own);
    expect(reads).toHaveLength(0);
  });

  it("are kept beside own ones that the shard lacks, which the configuration may hide", async () => {
    const { resolver, reads } = newPolicies();
    const wanted = merge(system, TPM, Limit.perDay("images", 9));
    const chosen = resolver.resolveFor(wanted, KEY, shardImage(shown));
    reads[0]!.resolve(system);
    expect(listLimits(await chosen)).toEqual([
      "rph:3/hour system",
      "tpm:7/min constructor",
      "images:9/day constructor",
      "tpd:5/day constructor",
    ]);
    const hiding = resolver.resolveFor(wanted, KEY, shardImage({ ...shown, version: 6 }));
    reads[1]!.resolve(buildPolicy(system.limits, "system"));
    expect(listLimits(await hiding)).toEqual(["rph:3/hour system"]);
  });

  it("do not stand in for stored ones, which are read", async () => {
    const { resolver, reads } = newPolicies();
    const image = shardImage({ ...shown, fromCode: ["tpm"] });
    const chosen = resolver.resolveFor(own, KEY, image);
    reads[0]!.resolve(system);
    expect(listLimits(await chosen)).toEqual(["rph:3/hour system", "tpm:7/min constructor"]);
  });
});

function merge(stored: Policy, ...defaults: readonly SupportedLimit[]): Policy {
  return withDefaults(stored, buildDefaults(defaults))!;
}

function listLimits(policy: unknown): readonly string[] {
  return (policy as Policy).limits.map(
    (limit) => `${Limit.format(limit)} ${sourceOfLimit(policy as Policy, limit.name)}`,
  );
}

function knownShard(shard: number, stored: StoredShard): KnownShard {
  const image = shardImage({ ...stored, shard, divisor: 2 });
  return { key: shardKey(shard), image, seenAt: { ms: NOW_MS, order: 1 } };
}

/** Reads of the configuration that the test answers, and what is cached of it. */
function newPolicies(): {
  readonly resolver: PolicyResolver;
  readonly reads: readonly HeldAnswer<Policy | undefined>[];
  readonly cache: { policy: Policy | undefined };
  readonly youth: { isYoung: boolean };
} {
  const reads: HeldAnswer<Policy | undefined>[] = [];
  const cache: { policy: Policy | undefined } = { policy: undefined };
  const source: Pick<PolicySource, "getCached" | "refresh"> = {
    getCached: () => ({ ...cache, version: 0, fromMs: 0, untilMs: 0 }),
    refresh: () => {
      const read = heldAnswer<Policy | undefined>();
      reads.push(read);
      return read.promise;
    },
  };
  const youth = { isYoung: true };
  const { known } = scriptedProcess();
  const resolver = new PolicyResolver(source as PolicySource, known, () => youth.isYoung);
  return { resolver, reads, cache, youth };
}
