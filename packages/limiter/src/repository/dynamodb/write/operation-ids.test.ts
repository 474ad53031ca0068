import { seededRandom } from "zae-limiter/testing";
import { describe, expect, it } from "vitest";
import { OperationIds } from "./operation-ids.ts";

const EMPTY = [undefined, undefined, undefined, undefined];

describe("operation ids", () => {
  it("are never used twice, even while the image stays the same", () => {
    const ids = new OperationIds(seededRandom(1));
    const first = ids.next(EMPTY)!;
    const slots = EMPTY.map((_, slot) => (slot === first.slot ? first.id : undefined));
    const later = [ids.next(slots)!, ids.next(slots)!, ids.next(slots)!];
    expect(later.map(({ slot }) => slot)).toEqual([first.slot, first.slot, first.slot]);
    const all = [first, ...later].map(({ id }) => id);
    expect(new Set(all).size).toBe(4);
    expect(all.toSorted()).toEqual(all);
  });

  it("have at most ten bytes", () =>
    expect(new OperationIds(seededRandom(2)).next(EMPTY)!.id).toHaveLength(10));

  it("reuse the slot of a write without an answer, though it looks free", () => {
    const ids = new OperationIds(seededRandom(3));
    const pending = ids.next(EMPTY)!;
    for (let turn = 0; turn < 20; turn += 1)
      expect(ids.next(EMPTY, pending)!.slot).toBe(pending.slot);
  });

  it("get another name when another process has the same one", () => {
    const ids = new OperationIds(seededRandom(4));
    const { writer } = ids.next(EMPTY)!;
    const next = ids.next([`${writer}.zzzz`, undefined, undefined, undefined])!;
    expect(next).toMatchObject({ slot: 0, seenId: `${writer}.zzzz` });
    expect(next.writer).not.toBe(writer);
  });

  it("are not available when all slots are taken, except now and then", () => {
    const ids = new OperationIds(seededRandom(5));
    const marks = Array.from({ length: 100 }, () =>
      ids.next(["a.0000", "b.0000", "c.0000", "d.0000"]),
    );
    const taken = marks.filter((mark) => mark !== undefined).length;
    expect(taken).toBeGreaterThan(0);
    expect(taken).toBeLessThan(50);
  });
});
