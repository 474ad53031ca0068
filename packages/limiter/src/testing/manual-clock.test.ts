import { expect, it } from "vitest";
import { ManualClock } from "./manual-clock.ts";

it("stands still until it is told to move, and wakes sleepers in order of time, then of arrival", async () => {
  const clock = new ManualClock(0);
  const woken: string[] = [];
  const sleep = (name: string, ms: number): Promise<unknown> => clock.sleep(ms).then(() => woken.push(`${name}@${clock.now()}`));
  const all = [sleep("late", 20), sleep("first", 10), sleep("second", 10), sleep("never mind", 0)];
  expect(clock.now()).toBe(0);
  await clock.advance(9);
  expect(woken).toEqual(["never mind@0"]);
  await clock.advance(11);
  expect(woken).toEqual(["never mind@0", "first@10", "second@10", "late@20"]);
  await Promise.all(all);
});

it("lets what a sleeper started run, also when it sleeps again", async () => {
  const clock = new ManualClock(0);
  const times: number[] = [];
  const work = (async () => {
    for (let round = 0; round < 3; round += 1) {
      await clock.sleep(5);
      times.push(clock.now());
    }
  })();
  await clock.advance(15);
  expect(times).toEqual([5, 10, 15]);
  await work;
});

it("rejects with the reason of a signal, before and during the sleep", async () => {
  const clock = new ManualClock(0);
  await expect(clock.sleep(5, AbortSignal.abort("before"))).rejects.toBe("before");
  const abort = new AbortController();
  const sleeping = clock.sleep(5, abort.signal);
  abort.abort("during");
  await expect(sleeping).rejects.toBe("during");
});

it("can be set back, which wakes nobody", async () => {
  const clock = new ManualClock(100);
  let awake = false;
  const sleeping = clock.sleep(10).then(() => (awake = true));
  clock.set(50);
  expect(clock.now()).toBe(50);
  await clock.advance(59);
  expect(awake).toBe(false);
  await clock.advance(1);
  expect(awake).toBe(true);
  await sleeping;
});
