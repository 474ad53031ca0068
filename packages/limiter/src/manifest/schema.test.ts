import { readFileSync } from "node:fs";
import { Ajv } from "ajv";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { anyLimit } from "../../test/support/any-limit.ts";
import { writtenManifest } from "../../test/support/written-manifests.ts";
import { buildManifest } from "./build-manifest.ts";
import { readManifest } from "./manifest.ts";
import { ManifestError } from "./problems.ts";

const schema = JSON.parse(
  readFileSync(new URL("../../limits.schema.json", import.meta.url), "utf8"),
) as object;
const validate = new Ajv({ strict: true, strictTypes: false, allErrors: true }).compile(schema);

it("reads what was written, and the published schema agrees", () => {
  fc.assert(
    fc.property(writtenManifest(), ({ content, declared }) => {
      expect(validate(content), JSON.stringify(validate.errors)).toBe(true);
      expect(
        readManifest([{ file: "a", content, findPosition: () => undefined }]).declared,
      ).toEqual(declared);
    }),
  );
});

it("reads limits of every kind in every notation, and the published schema agrees", () => {
  fc.assert(
    fc.property(anyLimit(), (limit) => {
      const built = buildManifest("a", { system: { limits: [limit] }, ...EMPTY }) as {
        readonly system: { readonly limits: object };
      };
      for (const written of [built.system.limits, { [limit.name]: toMap(limit) }]) {
        const content = limits(written);
        expect(validate(content), JSON.stringify(validate.errors)).toBe(true);
        const { declared } = readManifest([{ file: "a", content, findPosition: () => undefined }]);
        expect(declared.system?.limits).toEqual([limit]);
      }
    }),
  );
});

const EMPTY = { resources: {}, entities: {} };

/** A limit with the keys of manifests. */
function toMap(limit: { readonly name: string }): unknown {
  const text = JSON.stringify({ ...limit, name: undefined }).replaceAll(
    "refillPeriodSeconds",
    "refill_period",
  );
  return JSON.parse(
    // Names of priority classes are keys too, and stay as they are.
    text.replaceAll(
      /"(refill|window|hold)(Amount|Seconds)":/g,
      (_, first: string, last: string) => `"${first}_${last.toLowerCase()}":`,
    ),
  );
}

const LIMITS = { rpm: 5 };
const DAILY = { every: "day", zone: "UTC" };
const QUOTA = { kind: "quota", capacity: 5, resets: DAILY };

