import { expect, it } from "vitest";
import { computeCountedUntil, findReadable, type ShardProgress } from "./reading-order.ts";

const PARENT = { shardId: "parent", parentId: undefined };
const CHILD = { shardId: "child", parentId: "parent" };
const OTHER = { shardId: "other", parentId: "left long ago" };
const ALL = [PARENT, CHILD, OTHER];

function progress(
  times: Readonly<Record<string, number | "finished">>,
): Map<string, ShardProgress> {
  return new Map(
    Object.entries(times).map(([shardId, time]) => [
      shardId,
      {
        sequenceNumber: "1",
        countedUntilMs: time === "finished" ? undefined : time,
        isFinished: time === "finished",
      },
    ]),
  );
}

it("a child is read when its parent was read to its end, or has left the stream", () => {
  expect(findReadable(ALL, progress({}))).toEqual([PARENT, OTHER]);
  expect(findReadable(ALL, progress({ parent: "finished" }))).toEqual([CHILD, OTHER]);
});

it("the stream is counted as far as the shard that is furthest behind, once all are known", () => {
  expect(computeCountedUntil(ALL, progress({ parent: 100 }))).toBeUndefined();
  expect(computeCountedUntil(ALL, progress({ parent: 100, other: 50 }))).toBe(50);
  const later = progress({ parent: "finished", child: 200, other: 300 });
  expect(computeCountedUntil(ALL, later)).toBe(200);
});

it("it is unknown while the children of a shard that has ended are not in the list", () => {
  const ended = progress({ parent: "finished", other: 300 });
  expect(computeCountedUntil([PARENT, OTHER], ended)).toBeUndefined();
});
