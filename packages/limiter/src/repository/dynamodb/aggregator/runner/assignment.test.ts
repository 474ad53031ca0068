import { describe, expect, it } from "vitest";
import { assignmentOf, countedUntil, type Assignment, type View } from "./assignment.ts";
import type { ShardState } from "./shard-states.ts";

const NOW_MS = 1_000_000;
const LABEL = "label";

interface Situation {
  /** Shards and their parents: `b<a`. */
  readonly shards: string;
  readonly states?: readonly (Partial<ShardState> & { readonly shardId: string })[];
  readonly waiting?: readonly string[];
  readonly held?: readonly string[];
  readonly done?: readonly string[];
}

function assigned(situation: Situation): Assignment {
  return assignmentOf(viewOf(situation));
}

function viewOf(situation: Situation): View {
  const { shards, states = [], waiting = [], held = [], done = [] } = situation;
  return {
    streamLabel: LABEL,
    runnerId: "me",
    nowMs: NOW_MS,
    shards: shards.split(" ").map((text) => {
      const [shardId = "", parentId] = text.split("<");
      return { shardId, parentId };
    }),
    stored: {
      shards: new Map(states.map((state) => [state.shardId, { ...FREE, ...state }])),
      waiting,
    },
    held: new Set(held),
    done: new Set(done),
  };
}

const FREE = {
  streamLabel: LABEL,
  owner: undefined,
  leaseUntilMs: 0,
  sequenceNumber: undefined,
  countedUntilMs: undefined,
  isFinished: false,
};

function counted(shards: string, states: NonNullable<Situation["states"]>): number | undefined {
  return countedUntil(viewOf({ shards, states }));
}

describe("everything is counted until the time of the shard that is furthest behind", () => {
  const a = { shardId: "a", countedUntilMs: 500 };

  it("of all that can be read, whoever reads them, or nobody", () => {
    expect(counted("a", [a])).toBe(500);
    expect(counted("a b", [a, { shardId: "b", countedUntilMs: 300, owner: "other" }])).toBe(300);
  });

  it("and until no time that is known, while one of them does not tell", () => {
    expect(counted("a b", [a])).toBeUndefined();
    expect(counted("a b", [a, { shardId: "b" }])).toBeUndefined();
    const earlier = { shardId: "b", countedUntilMs: 300, streamLabel: "earlier" };
    expect(counted("a b", [a, earlier])).toBeUndefined();
  });

  it("where a parent speaks for its children until it was read to its end, and they do then", () => {
    expect(counted("a b<a c<a", [a])).toBe(500);
    const finished = { ...a, isFinished: true };
    expect(counted("a b<a c<a", [finished])).toBeUndefined();
    const children = ["b", "c"].map((shardId, index) => ({ shardId, countedUntilMs: 600 + index }));
    expect(counted("a b<a c<a", [finished, ...children])).toBe(600);
  });

  it("and until no time that is known, while the list lacks children of a shard that has ended", () => {
    expect(
      counted("a b", [
        { ...a, isFinished: true },
        { ...a, shardId: "b" },
      ]),
    ).toBeUndefined();
  });
});

describe("a child is read", () => {
  it("not before its parent was read to its end", () => {
    expect(assigned({ shards: "a b<a c<b" }).take).toEqual(["a"]);
    const states = [{ shardId: "a", isFinished: true }];
    expect(assigned({ shards: "a b<a c<b", states }).take).toEqual(["b"]);
  });

  it("when its parent has left the stream", () => {
    expect(assigned({ shards: "b<a c<a" }).take).toEqual(["b", "c"]);
  });

  it("not because a shard of the same name was finished in an earlier stream", () => {
    const states = [{ shardId: "a", isFinished: true, streamLabel: "earlier" }];
    expect(assigned({ shards: "a b<a", states }).take).toEqual(["a"]);
  });
});

describe("a lease", () => {
  const states = [{ shardId: "a", owner: "other", leaseUntilMs: NOW_MS }];

  it("is left alone while it lasts", () => {
    expect(assigned({ shards: "a", states })).toMatchObject({
      take: [],
      ofOthers: [{ shardId: "a" }],
    });
  });

  it("is taken when it has ended", () => {
    const ended = [{ ...states[0]!, leaseUntilMs: NOW_MS - 1 }];
    expect(assigned({ shards: "a", states: ended })).toMatchObject({ take: ["a"], ofOthers: [] });
  });

  it("of a runner that lost sight of it is taken back", () => {
    const own = [{ ...states[0]!, owner: "me" }];
    expect(assigned({ shards: "a", states: own }).take).toEqual(["a"]);
  });
});

describe("the shards are divided", () => {
  it("so that a runner alone reads all", () => {
    expect(assigned({ shards: "a b c d e" }).take).toEqual(["a", "b", "c", "d", "e"]);
  });

  it("so that a runner leaves the rest to one that waits", () => {
    expect(assigned({ shards: "a b c d e", waiting: ["other"] }).take).toEqual(["a", "b", "c"]);
  });

  it("so that a runner gives back what is beyond its share", () => {
    const held = ["a", "b", "c", "d"];
    expect(assigned({ shards: "a b c d", held, waiting: ["other"] }).giveBack).toEqual(["c", "d"]);
    expect(assigned({ shards: "a b c d", held }).giveBack).toEqual([]);
  });

  it("so that runners with a lease count, and those that died do not", () => {
    const lease = { shardId: "a", owner: "other" };
    const alive = [{ ...lease, leaseUntilMs: NOW_MS + 1 }];
    expect(assigned({ shards: "a b c d", states: alive }).take).toEqual(["b", "c"]);
    const dead = [{ ...lease, leaseUntilMs: NOW_MS - 1 }];
    expect(assigned({ shards: "a b c d", states: dead }).take).toEqual(["a", "b", "c", "d"]);
  });

  it("without those that are done or finished", () => {
    const states = [{ shardId: "b", isFinished: true }];
    expect(assigned({ shards: "a b c", states, done: ["a"] })).toMatchObject({
      take: ["c"],
      open: ["c"],
    });
  });
});
