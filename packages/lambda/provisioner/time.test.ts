import { expect, it } from "vitest";
import { withinTime, type Sleep } from "./time.ts";

/** Time that passes when a test says so. */
class Time {
  readonly #waiting: { readonly ms: number; readonly end: () => void }[] = [];
  open = 0;

  readonly sleep: Sleep = (ms, options) =>
    new Promise<void>((resolve, reject) => {
      this.open += 1;
      const leave = (settle: () => void) => () => {
        this.open -= 1;
        settle();
      };
      this.#waiting.push({ ms, end: leave(resolve) });
      options?.signal?.addEventListener(
        "abort",
        leave(() => reject(new Error("left"))),
      );
    });

  /** Ends the next wait, and returns how long it was. */
  async passes(): Promise<number> {
    while (this.#waiting.length === 0) await Promise.resolve();
    const { ms, end } = this.#waiting.shift()!;
    end();
    return ms;
  }
}

const left = (ms: number) => ({ getRemainingTimeInMillis: () => ms });

it("returns what the work returns, and stops watching", async () => {
  const time = new Time();
  expect(await withinTime(left(60_000), time.sleep, async () => "done")).toBe("done");
  await Promise.resolve();
  expect(time.open).toBe(0);
});

it.each([
  [60_000, 40_000],
  [900_000, 880_000],
  [3_000, 1_500],
])("of %i ms, stops the work after %i", async (leftMs, workMs) => {
  const time = new Time();
  const working = withinTime(left(leftMs), time.sleep, async (signal) => {
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    throw new Error(`stopped because ${(signal.reason as Error).message}`);
  });
  const failing = expect(working).rejects.toThrow(
    "stopped because The time of the function was over.",
  );
  expect(await time.passes()).toBe(workMs);
  await failing;
});

it("abandons work that does not stop, while there is time to answer", async () => {
  const time = new Time();
  const working = withinTime(left(60_000), time.sleep, () => new Promise<never>(() => {}));
  const failing = expect(working).rejects.toThrow("and what was under way did not end");
  expect([await time.passes(), await time.passes()]).toEqual([40_000, 10_000]);
  await failing;
});

it("works without an end if the context does not say how much time there is", async () => {
  const time = new Time();
  expect(await withinTime({}, time.sleep, async () => "done")).toBe("done");
  expect(time.open).toBe(0);
});
