import { describe, expect, it } from "vitest";
import { shardKey } from "../../../../test/support/shard-images.ts";
import { UndecidedCalls } from "./undecided-calls.ts";

const CHILD = { key: shardKey(0, "child") };
const PARENT = { key: shardKey(0, "parent") };
const OTHER = { key: shardKey(0, "other") };

describe("calls that take from several buckets", () => {
  it("are waited for by calls on the same buckets, and by no others", async () => {
    const calls = new UndecidedCalls();
    let resolve = (_outcome: string): void => {};
    const taking = new Promise<string>((each) => {
      resolve = each;
    });
    const noted = calls.note([CHILD, PARENT], taking, (outcome) => outcome === "undone");
    expect([calls.has([PARENT]), calls.has([OTHER])]).toEqual([true, false]);
    const waits = calls.wait([PARENT, OTHER]);
    expect(await calls.wait([OTHER])).toBe(false);
    resolve("undone");
    expect(await noted).toBe("undone");
    expect(await waits).toBe(true);
    expect(calls.has([CHILD, PARENT])).toBe(false);
  });

  it("leave nothing to look for when they keep what they took", async () => {
    const calls = new UndecidedCalls();
    const noted = calls.note([CHILD], Promise.resolve("taken"), () => false);
    expect(await calls.wait([CHILD])).toBe(false);
    expect(await noted).toBe("taken");
  });

  it("count as undone when they fail: what they took goes back, or nothing was taken", async () => {
    const calls = new UndecidedCalls();
    const noted = calls.note([CHILD], Promise.reject(new Error("away")), () => false);
    const waits = calls.wait([CHILD]);
    await expect(noted).rejects.toThrow("away");
    expect(await waits).toBe(true);
  });
});
