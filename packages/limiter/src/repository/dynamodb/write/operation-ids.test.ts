import { seededRandom } from "zae-limiter/testing";
import { describe, expect, it } from "vitest";
import { SLOT_COUNT } from "../items/bucket-item.ts";
import {
  OperationIds,
  findPredecessor,
  withoutPredecessor,
  type OperationMark,
} from "./operation-ids.ts";

const NOW_MS = 1_800_000_000_000;
const NOW = { nowMs: NOW_MS };
const EMPTY: readonly (string | undefined)[] = Array.from({ length: SLOT_COUNT }, () => undefined);

describe("operation ids", () => {
  it("are never used twice, even while the image stays the same", () => {
    const ids = new OperationIds(seededRandom(1));
    const first = ids.next(EMPTY, NOW)!;
    const slots = withIds([first]);
    const later = Array.from({ length: 5000 }, () => ids.next(slots, NOW)!);
    expect(new Set(later.map(({ slot }) => slot))).toEqual(new Set([first.slot]));
    const all = [first, ...later].map(({ id }) => id);
    expect(new Set(all).size).toBe(5001);
    expect(all.toSorted()).toEqual(all);
  });

  it("grow with the clock, and do not go back with it", () => {
    const ids = new OperationIds(seededRandom(1));
    const all = [5, 5, 7, 3, 100_000, 2, 100_001].map(
      (ms) => ids.next(EMPTY, { nowMs: NOW_MS + ms })!.id,
    );
    expect(new Set(all.map((id) => id.split(".")[0])).size).toBe(1);
    expect(new Set(all).size).toBe(all.length);
    expect(all.toSorted()).toEqual(all);
  });

  it("have sixteen bytes, and fifteen more after a takeover", () => {
    const ids = new OperationIds(seededRandom(2));
    expect(ids.next(EMPTY, NOW)!.id).toMatch(/^\w{5}\.\w{9}<$/);
    const old = others(Array.from({ length: SLOT_COUNT }, () => NOW_MS - 1000));
    expect(ids.next(old, NOW)!.id).toMatch(/^\w{5}\.\w{9}<\w{5}\.\w{9}$/);
  });

  it("reuse the slot of a write without an answer, though it looks free", () => {
    const ids = new OperationIds(seededRandom(3));
    const pending = ids.next(EMPTY, NOW)!;
    for (let turn = 0; turn < 20; turn += 1)
      expect(ids.next(EMPTY, { ...NOW, pending })!.slot).toBe(pending.slot);
  });

  it("get another name when another process has the same one", () => {
    const ids = new OperationIds(seededRandom(4));
    const { writer } = ids.next(EMPTY, NOW)!;
    const slots = [`${writer}.zzzzzzz00`, ...EMPTY.slice(1)];
    const next = ids.next(slots, NOW)!;
    expect(next).toMatchObject({ slot: 0, seenId: slots[0] });
    expect(next.writer).not.toBe(writer);
    // The slot is still its own when the next write finds what it left there.
    expect(ids.next([next.id, ...EMPTY.slice(1)], NOW)!.slot).toBe(0);
  });
});

describe("a writer without a slot", () => {
  it("takes a free one before any that is in use", () => {
    const slots = others(Array.from({ length: SLOT_COUNT }, () => NOW_MS - 3_600_000));
    for (let seed = 0; seed < 20; seed += 1)
      expect(
        new OperationIds(seededRandom(seed)).next([...slots.slice(0, 3), ...EMPTY.slice(3)], NOW)!
          .slot,
      ).toBeGreaterThan(2);
  });

  it("always takes over the one that was written longest ago", () => {
    const times = Array.from({ length: SLOT_COUNT }, (_, slot) => NOW_MS - 1000 - slot);
    for (let seed = 0; seed < 20; seed += 1)
      expect(new OperationIds(seededRandom(seed)).next(others(times), NOW)).toMatchObject({
        slot: SLOT_COUNT - 1,
        seenId: others(times).at(-1),
      });
  });

  it("takes any of several that are equally old", () => {
    const slots = others(Array.from({ length: SLOT_COUNT }, () => NOW_MS - 1000));
    const taken = Array.from(
      { length: 100 },
      (_, seed) => new OperationIds(seededRandom(seed)).next(slots, NOW)!.slot,
    );
    expect(new Set(taken).size).toBe(SLOT_COUNT);
  });

  it("counts ids from the future as new", () => {
    const times = Array.from({ length: SLOT_COUNT }, () => NOW_MS + 60_000).with(5, NOW_MS - 500);
    expect(new OperationIds(seededRandom(7)).next(others(times), NOW)!.slot).toBe(5);
  });

  it("takes over the oldest when it has just begun, also while all are being written to", () => {
    const hot = others(Array.from({ length: SLOT_COUNT }, (_, slot) => NOW_MS - slot));
    expect(new OperationIds(seededRandom(8)).next(hot, NOW)?.slot).toBe(SLOT_COUNT - 1);
  });
});

