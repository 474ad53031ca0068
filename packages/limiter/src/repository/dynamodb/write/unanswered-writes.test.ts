import { describe, expect, it } from "vitest";
import { imageOf, slotAttribute, type BucketImage } from "../items/bucket-item.ts";
import {
  OperationHistory,
  UnansweredWrite,
  UnansweredWrites,
  type WriteFate,
} from "./unanswered-writes.ts";

describe("the fate of a write without an answer", () => {
  it.each<[string, string, WriteFate]>([
    ["was applied when its slot holds its id", "me000.0005", "applied"],
    ["is open while its slot is as it was", "me000.0003", "pending"],
    ["is open after an older write of its process", "me000.0004", "pending"],
    ["is unknown when a later write of its process is there", "me000.0006", "unknown"],
    ["is unknown when another process took the slot over", "other.0001", "unknown"],
  ])("%s", (_, held, fate) => {
    const write = newWrite();
    const writes = new UnansweredWrites();
    writes.add(write);
    writes.learnFrom(imageWith(held));
    expect(write.fate).toBe(fate);
    expect(writes.oldestMark).toBe(fate === "pending" ? write.mark : undefined);
  });

  it("is open while the image shows nothing in its slot", () => {
    const write = newWrite();
    const writes = new UnansweredWrites();
    writes.add(write);
    writes.learnFrom(imageOf({}));
    writes.learnFrom(undefined);
    expect(write.fate).toBe("pending");
  });

  it("is that it was not applied once a later write of the process was", () => {
    const [first, second] = [newWrite(), newWrite()];
    const writes = new UnansweredWrites();
    writes.add(first);
    writes.add(second);
    writes.concludeOvertaken();
    expect([first.fate, second.fate]).toEqual(["not applied", "not applied"]);
    expect(writes.oldestMark).toBeUndefined();
  });

  it("is given up for the oldest of more than 32, and no other", () => {
    const all = Array.from({ length: 40 }, newWrite);
    const writes = new UnansweredWrites();
    for (const write of all) writes.add(write);
    expect(all.map(({ fate }) => fate)).toEqual([
      ...Array.from({ length: 8 }, () => "unknown"),
      ...Array.from({ length: 32 }, () => "pending"),
    ]);
    expect(writes.oldestMark).toBe(all[8]!.mark);
  });

  it("is unknown from the start without an id", () =>
    expect(new UnansweredWrite(undefined, SHARD).fate).toBe("unknown"));

  it("is waited for again, once, when an operation resumes its write", () => {
    const write = newWrite();
    const writes = new UnansweredWrites();
    writes.resume([write, write]);
    writes.resume([write]);
    writes.concludeOvertaken();
    expect(write.fate).toBe("not applied");
    expect(writes.oldestMark).toBeUndefined();
  });
});

describe("the history of an operation", () => {
  it("is applied when any of its writes was, whatever became of the others", () => {
    const writes = [newWrite(), newWrite(), newWrite()];
    const history = historyOf(writes);
    expect(history.fate).toBe("pending");
    expect(history.pending).toEqual(writes);
    writes[0]!.conclude("unknown");
    expect(history.fate).toBe("unknown");
    writes[1]!.conclude("applied");
    expect(history.fate).toBe("applied");
    expect(history.appliedTo).toBe(SHARD);
  });

  it("is that it was not applied when none of its writes was", () => {
    const write = newWrite();
    const history = historyOf([write]);
    write.conclude("not applied");
    expect(history.fate).toBe("not applied");
    expect(history.appliedTo).toBeUndefined();
  });

  it("keeps only what it charges once its give-back may have happened", () => {
    const history = historyOf([newWrite()]);
    expect(history).toMatchObject({ isUnanswered: true, onlyCharges: false });
    history.keepOnlyCharges();
    expect(history).toMatchObject({ isUnanswered: false, onlyCharges: true, fate: "not applied" });
  });
});

const SHARD = { creation: "c", divisor: 1 };

function newWrite(): UnansweredWrite {
  const mark = { id: "me000.0005", writer: "me000", slot: 1, seenId: "me000.0003" };
  return new UnansweredWrite(mark, SHARD);
}

function historyOf(writes: readonly UnansweredWrite[]): OperationHistory {
  const history = new OperationHistory();
  for (const write of writes) history.add(write);
  return history;
}

function imageWith(held: string): BucketImage {
  return imageOf({ [slotAttribute(1)]: { S: held } });
}
