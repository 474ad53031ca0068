import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  getEntity,
  listLines,
  listProblems,
  read,
  getSystem,
} from "../../test/support/manifest-contents.ts";
import { writtenManifest } from "../../test/support/written-manifests.ts";
import type { RateLimit } from "../core/limit-kinds.ts";
import { Limit } from "../core/limit.ts";
import { readManifest } from "./manifest.ts";
import { formatProblem } from "./problems.ts";

describe("what a manifest declares", () => {
  it("is exactly what its documents name", () => {
    const manifest = read({
      namespace: "team-a",
      system: {
        on_unavailable: "allow",
        audit_retention_days: 30,
        usage_retention_days: 90,
        limits: {
          rpm: { capacity: 100, burst: 150, refill_amount: 100, refill_period: 60 },
          tpm: "10000/min:15000",
        },
      },
      resources: { "gpt-4": { inherit: true, limits: { tpm: "50000/min" } } },
      entities: {
        acme: { name: "Acme Inc", metadata: { plan: "gold" } },
        "key-1": {
          parent: "acme",
          cascade: true,
          resources: {
            _default_: { limits: { rpm: 500 } },
            "gpt-4": { limits: { tpm: { capacity: 20_000 } } },
          },
        },
      },
    });
    expect(manifest.namespace).toBe("team-a");
    expect(manifest.declared).toEqual({
      system: {
        onUnavailable: "allow",
        auditRetentionDays: 30,
        usageRetentionDays: 90,
        limits: [
          Limit.perMinute("rpm", 100, { burst: 150 }),
          Limit.perMinute("tpm", 10_000, { burst: 15_000 }),
        ],
      },
      resources: { "gpt-4": { limits: [Limit.perMinute("tpm", 50_000)], inherit: true } },
      entities: {
        acme: { name: "Acme Inc", metadata: { plan: "gold" }, resources: {} },
        "key-1": {
          parentId: "acme",
          cascade: true,
          resources: {
            _default_: { limits: [Limit.perMinute("rpm", 500)], inherit: true },
            "gpt-4": { limits: [Limit.perMinute("tpm", 20_000)], inherit: true },
          },
        },
      },
    });
  });

  it("is nothing for sections with nothing below", () => {
    const empty = { resources: {}, entities: {} };
    expect(read({ namespace: "a" }).declared).toEqual(empty);
    expect(
      read({ namespace: "a", system: null, resources: null, entities: null }).declared,
    ).toEqual(empty);
    expect(read({ namespace: "a", entities: { acme: null } }).declared.entities).toEqual({
      acme: { resources: {} },
    });
    expect(read({ namespace: "a", system: { on_unavailable: null } }).declared).toEqual(empty);
  });
});