describe("a writer that finds all slots written lately", () => {
  const lately = others(Array.from({ length: SLOT_COUNT }, () => NOW_MS - 1999));

  it("takes over eight in ten seconds, so that many processes soon leave each other alone", () => {
    const ids = new OperationIds(seededRandom(10));
    const marks = Array.from({ length: 20 }, () => ids.next(lately, NOW));
    expect(marks.filter((mark) => mark !== undefined)).toHaveLength(8);
    const later = others(Array.from({ length: SLOT_COUNT }, () => NOW_MS + 9000));
    expect(ids.next(later, { nowMs: NOW_MS + 9999 })).toBeUndefined();
    expect(ids.next(later, { nowMs: NOW_MS + 10_000 })).toBeDefined();
  });

  it("takes over as many as it likes that were not written for two seconds", () => {
    const ids = new OperationIds(seededRandom(10));
    for (let turn = 0; turn < 20; turn += 1)
      expect(ids.next(lately, { nowMs: NOW_MS + 1 })).toBeDefined();
  });
});

describe("what a slot held before", () => {
  it("is kept behind the id, for as long as a write waits for an answer", () => {
    const ids = new OperationIds(seededRandom(5));
    const slots = others(Array.from({ length: SLOT_COUNT }, () => NOW_MS - 1000));
    const first = ids.next(slots, NOW)!;
    expect(findPredecessor(first.id)).toBe(withoutPredecessor(first.seenId!));
    const later = (after: OperationMark, ms: number): OperationMark =>
      ids.next(slots.with(after.slot, after.id), { nowMs: NOW_MS + ms })!;
    const second = later(first, 29_999);
    expect(findPredecessor(second.id)).toBe(findPredecessor(first.id));
    expect(findPredecessor(later(second, 30_000).id)).toBeUndefined();
  });

  it("is known to be nothing when it was free", () => {
    const ids = new OperationIds(seededRandom(5));
    const first = ids.next(EMPTY, NOW)!;
    expect(findPredecessor(first.id)).toBe("");
    const much = { nowMs: NOW_MS + 3_600_000 };
    expect(findPredecessor(ids.next(withIds([first]), much)!.id)).toBe("");
  });

  it("is an id without the one before it", () => {
    const [one, two] = [6, 7].map((seed) => new OperationIds(seededRandom(seed)));
    const all = others(Array.from({ length: SLOT_COUNT }, () => NOW_MS - 1000));
    const first = one!.next(all, NOW)!;
    const pending = { ...first, writer: "none" };
    const second = two!.next(all.with(first.slot, first.id), { ...NOW, pending })!;
    expect(findPredecessor(second.id)).toBe(withoutPredecessor(first.id));
  });
});

describe("processes on one bucket", () => {
  it.each([6, SLOT_COUNT])("always have an id for their writes: %i that live", (live) => {
    const processes = Array.from(
      { length: live },
      (_, seed) => new OperationIds(seededRandom(seed)),
    );
    let slots = others(Array.from({ length: SLOT_COUNT }, () => NOW_MS - 300));
    const random = seededRandom(9);
    const ownersAtTheEnd = new Set<string>();
    for (let turn = 0; turn < 200 * live; turn += 1) {
      const process = processes[Math.floor(random() * live)]!;
      const mark = process.next(slots, { nowMs: NOW_MS + turn })!;
      expect(mark).toBeDefined();
      if (turn > 100 * live) ownersAtTheEnd.add(`${mark.slot} ${mark.writer}`);
      slots = slots.with(mark.slot, mark.id);
    }
    // Each has its slot, and none takes another's.
    expect(ownersAtTheEnd.size).toBe(live);
  });

  it("always have an id for their writes: 40 that end after five", () => {
    let slots = EMPTY;
    for (let seed = 0; seed < 40; seed += 1) {
      const process = new OperationIds(seededRandom(seed));
      const marks = Array.from({ length: 5 }, (_, turn) => {
        const mark = process.next(slots, { nowMs: NOW_MS + seed * 50 + turn * 10 })!;
        slots = slots.with(mark.slot, mark.id);
        return mark;
      });
      expect(new Set(marks.map(({ slot }) => slot)).size).toBe(1);
    }
  });
});

function withIds(marks: readonly OperationMark[]): readonly (string | undefined)[] {
  return marks.reduce((slots, { slot, id }) => slots.with(slot, id), EMPTY);
}

/** Slots of other writers, by when they were written. */
function others(times: readonly number[]): readonly (string | undefined)[] {
  return times.map(
    (nowMs, index) => new OperationIds(seededRandom(1000 + index)).next(EMPTY, { nowMs })!.id,
  );
}
