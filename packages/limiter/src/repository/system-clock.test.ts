import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { CorrectedClock, startAlarm, systemClock } from "./system-clock.ts";

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 });
});
afterEach(() => {
  vi.useRealTimers();
});

it("returns the system time, and sleeps with timers", async () => {
  expect(systemClock.now()).toBe(1_000_000);
  let awake = false;
  const sleeping = systemClock.sleep(50).then(() => (awake = true));
  await vi.advanceTimersByTimeAsync(49);
  expect(awake).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(awake).toBe(true);
  await sleeping;
});

it("sleeps for longer than a timer can, in several parts", async () => {
  let awake = false;
  const sleeping = systemClock.sleep(2 ** 31 + 10).then(() => (awake = true));
  await vi.advanceTimersByTimeAsync(2 ** 31 + 9);
  expect(awake).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(awake).toBe(true);
  await sleeping;
});

it("rejects with the reason of a signal, before and during the sleep, and leaves no timer behind", async () => {
  for (const ms of [0, 5, Infinity])
    await expect(systemClock.sleep(ms, AbortSignal.abort("before"))).rejects.toBe("before");
  const abort = new AbortController();
  const sleeping = systemClock.sleep(Infinity, abort.signal).catch((reason: unknown) => reason);
  abort.abort("during");
  expect(await sleeping).toBe("during");
  expect(vi.getTimerCount()).toBe(0);
});

it("a sleep that does not hold the process wakes at its time, and ends by its signal", async () => {
  const free = { holdsProcess: false };
  let awake = 0;
  const sleeping = systemClock.sleep(2 ** 31 + 10, undefined, free).then(() => (awake += 1));
  await vi.advanceTimersByTimeAsync(2 ** 31 + 10);
  await sleeping;
  expect(awake).toBe(1);
  const abort = new AbortController();
  const aborted = systemClock.sleep(5, abort.signal, free).catch((reason: unknown) => reason);
  abort.abort("during");
  expect(await aborted).toBe("during");
  expect(vi.getTimerCount()).toBe(0);
});

it.each([
  ["the system's clock", systemClock],
  ["another clock", new CorrectedClock(systemClock)],
])(
  "an alarm of %s rings at its time, unless it was stopped, and leaves no timer behind",
  async (_, clock) => {
    const ring = vi.fn();
    const stop = startAlarm(clock, 50, ring);
    await vi.advanceTimersByTimeAsync(49);
    expect(ring).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(ring).toHaveBeenCalledOnce();
    stop(); // too late, and harmless
    startAlarm(clock, 50, ring)();
    await vi.advanceTimersByTimeAsync(0);
    expect(vi.getTimerCount()).toBe(0);
    await vi.advanceTimersByTimeAsync(100);
    expect(ring).toHaveBeenCalledOnce();
  },
);

it("an alarm that is further away than a timer can be does not ring at once", async () => {
  const ring = vi.fn();
  const stop = startAlarm(systemClock, Infinity, ring);
  await vi.advanceTimersByTimeAsync(1_000_000);
  expect(ring).not.toHaveBeenCalled();
  stop();
});
