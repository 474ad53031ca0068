import { expect, it } from "vitest";
import { entityMetadata, entityName } from "./entity.ts";
import { ValidationError } from "./errors.ts";

it("accepts names of 1 to 1024 characters", () => {
  expect(entityName("Ä name, with anything #")).toBe("Ä name, with anything #");
  expect(entityName("\u{1f600} \t é")).toBe("\u{1f600} \t é");
  expect(entityName("x".repeat(1024))).toHaveLength(1024);
  for (const value of ["", "x".repeat(1025), "a\0b", "\ud800", "a\udc00b", 5, null, undefined])
    expect(() => entityName(value)).toThrow(ValidationError);
});

it("copies metadata of strings, even under awkward keys", () => {
  const given = JSON.parse('{"tier":"gold","__proto__":"x","empty":""}') as Record<string, string>;
  const metadata = entityMetadata(given);
  given["tier"] = "changed";
  expect(Object.entries(metadata)).toEqual([
    ["tier", "gold"],
    ["__proto__", "x"],
    ["empty", ""],
  ]);
  expect(Object.isFrozen(metadata)).toBe(true);
});

it("refuses metadata that is not an object of up to 50 strings", () => {
  const many = Object.fromEntries(Array.from({ length: 51 }, (_, index) => [`k${index}`, "v"]));
  for (const value of [
    null,
    undefined,
    "x",
    [],
    { a: 1 },
    { a: null },
    { "": "x" },
    { a: "x".repeat(1025) },
    { a: "\0" },
    { "\ud800": "x" },
    many,
  ])
    expect(() => entityMetadata(value)).toThrow(ValidationError);
});
