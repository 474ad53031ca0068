import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { resourceAuditId, ulid, ulidTime } from "./audit.ts";

const time = fc.integer({ min: 0, max: 2 ** 48 - 1 });
const fraction = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

describe("event ids", () => {
  it("are ULIDs: 26 characters of Crockford's alphabet", () => {
    fc.assert(
      fc.property(time, fc.nat({ max: 1_000_000 }), fraction, (timeMs, sequence, random) => {
        expect(ulid(timeMs, sequence, () => random)).toMatch(/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
      }),
    );
  });

  it("sort by time, then by sequence, not by their random part", () => {
    fc.assert(
      fc.property(
        time,
        time,
        fc.nat({ max: 1_000_000 }),
        fc.nat({ max: 1_000_000 }),
        fraction,
        fraction,
        (one, other, first, second, left, right) => {
          const [a, b] = [ulid(one, first, () => left), ulid(other, second, () => right)];
          if (one !== other) expect(a < b).toBe(one < other);
          else if (first !== second) expect(a < b).toBe(first < second);
        },
      ),
    );
  });

  it("hold the time in their first ten characters", () => {
    expect(ulidTime(0)).toBe("0000000000");
    expect(ulidTime(1_469_918_176_385)).toBe("01ARYZ6S41");
    expect(ulid(1_469_918_176_385, 0, () => 0)).toBe("01ARYZ6S410000000000000000");
    expect(ulidTime(-5)).toBe("0000000000");
  });

  it("for the defaults of a resource are filed under a name that no entity can have", () => {
    expect(resourceAuditId("gpt-4")).toBe("$RESOURCE:gpt-4");
  });
});
