import { describe, expect, it } from "vitest";
import {
  getEntity,
  catchError,
  listLines,
  listProblems,
  read,
  getSystem,
} from "../../test/support/manifest-contents.ts";
import type { ManifestDocument } from "./document.ts";
import { readManifest } from "./manifest.ts";
import { formatProblem } from "./problems.ts";

const SUCH_AS = "Write a rate such as 100/min, or 100/min:150 with a burst.";
const IF_NO_MANIFEST =
  "If it is not a manifest, keep it in another folder, or name each file of the manifest.";

describe("common mistakes say what to write", () => {
  it.each<[content: object, path: string, suggestion: string]>([
    [getSystem({ rpm: "10,000 / minute" }), "rpm", "Write 10000/min."],
    [getSystem({ rpm: "100/5 secs:7" }), "rpm", "Write 100/5sec:7."],
    [getSystem({ rpm: "rpm:100" }), "rpm", "Write 100."],
    [getSystem({ rpm: "10 per 2 weeks" }), "rpm", "Write 10/14day."],
    [getSystem({ rpm: "10/fortnight" }), "rpm", SUCH_AS],
    [getSystem({ rpm: "0/min" }), "rpm", "Write 1 or more."],
    [
      getSystem({ rpm: "10000000000000/min" }),
      "rpm",
      "Write a smaller number, such as 1000000000.",
    ],
    [
      getSystem({ rpm: "9007199254739/7day" }),
      "rpm",
      "Round the amount, or write the same rate for a shorter period.",
    ],
    [getSystem({ rpm: -5 }), "rpm", "Write 1 or more."],
    [getSystem({ rpm: 1e13 }), "rpm", "Write a smaller number, such as 1000000000."],
    [getSystem({ rpm: 2.6 }), "rpm", "Write 3, or a whole number for a longer period."],
    [getSystem({ rpm: Number.NaN }), "rpm", "Write a whole number, such as 100."],
    [getSystem({ rpm: null }), "rpm", "Write 100/min, for example, or leave the limit out."],
    [getSystem({ rpm: { capacity: null } }), "capacity", "Write a whole number, such as 100."],
    [getSystem({ rpm: { capacity: 5, burst: null } }), "burst", "Write a number, or leave it out."],
    [
      getSystem({ rpm: { capacity: 5, refill_period: 0.5 } }),
      "refill_period",
      "Write a whole number of seconds, such as 60.",
    ],
    [getSystem({ "r#pm ": 5 }), "r#pm ", "Write r-pm, for example."],
    [getSystem({ "4o": 5 }), "4o", "Write x-4o, for example."],
    [getSystem({ "": 5 }), "", "Write a name of letters, digits and hyphens."],
    [getSystem({ ["r".repeat(65)]: 5 }), "r", "Shorten it."],
    [
      getSystem(Object.fromEntries(Array.from({ length: 33 }, (_, index) => [`l${index}`, 1]))),
      "limits",
      "Leave some of them out, or move them to another resource.",
    ],
    [{ namespace: 123 }, "namespace", "Write x-123, for example."],
    [{ namespace: true }, "namespace", "Write it in quotes."],
    [{ namespace: null }, "namespace", "Write `namespace: default`, or another name."],
    [
      { namespace: "a", system: { inherit: false } },
      "inherit",
      "Declare limits beside it, or leave it out.",
    ],
    [
      { namespace: "a", system: { on_unavailable: "maybe" } },
      "on_unavailable",
      "Write allow or block, or leave it out.",
    ],
    [
      { namespace: "a", system: { usage_retention_days: 0.5 } },
      "usage_retention_days",
      "Write a whole number of days, such as 90, or leave it out.",
    ],
    [
      { namespace: "a", resources: { _default_: { limits: { rpm: 5 } } } },
      "_default_",
      "Write limits for all resources under `system`, or `_default_` under the `resources` of an entity.",
    ],
    [{ namespace: "a", resources: "gpt:5" }, "resources", "Write a space after the colon."],
    [{ namespace: "a", resources: 5 }, "resources", "Write `name: …` below it, indented."],
    [
      getSystem({ rpm: 0.5 }),
      "rpm",
      "For less than one token in a period, make the period longer.",
    ],
    [getSystem({ rpm: { capacity: "100" } }), "rpm.capacity", "Write 100, without quotes."],
    [getSystem({ rpm: { capacity: "10_000" } }), "rpm.capacity", "Write 10000, digits only."],
    [
      getSystem({ rpm: { capacity: 5, refill_period: "5 minutes" } }),
      "rpm.refill_period",
      "Write 300: periods are in seconds.",
    ],
    [
      getSystem({ rpm: { capacity: 5, refillAmount: 5 } }),
      "rpm.refillAmount",
      "Did you mean refill_amount?",
    ],
    [getSystem({ rpm: { burst: 5 } }), "rpm", "Write `capacity: 100`, for example."],
    [getSystem({ q: "5/day@Mars/Base" }), "q", "Write 1000000/day@Europe/Berlin, for example."],
    [getSystem({ q: "5[sof]" }), "q", "Write a rate such as 100/min, or 100/min:150 with a burst."],
    [getSystem({ q: { kind: "inflight" } }), "q", "Write 20/inflight(2min), for example."],
    [getSystem({ q: { capacity: 5, soft: 1 } }), "q", "Write 100/min[counts=tpm], for example."],
    [getSystem([{ name: "rpm" }]), "limits", "Write `name: …`, not `- …`."],
    [getSystem({}), "limits", "Name at least one, or leave the level out."],
    [{ namespace: "a", system: { rpm: 5 } }, "rpm", "Write limits under `limits`."],
    [{ namespace: "a", system: { on_unavailable: "alow" } }, "unavailable", "Did you mean allow?"],
    [
      { namespace: "a", system: { audit_retention_days: "30" } },
      "audit_retention_days",
      "Write 30, without quotes.",
    ],
    [{ namespace: "a", ressources: {} }, "ressources", "Did you mean resources?"],
    [
      { namespace: "a", defaults: {} },
      "defaults",
      "Known are namespace, system, resources, entities, $schema.",
    ],
    [
      { namespace: "a", resources: { gpt: null } },
      "gpt",
      "Name at least one, or leave the level out.",
    ],
    [{ namespace: "a", resources: { gpt: { rpm: 5 } } }, "rpm", "Write limits under `limits`."],
    [
      { namespace: "a", resources: { gpt: { inherit: "yes", limits: { rpm: 5 } } } },
      "inherit",
      "Write true, without quotes.",
    ],
    [getEntity({ cascade: "off" }), "cascade", "Write false, without quotes."],
    [
      getEntity({ limits: { rpm: 5 } }),
      "limits",
      "Write limits of an entity under `resources`, then `_default_` or a resource, then `limits`.",
    ],
    [getEntity({ name: 2024 }), "name", "Write it in quotes."],
    [getEntity({ name: "" }), "name", "Write a text, or leave it out."],
    [getEntity({ name: "\0" }), "name", "Remove NUL and halves of surrogate pairs."],
    [getEntity({ name: "x".repeat(1025) }), "name", "Shorten it."],
    [getEntity({ parent: 7 }), "parent", "Write it in quotes."],
    [getEntity({ parent: null }), "parent", "Write the id of an entity, or leave it out."],
    [getEntity({ parent: "a/b c" }), "parent", "Write a-b-c, for example."],
    [getEntity({ cascade: null }), "cascade", "Write true or false, or leave it out."],
    [getEntity({ metadata: { plan: null } }), "plan", "Write a text, or leave it out."],
    [getEntity({ metadata: { "": "gold" } }), "metadata.", "Write a text, or leave it out."],
    [
      getEntity({
        metadata: Object.fromEntries(Array.from({ length: 51 }, (_, index) => [`m${index}`, ""])),
      }),
      "metadata",
      "Keep the most important ones here, and the others in a database of your own.",
    ],
    [
      getEntity({ metadata: null }),
      "metadata",
      "Write `{}` to remove all metadata, or leave the key out to keep what is stored.",
    ],
    [{}, "", "Write `namespace: default`, or another name."],
    [{ name: "app", version: "1.0.0" }, "", IF_NO_MANIFEST],
    [{ $schema: "x", compilerOptions: {} }, "", IF_NO_MANIFEST],
  ])("%j", (content, path, suggestion) => {
    const problems = listProblems(content);
    expect(problems.map((problem) => problem.suggestion)).toEqual([suggestion]);
    expect(problems[0]?.path.endsWith(path)).toBe(true);
    expect(problems[0]).toMatchObject({ line: expect.any(Number), column: expect.any(Number) });
  });

  it("a section that is mistyped in a file of its own", () => {
    expect(listProblems({ namespace: "a" }, { entites: {} })).toMatchObject([
      { file: "1.yaml", path: "entites", suggestion: "Did you mean entities?" },
    ]);
    expect(listProblems({ namespace: "a" }, { "x-gold": {} })).toEqual([]);
  });

  it.each([null, undefined])("an empty file (%s)", (content) => {
    expect(listProblems({ namespace: "a" }, content)).toEqual([
      {
        file: "1.yaml",
        line: 1,
        column: 1,
        path: "",
        message: "Invalid manifest: the file is empty.",
        suggestion: "Write at least `namespace: default`, or leave the file out.",
      },
    ]);
  });
});

