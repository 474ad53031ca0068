import type { Clock } from "zae-limiter";
import { ManualClock } from "zae-limiter/testing";
import { expect, it } from "vitest";

it("stands still until it is moved", async () => {
  const clock = new ManualClock(5000);
  expect(clock.now()).toBe(5000);
  await clock.advance(250);
  expect(clock.now()).toBe(5250);
  clock.set(1000);
  expect(clock.now()).toBe(1000);
});

it("starts far from the edges of usage windows", () => {
  const now = new Date(new ManualClock().now());
  expect([now.getUTCMinutes(), now.getUTCHours(), now.getUTCDate()]).toEqual([0, 12, 4]);
});

it("wakes sleepers at their time, and in order of arrival if times are equal", async () => {
  const clock = new ManualClock(0);
  const log: string[] = [];
  const sleep = (name: string, ms: number): Promise<void> =>
    clock.sleep(ms).then(() => void log.push(`${name}@${clock.now()}`));
  const all = [sleep("late", 300), sleep("first", 100), sleep("second", 100), sleep("beyond", 301)];
  await clock.advance(300);
  expect(log).toEqual(["first@100", "second@100", "late@300"]);
  expect(clock.now()).toBe(300);
  await clock.advance(1);
  expect(log.at(-1)).toBe("beyond@301");
  await Promise.all(all);
});

it("lets what a sleeper starts run, even its next sleep, before it moves on", async () => {
  const clock = new ManualClock(0);
  const times: number[] = [];
  const ticking = (async () => {
    for (let count = 0; count < 4; count += 1) {
      await clock.sleep(10);
      await new Promise((resolve) => setImmediate(resolve));
      times.push(clock.now());
    }
  })();
  await clock.advance(35);
  expect(times).toEqual([10, 20, 30]);
  await clock.advance(5);
  expect(times).toEqual([10, 20, 30, 40]);
  await ticking;
});

it("rejects a sleep with the reason of its signal, before and during it", async () => {
  const clock = new ManualClock(0);
  const reason = new Error("enough");
  await expect(clock.sleep(10, AbortSignal.abort(reason))).rejects.toBe(reason);
  const abort = new AbortController();
  const sleeping = clock.sleep(10, abort.signal);
  abort.abort(reason);
  await expect(sleeping).rejects.toBe(reason);
  await clock.advance(10);
});

it("an abort after the wake-up has no effect", async () => {
  const clock = new ManualClock(0);
  const abort = new AbortController();
  const sleeping = clock.sleep(10, abort.signal);
  await clock.advance(10);
  abort.abort();
  await expect(sleeping).resolves.toBeUndefined();
});

it("a sleep of zero or negative time ends with the next advance", async () => {
  const clock = new ManualClock(0);
  const sleeping = Promise.all([clock.sleep(0), clock.sleep(-5)]);
  await clock.advance(0);
  await sleeping;
  expect(clock.now()).toBe(0);
});

it("setting the time wakes no sleeper; the next advance wakes those that are due, without going back in time", async () => {
  const clock = new ManualClock(0);
  let wokenAt = -1;
  const sleeping = clock.sleep(100).then(() => (wokenAt = clock.now()));
  clock.set(5000);
  await new Promise((resolve) => setImmediate(resolve));
  expect(wokenAt).toBe(-1);
  await clock.advance(1);
  await sleeping;
  expect(wokenAt).toBe(5000);
  expect(clock.now()).toBe(5001);
});

it("takes a sleep that does not hold the process for any other", async () => {
  const clock = new ManualClock(0);
  const asClock: Clock = clock;
  let isAwake = false;
  const sleeping = asClock
    .sleep(10, undefined, { holdsProcess: false })
    .then(() => (isAwake = true));
  await clock.advance(9);
  expect(isAwake).toBe(false);
  await clock.advance(1);
  expect(isAwake).toBe(true);
  await sleeping;
});
