import { beforeEach, describe, expect, it } from "vitest";
import { Limit } from "../core/limit.ts";
import type { ConfigKey } from "../core/bucket/policy.ts";
import { listConfigKeys, PolicyCache } from "./policy-cache.ts";
import type { StoredConfig } from "./store.ts";

const TTL_MS = 1000;
const SYSTEM: ConfigKey = { level: "system" };

/** A store of limits whose reads end when the test decides. */
class Shelf {
  nowMs = 5000;
  readonly held = new Map<string, StoredConfig>();
  /** The keys of every read, in order. */
  readonly reads: (readonly string[])[] = [];
  readonly #answers: { answer: () => void; fail: (error: Error) => void }[] = [];

  set(key: ConfigKey, rate: number | undefined, onUnavailable?: "allow" | "block"): void {
    const limits = rate === undefined ? undefined : [Limit.perMinute("rpm", rate)];
    const settings = {
      onUnavailable,
      auditRetentionDays: undefined,
      usageRetentionDays: undefined,
    };
    this.held.set(text(key), key.level === "system" ? { limits, settings } : { limits });
  }

  cache(ttlMs = TTL_MS): PolicyCache {
    return new PolicyCache({
      read: (keys) => this.#get(keys),
      clock: { now: () => this.nowMs },
      ttlMs,
    });
  }

  /**
   * A cache whose reads wait for `answer` or `fail`, and return what was stored when they began.
   */
  slowCache(ttlMs = TTL_MS): PolicyCache {
    return new PolicyCache({
      read: (keys) => {
        const found = this.#get(keys);
        return new Promise((resolve, reject) => {
          this.#answers.push({ answer: () => resolve(found), fail: reject });
        });
      },
      clock: { now: () => this.nowMs },
      ttlMs,
    });
  }

  answer(index: number): void {
    this.#answers[index]!.answer();
  }

  fail(index: number, error: Error): void {
    this.#answers[index]!.fail(error);
  }

  #get(keys: readonly ConfigKey[]): readonly StoredConfig[] {
    this.reads.push(keys.map(text));
    return keys.map((key) => this.held.get(text(key)) ?? { limits: undefined });
  }
}

function text(key: ConfigKey): string {
  return Object.values(key).join("/");
}

async function getRate(
  cache: PolicyCache,
  entityId = "e",
  resource = "r",
): Promise<number | undefined> {
  return (await cache.resolve(entityId, resource))?.limits[0]?.capacity;
}

let shelf: Shelf;
beforeEach(() => {
  shelf = new Shelf();
  shelf.set(SYSTEM, 10);
});

describe("the cache", () => {
  it("reads the four levels together, and returns them from memory until they expire", async () => {
    const cache = shelf.cache();
    expect(await getRate(cache)).toBe(10);
    expect(shelf.reads).toEqual([["entity/e/r", "entity/e/_default_", "resource/r", "system"]]);
    shelf.set(SYSTEM, 20);
    shelf.nowMs += TTL_MS - 1;
    expect(await getRate(cache)).toBe(10);
    expect(shelf.reads).toHaveLength(1);
    shelf.nowMs += 1;
    expect(await getRate(cache)).toBe(20);
    expect(shelf.reads).toHaveLength(2);
  });

  it("counts the time to live from the beginning of a read, not from its end", async () => {
    const cache = shelf.slowCache();
    const reading = getRate(cache);
    shelf.nowMs += TTL_MS;
    shelf.answer(0);
    await reading;
    expect(cache.getCached("e", "r")).toBeUndefined();
  });

  it("treats what it read before the clock was set back as stale", async () => {
    const cache = shelf.cache();
    await getRate(cache);
    shelf.nowMs -= 1;
    expect(cache.getCached("e", "r")).toBeUndefined();
  });

  it("caches that a level has no limits, and that no level has any", async () => {
    shelf.held.clear();
    const cache = shelf.cache();
    expect(await getRate(cache)).toBeUndefined();
    expect(cache.getCached("e", "r")).toMatchObject({ policy: undefined });
    expect(await getRate(cache)).toBeUndefined();
    expect(shelf.reads).toHaveLength(1);
  });

  it("reads only the levels that are not cached", async () => {
    const cache = shelf.cache();
    await getRate(cache, "e", "r");
    await getRate(cache, "f", "r");
    await getRate(cache, "e", "s");
    expect(shelf.reads.slice(1)).toEqual([
      ["entity/f/r", "entity/f/_default_"],
      ["entity/e/s", "resource/s"],
    ]);
  });

  it("caches nothing if the time to live is 0, and reads every time", async () => {
    const cache = shelf.cache(0);
    const { version } = cache;
    await getRate(cache);
    await getRate(cache);
    expect(shelf.reads).toHaveLength(2);
    expect(cache.isUnchangedSince(version)).toBe(false);
    expect(cache.stats()).toEqual({ hits: 0, misses: 2, size: 0, ttlMs: 0 });
  });

  it("stays within 10 000 slots, and drops the oldest first", async () => {
    const cache = shelf.cache();
    await getRate(cache, "first", "r");
    for (let index = 0; index < 5000; index += 1) await getRate(cache, `e${index}`, "r");
    expect(cache.stats().size).toBe(10_000);
    expect(cache.getCached("first", "r")).toBeUndefined();
  });
});