it.each<[reason: string, content: unknown]>([
  ["a list", []],
  ["a text", "namespace: a"],
  ["nothing", null],
  ["a number as namespace", { namespace: 5 }],
  ["a namespace with '#'", { namespace: "a#b" }],
  ["an empty namespace", { namespace: "" }],
  ["a long namespace", { namespace: "a".repeat(65) }],
  ["an unknown section", { namespace: "a", limits: LIMITS }],
  ["x without a hyphen", { namespace: "a", x: {} }],
  ["x- below the first level", system({ "x-gold": LIMITS })],
  ["a key that objects inherit", JSON.parse('{"namespace":"a","__proto__":{}}')],
  ["a list of resources", { namespace: "a", resources: [] }],
  ["an unknown setting", system({ onUnavailable: "allow" })],
  ["a word that is not a setting", system({ on_unavailable: "open" })],
  ["no days", system({ audit_retention_days: 0 })],
  ["too many days", system({ usage_retention_days: 3651 })],
  ["days as text", system({ usage_retention_days: "30" })],
  ["null as days", system({ audit_retention_days: null })],
  ["no limits", system({ limits: {} })],
  ["null as limits", system({ limits: null })],
  ["a list of limits", system({ limits: [{ name: "rpm", capacity: 5 }] })],
  ["a word as inherit of the system level", system({ inherit: "no", limits: LIMITS })],
  ["33 limits", limits(Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`l${i}`, 1])))],
  ["a reserved name", limits({ wcu: 5 })],
  ["a limit's name with '#'", limits({ "ba#d": 5 })],
  ["a limit's name that is a number", limits({ 5: 5 })],
  ["a negative amount", limits({ rpm: -5 })],
  ["no amount", limits({ rpm: 0 })],
  ["a fraction", limits({ rpm: 1.5 })],
  ["more than can be counted", limits({ rpm: 9_007_199_254_741 })],
  ["true as a limit", limits({ rpm: true })],
  ["null as a limit", limits({ rpm: null })],
  ["a list as a limit", limits({ rpm: [5] })],
  ["a number with underscores", limits({ rpm: "10_000" })],
  ["an unknown unit", limits({ rpm: "100/m" })],
  ["a rate of nothing", limits({ rpm: "0/min" })],
  ["a period of nothing", limits({ rpm: "5/0min" })],
  ["a burst of nothing", limits({ rpm: "5/min:0" })],
  ["a limit without a capacity", limits({ rpm: { burst: 5 } })],
  ["an empty limit", limits({ rpm: {} })],
  ["a capacity as text", limits({ rpm: { capacity: "100" } })],
  ["a negative capacity", limits({ rpm: { capacity: -5 } })],
  ["null as a burst", limits({ rpm: { capacity: 5, burst: null } })],
  ["a period as text", limits({ rpm: { capacity: 5, refill_period: "min" } })],
  ["a key in camelCase", limits({ rpm: { capacity: 5, refillAmount: 5 } })],
  ["an unknown kind", limits({ q: { ...QUOTA, kind: "calendar" } })],
  ["a quota without a calendar", limits({ q: { kind: "quota", capacity: 5 } })],
  ["a quota that refills", limits({ q: { ...QUOTA, refill_amount: 5 } })],
  ["a rate with a calendar", limits({ q: { ...QUOTA, kind: "rate" } })],
  ["a week without a zone", limits({ q: "5/week" })],
  ["an offset as a zone", limits({ q: "5/week@+02:00" })],
  ["a time that does not exist", limits({ q: { ...QUOTA, resets: { ...DAILY, at: "24:00" } } })],
  ["four fields of cron", limits({ q: { ...QUOTA, resets: { cron: "0 0 * *", zone: "UTC" } } })],
  ["a short hold", limits({ q: { kind: "inflight", capacity: 5, hold_seconds: 9 } })],
  ["a long session", limits({ q: { kind: "session", capacity: 5, window_seconds: 31622401 } })],
  ["alerts of a rate", limits({ q: { capacity: 5, alerts: [50] } })],
  ["carry of a session", limits({ q: { ...QUOTA, kind: "session", carry: { debt: true } } })],
  [
    "a profile without numbers",
    limits({ q: { capacity: 5, schedule: [{ when: "sat", zone: "UTC" }] } }),
  ],
  ["a resource with '#'", { namespace: "a", resources: { "ba#d": { limits: LIMITS } } }],
  ["_default_ as a resource", { namespace: "a", resources: { _default_: { limits: LIMITS } } }],
  ["a level of nothing", { namespace: "a", resources: { a: null } }],
  ["a level that is a text", { namespace: "a", resources: { a: "100/min" } }],
  ["limits without `limits`", { namespace: "a", resources: { a: LIMITS } }],
  ["inherit without limits", { namespace: "a", resources: { a: { inherit: true } } }],
  ["a word as inherit", { namespace: "a", resources: { a: { inherit: "yes", limits: LIMITS } } }],
  ["an id with a space", { namespace: "a", entities: { "a b": {} } }],
  ["an entity that is a list", entity([])],
  ["limits of an entity without a resource", entity({ limits: LIMITS })],
  ["limits directly under an entity", entity(LIMITS)],
  ["limits directly under its resource", entity({ resources: { gpt: LIMITS } })],
  ["a number as name", entity({ name: 2024 })],
  ["an empty name", entity({ name: "" })],
  ["null as a parent", entity({ parent: null })],
  ["a parent with '#'", entity({ parent: "a#b" })],
  ["a word as cascade", entity({ cascade: "true" })],
  ["null as metadata", entity({ metadata: null })],
  ["a list as metadata", entity({ metadata: ["gold"] })],
  ["a number in metadata", entity({ metadata: { year: 2024 } })],
  ["an empty name in metadata", entity({ metadata: { "": "a" } })],
  ["an unknown key of an entity", entity({ parent_id: "a" })],
])("the reader and the schema both refuse %s", (_, content) => {
  expect(() => readManifest([{ file: "a", content, findPosition: () => undefined }])).toThrow(
    ManifestError,
  );
  expect(validate(content)).toBe(false);
});

it("accepts what editors write and what YAML leaves empty", () => {
  const content = {
    $schema: "./limits.schema.json",
    "x-gold": { limits: { "ba#d": [-5] } },
    "x-": null,
    namespace: "a",
    system: { on_unavailable: null },
    resources: null,
    entities: { acme: null, "key-1": { metadata: {}, resources: null } },
  };
  expect(validate(content)).toBe(true);
  expect(validate({ ...content, system: null })).toBe(true);
  expect(
    readManifest([{ file: "a", content, findPosition: () => undefined }]).declared.entities,
  ).toEqual({ acme: { resources: {} }, "key-1": { metadata: {}, resources: {} } });
});

function system(content: object): object {
  return { namespace: "a", system: content };
}

function limits(content: object): object {
  return system({ limits: content });
}

function entity(content: object): object {
  return { namespace: "a", entities: { "key-1": content } };
}
