import { describe, expect, it } from "vitest";
import { NOW_MS, shardImage, type StoredShard } from "../../../../test/support/shard-images.ts";
import type { BucketImage } from "../items/bucket-item.ts";
import type { OperationMark } from "./operation-ids.ts";
import {
  fateIn,
  OperationHistory,
  UnansweredWrite,
  UnansweredWrites,
  type RequiredState,
  type Since,
  type WriteFate,
} from "./unanswered-writes.ts";

const [OLDEST, SEEN, OLDER, ID, LATER] = [2, 3, 4, 5, 6].map((order) => `me000.00000000${order}`);
const OTHER = "other.000000001";
const SHARD = { creation: "other.0000", divisor: 1, splitAtMs: undefined };
const TAKE: RequiredState = { version: 5, refilledAtMs: undefined };
const REFILL: RequiredState = { version: 5, refilledAtMs: NOW_MS };

type Fates = readonly [WriteFate, WriteFate, WriteFate, WriteFate];

describe("the slot of a write without an answer", () => {
  const OVER: Fates = ["pending", "not applied", "not applied", "pending"];
  const TAKEN: Fates = ["not applied", "not applied", "not applied", "unknown"];

  // What the slot holds, and the fate when nothing, the stamp or the version has moved on, and when
  // nothing follows from the image.
  it.each<[string, string | undefined, Fates]>([
    ["its own id", ID, always("applied")],
    ["what it required", SEEN, OVER],
    ["an older id of its writer", OLDER, OVER],
    ["an id before the one that it required", OLDEST, OVER],
    ["a later id of its writer", LATER, always("unknown")],
    ["another writer's id", OTHER, always("unknown")],
    ["another writer's id that took its own over", `${OTHER}<${ID}`, always("applied")],
    ["another writer's id that took over what it required", `${OTHER}<${SEEN}`, TAKEN],
    ["another writer's id that took over an older one", `${OTHER}<${OLDER}`, TAKEN],
    ["another writer's id that took over a later one", `${OTHER}<${LATER}`, always("unknown")],
    ["another writer's id that took over a third's", `${OTHER}<third.000000001`, always("unknown")],
    ["another writer's id that found it free", `${OTHER}<`, always("unknown")],
    ["nothing", undefined, ["pending", "pending", "unknown", "pending"]],
  ])("shows what became of it: %s", (_, held, fates) => {
    expect(listFates(held, SEEN)).toEqual(fates);
  });

  it("that was free proves nothing once the version has moved on, but does before", () => {
    expect(listFates(undefined, undefined)).toEqual([
      "pending",
      "not applied",
      "unknown",
      "pending",
    ]);
    const found = ["not applied", "not applied", "unknown", "unknown"];
    expect(listFates(`${OTHER}<`, undefined)).toEqual(found);
    expect(listFates(OTHER, undefined)).toEqual(always("unknown"));
  });

  it("that was another's proves what it does while that id is there, or directly before", () => {
    expect(listFates(`${OTHER}<${SEEN}`, `${OTHER}<${SEEN}`)).toEqual(OVER);
    expect(listFates(`third.000000001<${OTHER}`, `${OTHER}<${SEEN}`)).toEqual(TAKEN);
    expect(listFates("third.000000001", OTHER)).toEqual(always("unknown"));
  });

  function listFates(held: string | undefined, seenId: string | undefined): readonly WriteFate[] {
    const mark = { ...buildMark({ id: `${ID}<${OTHER}` }), seenId };
    const all: readonly Since[] = ["unmoved", "stamp moved", "version moved", "unrelated"];
    const slots = [undefined, held === ID ? mark.id : held];
    return all.map((since) => fateIn(slots, mark, since));
  }
});

describe("an image", () => {
  it.each<[string, RequiredState, StoredShard, WriteFate]>([
    ["as the write required it leaves it open", REFILL, {}, "pending"],
    ["of a later version proves that it was not applied", TAKE, { version: 6 }, "not applied"],
    ["of an earlier version, from an old answer, proves nothing", TAKE, { version: 4 }, "pending"],
    [
      "of a later refill proves that a refill was not applied",
      REFILL,
      { refilledAtMs: NOW_MS + 1 },
      "not applied",
    ],
    [
      "of a later refill proves nothing about a take, which allows it",
      TAKE,
      { refilledAtMs: NOW_MS + 1 },
      "pending",
    ],
    [
      "of an earlier refill, from an old answer, proves nothing",
      REFILL,
      { refilledAtMs: NOW_MS - 1 },
      "pending",
    ],
    [
      "of a later refill but an earlier version proves nothing",
      REFILL,
      { version: 4, refilledAtMs: NOW_MS + 1 },
      "pending",
    ],
    [
      "of a bucket that was created in its place proves nothing",
      TAKE,
      { version: 6, creation: "third.0000" },
      "pending",
    ],
  ])("%s", (_, requires, stored, fate) => {
    const write = newWrite({ requires });
    const writes = buildList(write);
    writes.learnFrom(imageWith(SEEN, stored));
    expect(write.fate).toBe(fate);
    expect(writes.oldestMark).toBe(fate === "pending" ? write.mark : undefined);
  });

  it("of an earlier version, from an old answer, does not show who took the slot over", () => {
    const write = newWrite();
    buildList(write).learnFrom(imageWith(OTHER, { version: 4 }));
    expect(write.fate).toBe("pending");
  });

  it("that does not exist proves nothing", () => {
    const write = newWrite();
    expect(buildList(write).learnFrom(undefined)).toEqual([]);
    expect(write.fate).toBe("pending");
  });

  it("shows by its creation that a write created the bucket, whichever write has its slot", () => {
    const write = newWrite({ creates: true });
    expect(buildList(write).learnFrom(imageWith(OTHER, { creation: ID! }))).toEqual([write]);
    expect(write.fate).toBe("applied");
  });

  it("of another creation leaves open whether a write created one, until a later write shows it", () => {
    const write = newWrite({ creates: true });
    const writes = buildList(write);
    writes.learnFrom(imageWith(OTHER, { version: 9 }));
    expect([write.fate, writes.oldestMark]).toEqual(["pending", undefined]);
    writes.concludeOvertaken(buildMark({ id: LATER!, slot: 3 }));
    expect(write.fate).toBe("not applied");
  });

  it("that shows a later write applied shows that those before it in its slot were not", () => {
    const [elsewhere, first, second, third] = [
      newWrite({ slot: 2 }),
      newWrite({ id: OLDER! }),
      newWrite(),
      newWrite({ id: LATER! }),
    ];
    const writes = buildList(elsewhere, first, second, third);
    expect(writes.learnFrom(imageWith(ID))).toEqual([second]);
    expect([elsewhere, first, second, third].map(({ fate }) => fate)).toEqual([
      "pending",
      "not applied",
      "applied",
      "pending",
    ]);
  });
});

