import { describe, expect, it } from "vitest";
import { ManualClock } from "../../../testing/fakes/manual-clock.ts";
import { TableUnavailable, TransactionCancelled } from "./table-errors.ts";
import { isTransient, pauseMs, retry } from "./retry.ts";

const busy = new TableUnavailable("busy", { ambiguous: false, throttled: true, timedOut: false });
const late = new TableUnavailable("late", { ambiguous: true, throttled: false, timedOut: true });

const attempts = (
  errors: readonly Error[],
  maxAttempts: number,
): { count: () => number; result: Promise<string>; clock: ManualClock } => {
  const clock = new ManualClock();
  let count = 0;
  const attempt = async (): Promise<string> => {
    const error = errors[count];
    count += 1;
    if (error !== undefined) throw error;
    return "done";
  };
  return {
    count: () => count,
    result: retry(attempt, { clock, random: () => 0.5, maxAttempts, maxPauseMs: 1000 }),
    clock,
  };
};

describe("retrying", () => {
  it("pauses longer each time, and never beyond the longest pause", () => {
    expect([1, 2, 3, 4].map((attempt) => pauseMs(attempt, 100, 1))).toEqual([26, 51, 101, 101]);
    expect(pauseMs(1000, 100, 0)).toBe(1);
  });

  it("waits after a throttled attempt", async () => {
    const { count, result, clock } = attempts([busy], 3);
    await clock.advance(12);
    expect(count()).toBe(1);
    await clock.advance(1);
    expect(await result).toBe("done");
  });

  it("does not wait after an attempt that used up its time-out", async () => {
    const { count, result } = attempts([late, late], 3);
    expect(await result).toBe("done");
    expect(count()).toBe(3);
  });

  it("ends with the last error", async () => {
    const { count, result } = attempts([late, late, late], 2);
    await expect(result).rejects.toBe(late);
    expect(count()).toBe(2);
  });

  it("does not retry what failed for good", async () => {
    const refused = new TransactionCancelled([
      { code: "ConditionalCheckFailed", item: undefined },
      { code: "TransactionConflict", item: undefined },
    ]);
    expect(isTransient(refused)).toBe(false);
    await expect(attempts([refused], 3).result).rejects.toBe(refused);
    expect(
      isTransient(
        new TransactionCancelled([
          { code: "None", item: undefined },
          { code: "TransactionConflict", item: undefined },
        ]),
      ),
    ).toBe(true);
    expect(isTransient(new TypeError("bug"))).toBe(false);
  });
});