describe("problems", () => {
  it("are found all at once, in the order of files and lines", () => {
    const problems = listProblems(
      { namespace: "a", system: { limits: { rpm: -1, tpm: -2 } }, x: 1 },
      { entities: { "key-1": { parent: "#", cascade: 5 } }, y: 1 },
    );
    expect(problems.map(({ file, line, path }) => `${file}:${line} ${path}`)).toEqual([
      "0.yaml:2 x",
      "0.yaml:4 system.limits.rpm",
      "0.yaml:4 system.limits.tpm",
      "1.yaml:2 y",
      "1.yaml:4 entities.key-1.parent",
      "1.yaml:4 entities.key-1.cascade",
    ]);
  });

  it("are lines of the message, at most 50", () => {
    const limits = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`l${index}`, 0]));
    const error = catchError(getSystem(limits), { resources: { gpt: { limits } } });
    expect(error).toMatchObject({ code: "ERR_LIMITER_MANIFEST", name: "ManifestError" });
    expect(error.problems).toHaveLength(60);
    const lines = error.message.split("\n");
    expect(lines).toHaveLength(51);
    expect(lines[0]).toBe(
      "0.yaml:4:3: Invalid system.limits.l0: must be greater than 0 (got 0). Write 1 or more.",
    );
    expect(lines[50]).toBe("and 10 more");
    expect(error.stack).toContain(lines[49]);
  });

  it("stand where the nearest place is known, and without one at the file", () => {
    const problem = { path: "x", message: "Wrong.", suggestion: undefined };
    const unknown = { ...problem, file: "a.yaml", line: undefined, column: undefined };
    expect(formatProblem(unknown)).toBe("a.yaml: Wrong.");
    const partly: ManifestDocument = {
      file: "a.yaml",
      content: { namespace: "a", resources: { gpt: 5 } },
      findPosition: (path) => (path.length === 1 ? { line: 7, column: 2 } : undefined),
    };
    expect(() => readManifest([partly])).toThrow(/^a\.yaml:7:2: Invalid resources\.gpt: /);
  });

  it("can be made at places of the manifest, in the file that has most of the path", () => {
    const manifest = read(
      { namespace: "a", entities: { acme: { resources: {} } } },
      { entities: { acme: { parent: "b" } } },
    );
    expect(manifest.problemAt(["entities", "acme", "parent"], "Wrong.", "Do right.")).toEqual({
      file: "1.yaml",
      line: 4,
      column: 7,
      path: "entities.acme.parent",
      message: "Wrong.",
      suggestion: "Do right.",
    });
    expect(manifest.problemAt(["entities", "acme", "name"], "Wrong.").file).toBe("0.yaml");
    expect(manifest.problemAt(["nowhere"], "Wrong.").file).toBe("0.yaml");
    expect(manifest.problemAt(["entities", "constructor", "name"], "Wrong.").file).toBe("0.yaml");
  });

  it("cannot forge lines or hide characters", () => {
    const [line] = listLines({ namespace: "a", "x\n1.yaml:1:1: \u202E\u001B[2J": 1 });
    expect(line).toContain("x\\u{a}1.yaml:1:1: \\u{202e}\\u{1b}[2J: is not a key");
    const [long] = listLines({ namespace: "a", ["x".repeat(10_000)]: 1 });
    expect(long!.length).toBeLessThan(500);
  });
});