describe("the fate of a write without an answer", () => {
  it("is that it was not applied once a later write of the process was, in the same slot", () => {
    const [first, second, elsewhere] = [newWrite(), newWrite(), newWrite({ slot: 2 })];
    const writes = buildList(first, second, elsewhere);
    writes.concludeOvertaken(buildMark({ id: LATER! }));
    expect([first, second, elsewhere].map(({ fate }) => fate)).toEqual([
      "not applied",
      "not applied",
      "pending",
    ]);
    expect(writes.oldestMark).toBe(elsewhere.mark);
    expect(writes.isEmpty).toBe(false);
  });

  it("is given up for the oldest of more than 32, and no other", () => {
    const all = Array.from({ length: 40 }, () => newWrite());
    const writes = buildList(...all);
    expect(all.map(({ fate }) => fate)).toEqual([
      ...Array.from({ length: 8 }, () => "unknown"),
      ...Array.from({ length: 32 }, () => "pending"),
    ]);
    expect(writes.oldestMark).toBe(all[8]!.mark);
  });

  it("is unknown from the start without an id, whatever is seen later", () => {
    const write = new UnansweredWrite({
      mark: undefined,
      incarnation: SHARD,
      requires: TAKE,
      takes: [],
    });
    write.learnFrom(imageWith(SEEN, { version: 6 }));
    expect(write.fate).toBe("unknown");
  });

  it("is waited for again, once, when an operation resumes its write", () => {
    const write = newWrite();
    const writes = new UnansweredWrites();
    writes.resume([write, write]);
    writes.resume([write]);
    writes.concludeOvertaken(buildMark({ id: LATER! }));
    expect(write.fate).toBe("not applied");
    expect(writes.isEmpty).toBe(true);
  });
});

describe("the history of an operation", () => {
  it("is applied when any of its writes was, whatever became of the others", () => {
    const writes = [newWrite(), newWrite(), newWrite()];
    const history = buildHistory(writes);
    expect(history.fate).toBe("pending");
    expect(history.pending).toEqual(writes);
    writes[0]!.conclude("unknown");
    expect(history.fate).toBe("unknown");
    writes[1]!.conclude("applied");
    expect(history.fate).toBe("applied");
    expect(history.applied?.incarnation).toBe(SHARD);
  });

  it("is that it was not applied when none of its writes was", () => {
    const write = newWrite();
    const history = buildHistory([write]);
    write.conclude("not applied");
    expect(history.fate).toBe("not applied");
    expect(history.applied?.incarnation).toBeUndefined();
  });

  it("keeps only what it charges once its give-back may have happened", () => {
    const history = buildHistory([newWrite()]);
    expect(history).toMatchObject({ isUnanswered: true, onlyCharges: false });
    history.keepOnlyCharges();
    expect(history).toMatchObject({ isUnanswered: false, onlyCharges: true, fate: "not applied" });
  });
});

function always(fate: WriteFate): Fates {
  return [fate, fate, fate, fate];
}

function buildMark({
  id = ID!,
  slot = 1,
}: { readonly id?: string; readonly slot?: number } = {}): OperationMark {
  return { id, writer: "me000", slot, seenId: SEEN, afterUnanswered: false };
}

function newWrite({
  requires = TAKE,
  creates = false,
  ...mark
}: {
  readonly id?: string;
  readonly slot?: number;
  readonly requires?: RequiredState;
  readonly creates?: boolean;
} = {}): UnansweredWrite {
  return new UnansweredWrite({
    mark: buildMark(mark),
    incarnation: SHARD,
    requires: creates ? undefined : requires,
    takes: [],
  });
}

function buildList(...all: readonly UnansweredWrite[]): UnansweredWrites {
  const writes = new UnansweredWrites();
  for (const write of all) writes.add(write);
  return writes;
}

function buildHistory(writes: readonly UnansweredWrite[]): OperationHistory {
  const history = new OperationHistory();
  for (const write of writes) history.add(write);
  return history;
}

/** An image whose second slot and, if it is another, third slot hold what they did. */
function imageWith(held: string | undefined, stored: StoredShard = {}): BucketImage {
  return { ...shardImage(stored), slots: [undefined, held, SEEN] };
}