describe("a policy that a caller has kept", () => {
  it("is returned again while it holds, and counts as a hit", async () => {
    const cache = shelf.cache();
    await getRate(cache);
    const held = cache.getCached("e", "r")!;
    shelf.nowMs += TTL_MS - 1;
    expect(cache.getCached("e", "r", held)).toBe(held);
    expect(cache.stats()).toMatchObject({ hits: 2, misses: 1 });
  });

  it.each<[string, (cache: PolicyCache) => void]>([
    ["a writer has changed a level", (cache) => cache.evict(SYSTEM)],
    ["the levels of another entity were read again", (cache) => void cache.refresh("f", "r")],
    ["the cache was emptied", (cache) => cache.clear()],
    ["the oldest of its levels has expired", () => (shelf.nowMs += TTL_MS)],
    ["the clock was set back behind its reads", () => (shelf.nowMs -= 1)],
  ])("does not hold when %s", async (_, change) => {
    const cache = shelf.cache();
    await getRate(cache);
    const held = cache.getCached("e", "r")!;
    shelf.set(SYSTEM, 20);
    change(cache);
    expect(cache.getCached("e", "r", held)).not.toBe(held);
    expect(await getRate(cache)).toBe(20);
  });

  it("holds no longer than the level that was read first", async () => {
    const cache = shelf.cache();
    await getRate(cache, "f", "r");
    shelf.nowMs += TTL_MS - 1;
    await getRate(cache, "e", "r");
    const held = cache.getCached("e", "r")!;
    shelf.nowMs += 1;
    expect(cache.getCached("e", "r", held)).toBeUndefined();
  });
});

describe("concurrent lookups", () => {
  it("share one read of one key, and wait for no other key", async () => {
    const cache = shelf.slowCache();
    const [one, two] = [getRate(cache, "e", "r"), getRate(cache, "e", "r")];
    expect(shelf.reads).toHaveLength(1);
    cache.evict(SYSTEM);
    cache.evict({ level: "resource", resource: "r" });
    const other = getRate(cache, "f", "r");
    expect(shelf.reads[1]).toEqual(["entity/f/r", "entity/f/_default_", "resource/r", "system"]);
    shelf.answer(1);
    expect(await other).toBe(10);
    shelf.answer(0);
    expect(await Promise.all([one, two])).toEqual([10, 10]);
  });

  it("share the levels that they have in common, and read the rest themselves", async () => {
    const cache = shelf.slowCache();
    shelf.set({ level: "entity", entityId: "f", resource: "r" }, 5);
    const [e, f] = [getRate(cache, "e"), getRate(cache, "f")];
    expect(shelf.reads[1]).toEqual(["entity/f/r", "entity/f/_default_"]);
    shelf.answer(0);
    shelf.answer(1);
    expect(await Promise.all([e, f])).toEqual([10, 5]);
    expect(cache.stats().size).toBe(6);
  });

  it("all get the error of a failed read, which is not cached", async () => {
    const cache = shelf.slowCache();
    const asked = [getRate(cache), getRate(cache)];
    const down = new Error("down");
    shelf.fail(0, down);
    for (const { reason } of (await Promise.allSettled(asked)) as PromiseRejectedResult[])
      expect(reason).toBe(down);
    const again = getRate(cache);
    expect(shelf.reads).toHaveLength(2);
    shelf.answer(1);
    expect(await again).toBe(10);
  });
});

describe("writers", () => {
  it("evict the level that they changed, and no other", async () => {
    const cache = shelf.cache();
    await getRate(cache);
    const { version } = cache;
    shelf.set(SYSTEM, 20);
    cache.evict(SYSTEM);
    expect(cache.isUnchangedSince(version)).toBe(false);
    expect(await getRate(cache)).toBe(20);
    expect(shelf.reads[1]).toEqual(["system"]);
  });

  it("are not undone by a read that began before them", async () => {
    const cache = shelf.slowCache();
    const old = getRate(cache);
    shelf.set(SYSTEM, 20, "allow");
    cache.evict(SYSTEM);
    cache.lastOnUnavailable = "allow";
    shelf.answer(0);
    await old;
    expect(cache.lastOnUnavailable).toBe("allow");
    expect(cache.getCached("e", "r")).toBeUndefined();
    const fresh = getRate(cache);
    shelf.answer(1);
    expect(await fresh).toBe(20);
  });

  it("evict everything of an entity, but not of one whose id begins with its id", async () => {
    const cache = shelf.cache();
    await getRate(cache, "e", "r");
    await getRate(cache, "e2", "r");
    cache.evictEntity("e");
    expect(cache.getCached("e", "r")).toBeUndefined();
    expect(cache.getCached("e2", "r")).toBeDefined();
    cache.clear();
    expect(cache.stats().size).toBe(0);
  });

  it("in another process are noticed by a refresh", async () => {
    const cache = shelf.cache();
    await getRate(cache);
    shelf.set({ level: "resource", resource: "r" }, 3);
    expect((await cache.refresh("e", "r"))?.source).toBe("resource");
  });

  it("leave the stored onUnavailable as last seen, even if it has expired", async () => {
    shelf.set(SYSTEM, 10, "allow");
    const cache = shelf.cache();
    expect(cache.lastOnUnavailable).toBeUndefined();
    await getRate(cache);
    shelf.nowMs += TTL_MS;
    expect(cache.lastOnUnavailable).toBe("allow");
  });
});

it("reads four levels, strongest first", () =>
  expect(listConfigKeys("key-1", "gpt-4")).toEqual([
    { level: "entity", entityId: "key-1", resource: "gpt-4" },
    { level: "entity", entityId: "key-1", resource: "_default_" },
    { level: "resource", resource: "gpt-4" },
    { level: "system" },
  ]));