describe("hostile content", () => {
  it("is refused or read like any other content", () => {
    const polluted = JSON.parse(
      `{"namespace": "a", "__proto__": {"x": 1}, "entities": {"__proto__": {}, "acme": {"metadata": {"__proto__": "b"}}}}`,
    ) as object;
    expect(listProblems(polluted).map(({ path }) => path)).toEqual([
      "__proto__",
      "entities.__proto__",
    ]);
    const { declared } = read(getEntity({ metadata: JSON.parse('{"__proto__": "b"}') }));
    expect(Object.entries(declared.entities["key-1"]!.metadata!)).toEqual([["__proto__", "b"]]);
  });

  it("at any place of a manifest is read or refused in its file, and causes no other error", () => {
    const scalars = [null, true, 0, -1, 1.5, 1e300, Number.NaN, "", "#", "x".repeat(2000)];
    const maps: readonly unknown[] = [
      {},
      { toString: 5, valueOf: 5 },
      { length: 3 },
      { toJSON: 5 },
      { constructor: 5 },
    ];
    const own: unknown = JSON.parse('{"__proto__": {"limits": {"rpm": 5}}}');
    const hostile: readonly unknown[] = [...scalars, ...maps, own, [], [[]]];
    const level = { inherit: true, limits: { rpm: 5, tpm: "5/min", x: { capacity: 5, burst: 6 } } };
    const content = {
      namespace: "a",
      system: { limits: { rpm: 5 }, on_unavailable: "allow", audit_retention_days: 5 },
      resources: { gpt: level },
      entities: {
        acme: { name: "Acme", metadata: { plan: "gold" } },
        "key-1": { parent: "acme", cascade: true, resources: { _default_: level } },
      },
    };
    for (const index of placesIn(content).keys()) {
      for (const value of hostile) {
        const changed = structuredClone(content);
        const { map, key } = placesIn(changed)[index]!;
        map[key] = value;
        for (const problem of listProblems({ namespace: "a" }, changed)) {
          expect(problem.file).toBe("1.yaml");
          expect(problem.suggestion).toMatch(/^[A-Z].*[.?]$/);
        }
      }
    }
  });

  it("that is nested without end, or no plain object, is refused", () => {
    const endless: Record<string, unknown> = { namespace: "a" };
    endless["system"] = { limits: { rpm: endless } };
    expect(listProblems(endless).length).toBeGreaterThan(0);
    expect(listProblems({ namespace: "a", resources: new Map() })).toHaveLength(1);
    expect(
      read({ namespace: "a", system: undefined, entities: { a: { name: undefined } } }).declared,
    ).toEqual({ resources: {}, entities: { a: { resources: {} } } });
  });
});

/** Every key of every map of a value. */
function placesIn(
  value: unknown,
): { readonly map: Record<string, unknown>; readonly key: string }[] {
  if (typeof value !== "object" || value === null) return [];
  const map = value as Record<string, unknown>;
  return Object.keys(map).flatMap((key) => [{ map, key }].concat(placesIn(map[key])));
}
