/*
 * Levels that inherit, compared with a model that knows only what was stored last: whichever levels
 * are set and deleted, in any order, with calls and time in between, the policy, the level of each
 * limit and the names that a call may use are those of the model.
 */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Limit, RateLimiter, ValidationError, type ConfigSource } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { ManualClock } from "zae-limiter/testing";
import { PolicyCache } from "./policy-cache.ts";
import type { StoredConfig } from "./store.ts";

const NAMES = ["rpm", "tpm", "constructor", "rpd"];
const ENTITIES = ["a", "b"];
const RESOURCES = ["r", "s"];

type Level = Exclude<ConfigSource, "override">;

/** One level of one entity and resource; weaker levels ignore what they are not about. */
interface Place {
  readonly level: Level;
  readonly entityId: string;
  readonly resource: string;
}

type Change =
  | {
      readonly kind: "set";
      readonly at: Place;
      readonly limits: readonly Limit[];
      readonly inherit: boolean;
    }
  | { readonly kind: "delete"; readonly at: Place }
  | { readonly kind: "pass"; readonly ms: number };

interface Stored {
  readonly limits: readonly Limit[];
  readonly inherit: boolean;
}

/** What is stored, by the text of its place. */
class Model {
  readonly #stored = new Map<string, Stored>();

  set(place: Place, stored: Stored | undefined): void {
    if (stored === undefined) this.#stored.delete(toText(place));
    else this.#stored.set(toText(place), stored);
  }

  levels(entityId: string, resource: string): readonly (Stored & { readonly source: Level })[] {
    const all: readonly Level[] = ["entity", "entity_default", "resource", "system"];
    return all.flatMap((source) => {
      const stored = this.#stored.get(toText({ level: source, entityId, resource }));
      return stored === undefined ? [] : [{ source, ...stored }];
    });
  }

  /** Each limit with the level that it comes from, in order. */
  policy(entityId: string, resource: string): readonly (readonly [Level, Limit])[] {
    const found: (readonly [Level, Limit])[] = [];
    for (const { source, limits, inherit } of this.levels(entityId, resource)) {
      for (const limit of limits)
        if (!found.some(([, { name }]) => name === limit.name)) found.push([source, limit]);
      if (!inherit) break;
    }
    return found;
  }
}

function toText({ level, entityId, resource }: Place): string {
  const parts = {
    entity: [entityId, resource],
    entity_default: [entityId],
    resource: [resource],
    system: [],
  }[level];
  return [level, ...parts].join(" ");
}

const place = fc.record({
  level: fc.constantFrom<Level>("entity", "entity_default", "resource", "system"),
  entityId: fc.constantFrom(...ENTITIES),
  resource: fc.constantFrom(...RESOURCES),
});

const limits = fc
  .shuffledSubarray(NAMES, { minLength: 1 })
  .chain((names) =>
    fc.tuple(
      ...names.map((name) =>
        fc.integer({ min: 1, max: 20 }).map((rate) => Limit.perHour(name, rate)),
      ),
    ),
  );

const change: fc.Arbitrary<Change> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("set"),
      at: place,
      limits,
      inherit: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("delete"), at: place }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("pass"),
      ms: fc.integer({ min: 1, max: 90_000 }),
    }),
  },
);

/** The names in a call: mostly limits, sometimes an unknown one. */
const named = fc.subarray([...NAMES, "unknown"], { minLength: 1 });

describe("levels that inherit", () => {
  it(
    "resolve as a model says, whatever was set and deleted before",
    { timeout: 60_000 },
    async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.tuple(change, named), { minLength: 1, maxLength: 12 }),
          async (steps) => {
            const clock = new ManualClock();
            await using repository = new MemoryRepository({ clock });
            const limiter = new RateLimiter({ repository });
            const model = new Model();
            for (const [step, names] of steps) {
              await carryOut(step, { clock, repository, model });
              for (const entityId of ENTITIES)
                for (const resource of RESOURCES) {
                  await compare({ repository, model }, entityId, resource);
                  await call({ limiter, model }, { entityId, resource, names });
                }
            }
          },
        ),
        { numRuns: 150 },
      );
    },
  );

  it("are merged once, also while one level meets those of several resources", () => {
    let nowMs = 0;
    const stored: Record<string, StoredConfig> = {
      system: { limits: [Limit.perMinute("rpm", 1), Limit.perMinute("tpm", 2)] },
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

async function carryOut(
  step: Change,
  world: {
    readonly clock: ManualClock;
    readonly repository: MemoryRepository;
    readonly model: Model;
  },
): Promise<void> {
  const { clock, repository, model } = world;
  if (step.kind === "pass") return clock.advance(step.ms);
  const { level, entityId, resource } = step.at;
  const of = level === "entity" ? { resource } : {};
  if (step.kind === "delete") {
    if (level === "system") await repository.deleteSystemDefaults();
    else if (level === "resource") await repository.deleteResourceDefaults(resource);
    else await repository.deleteLimits(entityId, of);
    return model.set(step.at, undefined);
  }
  const inherit = step.inherit && level !== "system";
  if (level === "system") await repository.setSystemDefaults(step.limits);
  else if (level === "resource")
    await repository.setResourceDefaults(resource, step.limits, { inherit });
  else await repository.setLimits(entityId, step.limits, { ...of, inherit });
  model.set(step.at, { limits: step.limits, inherit });
}

async function compare(
  { repository, model }: { readonly repository: MemoryRepository; readonly model: Model },
  entityId: string,
  resource: string,
): Promise<void> {
  const policy = model.policy(entityId, resource);
  const resolved = await repository.resolveLimits(entityId, resource);
  expect(resolved?.limits ?? []).toEqual(policy.map(([, limit]) => limit));
  if (resolved === undefined) return;
  expect(resolved.source).toBe(policy[0]![0]);
  expect(Object.entries(resolved.sources)).toEqual(
    policy.map(([source, { name }]) => [name, source]),
  );
  expect(resolved.levels).toEqual(model.levels(entityId, resource));
}

/** A call is invalid, or its statuses show its policy and its lease what that lacks. */
async function call(
  { limiter, model }: { readonly limiter: RateLimiter; readonly model: Model },
  of: {
    readonly entityId: string;
    readonly resource: string;
    readonly names: readonly string[];
  },
): Promise<void> {
  const { entityId, resource, names } = of;
  const policy = model.policy(entityId, resource);
  const levels = model.levels(entityId, resource);
  const isLimited = (name: string): boolean => policy.some(([, limit]) => limit.name === name);
  const isKnown = (name: string): boolean =>
    levels.some((level) => level.limits.some((limit) => limit.name === name));
  const request = {
    entityId,
    resource,
    consume: Object.fromEntries(names.map((name) => [name, 0])),
  };
  if (policy.length === 0 || !names.every(isKnown)) {
    await expect(limiter.acquire(request)).rejects.toThrow(ValidationError);
    return;
  }
  const { statuses } = await limiter.check(request);
  expect(statuses.map(({ limitName, source }) => [source, limitName])).toEqual(
    policy.map(([source, { name }]) => [source, name]),
  );
  await limiter.acquire(request, (lease) => {
    expect(lease.unlimited).toEqual(names.filter((name) => !isLimited(name)));
  });
}

function listNames(policy: unknown): readonly string[] {
  return (policy as { readonly limits: readonly Limit[] }).limits.map(({ name }) => name);
}
