import { expect, it } from "vitest";
import { nearest } from "./nearest.ts";

it.each([
  ["tenant-alhpa", ["tenant-beta", "tenant-alpha"], "tenant-alpha"],
  ["KEY-1", ["key-1"], "key-1"],
  ["ab", ["ba"], "ba"],
  ["key-1", ["project-1"], undefined],
  ["key-1", [], undefined],
])("finds what %s stands for among %j: %s", (word, candidates, expected) => {
  expect(nearest(word, candidates)).toBe(expected);
});
