import { describe, expect, it } from "vitest";
import { ManualClock } from "../testing/fakes/manual-clock.ts";
import { CorrectedClock } from "./system-clock.ts";

const START_MS = Date.UTC(2026, 0, 1);

function getHeader(timeMs: number): string {
  return new Date(timeMs).toUTCString();
}

describe("a corrected clock", () => {
  it("is the process clock if that is about right", () => {
    const clock = new CorrectedClock(new ManualClock(START_MS));
    clock.learn(getHeader(START_MS + 2000));
    expect(clock.now()).toBe(START_MS);
  });

  it.each([-60_000, 60_000])(
    "corrects a process clock that is off by %i ms, and keeps the correction while the header jitters",
    (wrongMs) => {
      const local = new ManualClock(START_MS + wrongMs);
      const clock = new CorrectedClock(local);
      clock.learn(getHeader(START_MS));
      expect(clock.now()).toBe(START_MS);
      local.set(START_MS + wrongMs + 1500);
      clock.learn(getHeader(START_MS + 3000));
      expect(clock.now()).toBe(START_MS + 1500);
    },
  );

  it("drops the correction when the process clock is right again", () => {
    const local = new ManualClock(START_MS - 60_000);
    const clock = new CorrectedClock(local);
    clock.learn(getHeader(START_MS));
    local.set(START_MS + 5000);
    clock.learn(getHeader(START_MS + 5000));
    expect(clock.now()).toBe(START_MS + 5000);
  });

  it("ignores a header that is missing or not a date", () => {
    const clock = new CorrectedClock(new ManualClock(START_MS));
    clock.learn(undefined);
    clock.learn("yesterday");
    expect(clock.now()).toBe(START_MS);
  });

  it("checks the header once a second", () => {
    const local = new ManualClock(START_MS);
    const clock = new CorrectedClock(local);
    clock.learn(getHeader(START_MS));
    clock.learn(getHeader(START_MS + 60_000));
    expect(clock.now()).toBe(START_MS);
    local.set(START_MS + 1000);
    clock.learn(getHeader(START_MS + 61_000));
    expect(clock.now()).toBe(START_MS + 61_000);
  });
});
