import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { BoundedMap } from "./bounded-map.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

it("holds the entries that were set last, in that order", () => {
  const map = new BoundedMap<string, number>(2);
  map.set("a", 1).set("b", 2).set("a", 3).set("c", 4);
  expect([...map]).toEqual([
    ["a", 3],
    ["c", 4],
  ]);
});

const key = fc.integer({ min: 0, max: 9 });
const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ set: key }) },
  { weight: 2, arbitrary: fc.record({ remove: key }) },
  { weight: 1, arbitrary: fc.constant("clear" as const) },
);

it("drops the oldest entry, after any history of changes", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5 }), fc.array(step, { maxLength: 60 }), (max, steps) => {
      const map = new BoundedMap<number, true>(max);
      let expected: number[] = [];
      for (const each of steps) {
        if (each === "clear") {
          map.clear();
          expected = [];
        } else if ("remove" in each) {
          map.delete(each.remove);
          expected = expected.filter((held) => held !== each.remove);
        } else {
          map.set(each.set, true);
          expected = [...expected.filter((held) => held !== each.set), each.set].slice(-max);
        }
        expect([...map.keys()]).toEqual(expected);
      }
    }),
  );
});

it("does not grow when entries are set again and again", () => {
  const map = new BoundedMap<number, number>(200);
  const heapAfter = (rounds: number): number => {
    for (let round = 0; round < rounds; round += 1) map.set(round % 100, round);
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  const before = heapAfter(1000);
  // An iterator that is kept forever holds 60 MB after a million changes.
  expect(heapAfter(1_000_000) - before).toBeLessThan(10_000_000);
});