describe("a limit", () => {
  it.each<[written: unknown, limit: Omit<RateLimit, "name">]>([
    [5, { capacity: 5, refillAmount: 5, refillPeriodSeconds: 60 }],
    ["5", { capacity: 5, refillAmount: 5, refillPeriodSeconds: 60 }],
    [" 5/10sec:7 ", { capacity: 7, refillAmount: 5, refillPeriodSeconds: 10 }],
    [{ capacity: 5 }, { capacity: 5, refillAmount: 5, refillPeriodSeconds: 60 }],
    [
      { capacity: 5, refill_amount: 2, refill_period: 3 },
      { capacity: 5, refillAmount: 2, refillPeriodSeconds: 3 },
    ],
    [
      { capacity: 5, burst: 9, refill_amount: 2 },
      { capacity: 9, refillAmount: 2, refillPeriodSeconds: 60 },
    ],
  ])("written as %j has these parameters", (written, expected) => {
    expect(buildLimits({ rpm: written })).toEqual([{ name: "rpm", ...expected }]);
  });

  it("refills by its capacity if a burst is given, not by the burst [W-64]", () => {
    expect(buildLimits({ rpm: { capacity: 5, burst: 50 } })).toEqual([
      { name: "rpm", capacity: 50, refillAmount: 5, refillPeriodSeconds: 60 },
    ]);
  });

  it("with a bad name or amount is refused, all of them at once [W-64]", () => {
    expect(
      listLines({
        namespace: "a",
        system: { limits: { "bad#name": { wcu: -5 }, wcu: { capacity: -5 } } },
        resources: { "ba#d": { limits: { rpm: 0 } } },
        entities: { "key#1": { resources: { "ba#d": { limits: { rpm: 1.5 } } } } },
      }),
    ).toEqual([
      "resources.ba#d: must not contain '#'. Write ba-d, for example.",
      "entities.key#1: must not contain '#'. Write key-1, for example.",
      "system.limits.wcu: 'wcu' is reserved; choose another name. Write x-wcu, for example.",
      "system.limits.bad#name: must not contain '#'. Write bad-name, for example.",
      expect.stringMatching(/^system\.limits\.bad#name\.wcu: is not a key of a limit\. Known are/),
      "resources.ba#d.limits.rpm: must be greater than 0 (got 0). Write 1 or more.",
      "entities.key#1.resources.ba#d: must not contain '#'. Write ba-d, for example.",
      "system.limits.wcu.capacity: must be greater than 0 (got -5). Write 1 or more.",
      expect.stringContaining("rpm: must be a whole number (got 1.5)."),
    ]);
  });

  it("keeps its order, which does not affect the hash", () => {
    const [one, other] = [read(getSystem({ b: 1, a: 2 })), read(getSystem({ a: 2, b: 1 }))];
    expect(one.declared.system?.limits?.map(({ name }) => name)).toEqual(["b", "a"]);
    expect(one.hash).toBe(other.hash);
    expect(read(getSystem({ a: 1, b: 2 })).hash).not.toBe(one.hash);
  });
});

describe("several files", () => {
  it("form one manifest, and may each hold parts of an entity", () => {
    const manifest = read(
      { system: { on_unavailable: "block" }, entities: { acme: { name: "Acme" } } },
      { namespace: "a", system: { limits: { rpm: 5 } } },
      { namespace: "a", entities: { acme: { resources: { gpt: { limits: { rpm: 1 } } } } } },
      { entities: { acme: { cascade: true, resources: { b: { limits: { rpm: 2 } } } } } },
    );
    expect(manifest.namespace).toBe("a");
    expect(manifest.declared.system).toEqual({
      onUnavailable: "block",
      limits: [Limit.perMinute("rpm", 5)],
    });
    expect(manifest.declared.entities).toEqual({
      acme: {
        name: "Acme",
        cascade: true,
        resources: {
          gpt: { limits: [Limit.perMinute("rpm", 1)], inherit: true },
          b: { limits: [Limit.perMinute("rpm", 2)], inherit: true },
        },
      },
    });
  });

  it("must not declare anything twice, even with the same value", () => {
    const content = {
      namespace: "a",
      system: { on_unavailable: "allow", limits: { rpm: 5 } },
      resources: { gpt: { limits: { rpm: 5 } } },
      entities: {
        acme: { name: "Acme", metadata: {}, resources: { _default_: { limits: { rpm: 5 } } } },
        other: {},
      },
    };
    const problems = listProblems(content, content);
    expect(problems.map(({ file, path }) => `${file} ${path}`)).toEqual([
      "1.yaml resources.gpt",
      "1.yaml system.limits",
      "1.yaml system.on_unavailable",
      "1.yaml entities.acme.name",
      "1.yaml entities.acme.metadata",
      "1.yaml entities.acme.resources._default_",
    ]);
    expect(formatProblem(problems[0]!)).toBe(
      "1.yaml:3:4: Invalid resources.gpt: is declared twice, first at 0.yaml:3:4. Declare it in one place.",
    );
  });

  it("must have one namespace", () => {
    expect(
      listProblems({ namespace: "a" }, { namespace: "b" }, { namespace: 5 }).map(formatProblem),
    ).toEqual([
      "1.yaml:2:10: Invalid namespace: differs from that at 0.yaml:2:10 (got 'b'). Files that are read together are about one namespace.",
      "2.yaml:2:10: Invalid namespace: differs from that at 0.yaml:2:10 (got 5). Files that are read together are about one namespace.",
    ]);
    expect(listProblems({ namespace: "a#b" }, { namespace: "a#b" })).toHaveLength(1);
  });

  it("must be at least one", () => {
    expect(() => readManifest([])).toThrow("must hold at least one document");
  });

  it("mean the same in whichever file and order the parts are", () => {
    fc.assert(
      fc.property(writtenManifest(), fc.gen(), ({ content }, g) => {
        const manifest = read(content);
        const files = scatter(content, () => g(fc.nat, { max: 2 }));
        const other = read(...files.map(reversed));
        expect(other.hash).toBe(manifest.hash);
        expect(read(...files).declared).toEqual(manifest.declared);
      }),
      { numRuns: 50 },
    );
  });

  it("with other content have another hash", () => {
    const gpt = { limits: { rpm: 5 } };
    const contents = [
      {},
      getSystem({ rpm: 5 }),
      getSystem({ rpm: "5/sec" }),
      { system: { on_unavailable: "allow" } },
      { system: { on_unavailable: "block" } },
      { system: { audit_retention_days: 5 } },
      { system: { usage_retention_days: 5 } },
      { resources: { gpt } },
      { resources: { gpt: { ...gpt, inherit: false } } },
      getEntity({}),
      getEntity({ name: "a" }),
      getEntity({ parent: "a" }),
      getEntity({ cascade: true }),
      getEntity({ cascade: false }),
      getEntity({ metadata: {} }),
      getEntity({ metadata: { a: "b" } }),
      getEntity({ resources: { gpt } }),
    ];
    const hashes = contents.map((content) => read({ namespace: "a", ...content }).hash);
    expect(new Set(hashes).size).toBe(contents.length);
    expect(hashes[0]).toMatch(/^[0-9a-f]{64}$/);
  });
});

describe("parents", () => {
  it("must not form circles, each of which is reported once", () => {
    const parents = { a: "b", b: "c", c: "a", tail: "a", self: "self", fine: "root", root: "none" };
    const entities = Object.fromEntries(
      Object.entries(parents).map(([id, parent]) => [id, { parent }]),
    );
    expect(listLines({ namespace: "a", entities })).toEqual([
      "entities.a.parent: the parents make a circle: a → b → c → a. Leave `parent` out of one of them.",
      "entities.self.parent: an entity cannot be its own parent. Leave `parent` out, or name another entity.",
    ]);
  });

  it("may form a chain of ten thousand, and a message names only some of a circle", () => {
    const entities = Object.fromEntries(
      Array.from({ length: 10_000 }, (_, index) => [`e${index}`, { parent: `e${index + 1}` }]),
    );
    expect(Object.keys(read({ namespace: "a", entities }).declared.entities)).toHaveLength(10_000);
    expect(
      listLines({ namespace: "a", entities: { ...entities, e10000: { parent: "e0" } } }),
    ).toEqual([
      expect.stringMatching(/^entities\.e0\.parent: .*: e0 → e1 → e2 → e3 → e4 → … → e0\. /),
    ]);
  });
});

/** A file of each number, with everything that may be apart in one of them. */
function scatter(
  content: Readonly<Record<string, unknown>>,
  next: () => number,
): readonly Record<string, unknown>[] {
  const files: Record<string, unknown>[] = [{ namespace: "team-a" }, {}, {}];
  const put = (path: readonly string[], value: unknown): void => {
    let map = files[next()]!;
    for (const key of path.slice(0, -1)) {
      if (!Object.hasOwn(map, key)) map[key] = {};
      map = map[key] as Record<string, unknown>;
    }
    map[path.at(-1)!] = value;
  };
  for (const key of ["system", "resources"])
    for (const [name, value] of Object.entries(content[key] ?? {})) put([key, name], value);
  for (const [id, entity] of Object.entries(content["entities"] ?? {})) {
    if (Object.keys(entity as object).length === 0) put(["entities", id], {});
    for (const [field, value] of Object.entries(entity as object))
      if (field !== "resources") put(["entities", id, field], value);
      else if (Object.keys(value as object).length === 0) put(["entities", id, field], null);
      else
        for (const [name, level] of Object.entries(value as object))
          put(["entities", id, field, name], level);
  }
  return files;
}

/** The same with the keys of all maps in the other order. */
function reversed(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, part]) => [key, reversed(part)])
      .toReversed(),
  );
}

function buildLimits(limits: object): readonly RateLimit[] | undefined {
  return read(getSystem(limits)).declared.system?.limits as readonly RateLimit[] | undefined;
}
