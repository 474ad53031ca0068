import { describe, expect, it } from "vitest";
import { buildDefaults, sourceOfLimit, withDefaults } from "../core/bucket/policy.ts";
import { Limit } from "../core/limit.ts";
import { PolicyCache } from "./policy-cache.ts";
import type { StoredConfig } from "./store.ts";

describe("levels that inherit", () => {
  it("are merged once, also while one level meets those of several resources", () => {
    let nowMs = 0;
    const stored: Record<string, StoredConfig> = {
      system: { limits: [Limit.perMinute("rpm", 1), Limit.perMinute("tpm", 2)], inherit: true },
      entity: { limits: [Limit.perMinute("rpm", 3)], inherit: true },
    };
    const cache = new PolicyCache({
      read: (keys) =>
        keys.map((key) => {
          if (key.level === "resource" && key.resource === "r")
            return { limits: [Limit.perMinute("rpd", 5)], inherit: true };
          const isDefault = key.level !== "entity" || key.resource === "_default_";
          return (isDefault && stored[key.level]) || { limits: undefined };
        }),
      clock: { now: () => nowMs },
      ttlMs: 1000,
    });
    const [onR, onS] = [cache.resolve("e", "r"), cache.resolve("e", "s")];
    expect(listNames(onR)).toEqual(["rpm", "rpd", "tpm"]);
    expect(listNames(onS)).toEqual(["rpm", "tpm"]);
    for (let count = 0; count < 3; count += 1) {
      expect(cache.getCached("e", "r")?.policy).toBe(onR);
      expect(cache.getCached("e", "s")?.policy).toBe(onS);
    }
    const defaults = buildDefaults([Limit.perMinute("tpm", 9), Limit.perMinute("images", 4)]);
    const merged = withDefaults(cache.getCached("e", "r")?.policy, defaults);
    expect(merged?.limits.map(({ name }) => `${name} ${sourceOfLimit(merged, name)}`)).toEqual([
      "rpm entity_default",
      "rpd resource",
      "tpm system",
      "images constructor",
    ]);
    expect(withDefaults(cache.getCached("e", "r")?.policy, defaults)).toBe(merged);
    // A level below that was read again is another one, even if it says the same.
    nowMs = 500;
    cache.evict({ level: "system" });
    stored["system"] = { limits: [Limit.perMinute("ipd", 7)] };
    expect(listNames(cache.resolve("e", "r"))).toEqual(["rpm", "rpd", "ipd"]);
    nowMs = 1000;
    expect(cache.getCached("e", "r"), "the levels above have expired").toBeUndefined();
  });

  it("need every level down to the first that does not inherit, and none below it", () => {
    const reads: string[] = [];
    const cache = new PolicyCache({
      read: (keys) =>
        keys.map(({ level }) => {
          reads.push(level);
          if (level === "entity") return { limits: [Limit.perMinute("rpm", 3)], inherit: true };
          if (level === "resource") return { limits: [Limit.perMinute("tpm", 3)] };
          return { limits: [Limit.perMinute("rpd", 3)] };
        }),
      clock: { now: () => 0 },
      ttlMs: 1000,
    });
    expect(listNames(cache.resolve("e", "r"))).toEqual(["rpm", "tpm"]);
    cache.evict({ level: "system" });
    expect(cache.getCached("e", "r")).toBeDefined();
    cache.evict({ level: "resource", resource: "r" });
    expect(cache.getCached("e", "r")).toBeUndefined();
  });
});

describe("whether a limit is known", () => {
  const system = { limits: [Limit.perMinute("rpm", 1)] };
  const stored = (level: string): StoredConfig =>
    level === "system" ? system : { limits: undefined };

  it("is answered with true by expired levels too, and with false only by fresh ones", async () => {
    let nowMs = 0;
    let reads = 0;
    const cache = new PolicyCache({
      read: async (keys) => {
        reads += 1;
        return keys.map(({ level }) => stored(level));
      },
      clock: { now: () => nowMs },
      ttlMs: 1000,
    });
    await cache.resolve("e", "r");
    expect(cache.knows("e", "r", "tpm")).toBe(false);
    nowMs = 5000;
    expect(cache.knows("e", "r", "rpm")).toBe(true);
    expect(reads).toBe(1);
    expect(cache.knows("e", "r", "tpm"), "which only a read could decide").toBe(true);
    await cache.resolve("e", "r");
    expect(cache.knows("e", "r", "tpm")).toBe(false);
  });

  it("is true while it is unknown, and a failed read is not an unhandled rejection", async () => {
    const cache = new PolicyCache({
      read: () => Promise.reject(new Error("gone")),
      clock: { now: () => 0 },
      ttlMs: 1000,
    });
    expect(cache.knows("e", "r", "anything")).toBe(true);
    await new Promise((resolve) => setImmediate(resolve));
  });

  it("is answered exactly by a store that reads synchronously", () => {
    const cache = new PolicyCache({
      read: (keys) => keys.map(({ level }) => stored(level)),
      clock: { now: () => 0 },
      ttlMs: 0,
    });
    expect(cache.knows("e", "r", "rpm")).toBe(true);
    expect(cache.knows("e", "r", "tpm")).toBe(false);
  });
});

function listNames(policy: unknown): readonly string[] {
  return (policy as { readonly limits: readonly Limit[] }).limits.map(({ name }) => name);
}
