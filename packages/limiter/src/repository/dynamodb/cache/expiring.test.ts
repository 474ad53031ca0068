import { describe, expect, it } from "vitest";
import { ManualClock } from "zae-limiter/testing";
import { heldAnswer, type HeldAnswer } from "../../../../test/support/held-answer.ts";
import { Expiring } from "./expiring.ts";

const TTL_MS = 1000;

describe("a remembered value", () => {
  it("is believed until it is as old as its time to live", async () => {
    const { clock, values, reads } = remembering();
    expect(await values.get("a")).toBe("a1");
    await clock.advance(TTL_MS - 1);
    expect([values.fresh("a"), values.get("a")]).toEqual(["a1", "a1"]);
    await clock.advance(1);
    expect(values.fresh("a")).toBeUndefined();
    expect(await values.get("a")).toBe("a2");
    expect(reads).toEqual(["a", "a"]);
  });

  it("is as old as its read, however long that took", async () => {
    const { clock, values, answers } = heldBack();
    const reading = values.get("a");
    await clock.advance(TTL_MS);
    answers[0]!.resolve("late");
    expect(await reading).toBe("late");
    expect(values.fresh("a")).toBeUndefined();
  });

  it("is not believed when the clock was set back to before it was read", async () => {
    const { clock, values } = remembering();
    await values.get("a");
    clock.set(clock.now() - 1);
    expect(values.fresh("a")).toBeUndefined();
  });

  it("is forgotten when too many others were read since, the oldest first", async () => {
    const { clock, values } = remembering({ maxValues: 2 });
    for (const key of ["a", "b", "a", "c"]) await values.get(key);
    expect(["a", "b", "c"].map((key) => values.fresh(key))).toEqual([undefined, "b1", "c1"]);
    await clock.advance(TTL_MS);
    for (const key of ["b", "d"]) await values.get(key);
    expect(values.fresh("b")).toBe("b2");
  });
});

describe("a read", () => {
  it("is shared by those who ask while it is under way", async () => {
    const { values, answers } = heldBack();
    const both = [values.get("a"), values.get("a")];
    answers[0]!.resolve("one");
    expect(await Promise.all(both)).toEqual(["one", "one"]);
    expect(answers).toHaveLength(1);
  });

  it("that fails is not remembered, and fails all who share it", async () => {
    const { values, answers } = heldBack();
    const both = [values.get("a"), values.get("a")];
    answers[0]!.reject(new Error("away"));
    expect(await Promise.allSettled(both)).toMatchObject([
      { status: "rejected" },
      { status: "rejected" },
    ]);
    const next = values.get("a");
    answers[1]!.resolve("there");
    expect(await next).toBe("there");
  });

  it("does not overwrite what was learnt while it was under way", async () => {
    const { values, answers } = heldBack();
    const reading = values.get("a");
    values.learn("a", "learnt");
    answers[0]!.resolve("old");
    expect(await reading).toBe("old");
    expect(values.fresh("a")).toBe("learnt");
  });

  it("is not remembered, nor shared, when its key was forgotten while it was under way", async () => {
    const { values, answers } = heldBack();
    const before = values.get("a");
    values.forget("a");
    const after = values.get("a");
    answers[0]!.resolve("old");
    expect(await before).toBe("old");
    expect(values.fresh("a")).toBeUndefined();
    answers[1]!.resolve("new");
    expect(await after).toBe("new");
    expect(values.fresh("a")).toBe("new");
  });
});

/** Values that are read at once: the key, and how often it was read. */
function remembering({ maxValues }: { readonly maxValues?: number } = {}): {
  readonly clock: ManualClock;
  readonly values: Expiring<string>;
  readonly reads: readonly string[];
} {
  const clock = new ManualClock();
  const reads: string[] = [];
  const read = async (key: string): Promise<string> => {
    reads.push(key);
    return `${key}${reads.filter((other) => other === key).length}`;
  };
  const bound = maxValues === undefined ? {} : { maxValues };
  return { clock, reads, values: new Expiring({ read, clock, ttlMs: TTL_MS, ...bound }) };
}

/** Values whose reads the test answers, one after another. */
function heldBack(): {
  readonly clock: ManualClock;
  readonly values: Expiring<string>;
  readonly answers: readonly HeldAnswer<string>[];
} {
  const clock = new ManualClock();
  const answers: HeldAnswer<string>[] = [];
  const read = (): Promise<string> => {
    const answer = heldAnswer<string>();
    answers.push(answer);
    return answer.promise;
  };
  return { clock, answers, values: new Expiring({ read, clock, ttlMs: TTL_MS }) };
}
