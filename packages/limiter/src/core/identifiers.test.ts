import { describe, expect, it } from "vitest";
import { InvalidIdentifierError, InvalidNameError } from "./errors.ts";
import {
  configResource,
  entityId,
  limitName,
  namespaceName,
  principal,
  resourceName,
} from "./identifiers.ts";

const NEVER = [
  "",
  "#",
  "a#b",
  "a\n",
  "\na",
  "a b",
  " a",
  "-a",
  ".a",
  "_a",
  "ä",
  "a\0",
  null,
  undefined,
  5,
  {},
  ["a"],
  true,
];

const RULES = [
  {
    name: "entityId",
    check: entityId,
    longest: 256,
    error: InvalidIdentifierError,
    good: ["a", "1", "key-1", "user:a@b.c", "0_.-:@"],
    bad: ["a/b", ":a"],
  },
  {
    name: "limitName",
    check: limitName,
    longest: 64,
    error: InvalidNameError,
    good: ["rpm", "constructor", "toString", "hasOwnProperty", "ttl", "a-b.c", "WCU"],
    bad: ["1a", "a/b", "a:b", "__proto__", "wcu"],
  },
  {
    name: "resourceName",
    check: resourceName,
    longest: 64,
    error: InvalidNameError,
    good: ["gpt-4", "openai/gpt-4:free"],
    bad: ["1a", "a@b", "_default_", "/a"],
  },
  {
    name: "namespaceName",
    check: namespaceName,
    longest: 64,
    error: InvalidNameError,
    good: ["default", "tenant-alpha", "a.b_c"],
    bad: ["1a", "a/b", "a:b"],
  },
];

describe.each(RULES)("$name", ({ check, longest, error, good, bad }) => {
  it("accepts valid values, and returns them", () => {
    for (const value of [...good, "a".repeat(longest)]) expect(check(value)).toBe(value);
  });

  it("refuses everything else, with field, value and reason", () => {
    for (const value of [...NEVER, ...bad, "a".repeat(longest + 1)]) {
      expect(() => check(value, "place"), JSON.stringify(value)).toThrow(error);
      expect(() => check(value, "place")).toThrow(
        expect.objectContaining({ field: "place", reason: expect.stringMatching(/./) }),
      );
    }
  });
});

describe("special names", () => {
  it("the reserved resource, or none, stands for all resources of an entity", () => {
    expect(configResource(undefined)).toBe("_default_");
    expect(configResource("_default_")).toBe("_default_");
    expect(configResource("gpt-4")).toBe("gpt-4");
    expect(() => configResource("")).toThrow(InvalidNameError);
  });

  it("a resource is judged alike whether its name is new, known, or known again", () => {
    const names = Array.from({ length: 2500 }, (_, index) => `model-${index}`);
    for (const name of [...names, ...names.toReversed()]) expect(resourceName(name)).toBe(name);
    for (const name of ["model 1", "model 1"])
      expect(() => resourceName(name)).toThrow(InvalidNameError);
  });

  it("a principal may be an Amazon resource name, which is longer and less restricted", () => {
    const arn = `arn:aws:sts::123456789012:assumed-role/Admin/${"x".repeat(300)}`;
    expect(principal(arn)).toBe(arn);
    expect(principal("user@example.org")).toBe("user@example.org");
    for (const value of [
      "",
      "arn:a b",
      "arn:a#b",
      "arn:a\n",
      `arn:${"x".repeat(2048)}`,
      "a/b",
      undefined,
    ])
      expect(() => principal(value), String(value)).toThrow(InvalidIdentifierError);
  });
});
