import { EventEmitter, once } from "node:events";
import { describe, expect, it } from "vitest";
import { shardKey } from "../../../../test/support/shard-images.ts";
import { UndecidedCalls } from "./undecided-calls.ts";

const CHILD = { key: shardKey(0, "child") };
const PARENT = { key: shardKey(0, "parent") };
const OTHER = { key: shardKey(0, "other") };

describe("calls that take from several buckets", () => {
  it.each(["taken", new Error("away")])(
    "are waited for by calls on the same buckets, and by no others, until they end with %s",
    async (end) => {
      const calls = new UndecidedCalls();
      const ended: string[] = [];
      const decided = new EventEmitter();
      const taking = once(decided, "end").then(() => {
        if (end instanceof Error) throw end;
      });
      const noted = calls.note([CHILD, PARENT], taking).then(
        () => ended.push("call"),
        () => ended.push("call"),
      );
      expect([PARENT, OTHER].map((each) => calls.has(each))).toEqual([true, false]);
      const waits = calls.wait([PARENT, OTHER]).then(() => ended.push("wait"));
      await calls.wait([OTHER]);
      expect(ended).toEqual([]);
      decided.emit("end");
      await Promise.all([noted, waits]);
      expect(ended).toEqual(["call", "wait"]);
      expect([CHILD, PARENT].map((each) => calls.has(each))).toEqual([false, false]);
    },
  );
});
