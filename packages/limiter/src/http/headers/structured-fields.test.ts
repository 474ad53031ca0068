import * as fc from "fast-check";
import { parseItem } from "structured-headers";
import { expect, it } from "vitest";
import { wellFormed } from "../../../test/support/statuses.ts";
import { integer, text } from "./structured-fields.ts";

it.each([
  ["rpm", '"rpm"'],
  ["", '""'],
  ['say "hi"', '"say \\"hi\\""'],
  ["back\\slash", '"back\\\\slash"'],
  ["100%", '"100%25"'],
  ["naïve", '"na%c3%afve"'],
  ["a\nb", '"a%0ab"'],
])("the text %j is written as %s", (value, written) => {
  expect(text(value)).toBe(written);
});

it("every text can be read again", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (value) => {
      const [read] = parseItem(text(value));
      expect(decodeURIComponent(read as string)).toBe(wellFormed(value));
    }),
  );
});

it.each([
  [0, "0"],
  [-1, "0"],
  [-0, "0"],
  [7.9, "7"],
  [1e15, "999999999999999"],
  [1e21, "999999999999999"],
  [Infinity, "999999999999999"],
  [Number.NaN, "0"],
])("the number %f is written as %s", (value, written) => {
  expect(integer(value)).toBe(written);
});
