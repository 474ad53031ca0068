import { beforeEach, expect, it } from "vitest";
import { ManualClock } from "../../../testing/fakes/manual-clock.ts";
import { AwayItems } from "./away-items.ts";

let clock: ManualClock;
let away: AwayItems;

beforeEach(() => {
  clock = new ManualClock();
  away = new AwayItems(clock);
});

it("an item that left comes back after two seconds, each time it left", async () => {
  away.leave("a");
  await clock.advance(1999);
  expect([away.has("a"), away.has("b")]).toEqual([true, false]);
  away.leave("a");
  await clock.advance(1999);
  expect(away.has("a")).toBe(true);
  await clock.advance(1);
  expect(away.has("a")).toBe(false);
});

it("all items of a slow request leave; one that is quick alone comes back at once", async () => {
  await takes(51, ["a", "b", "c"]);
  expect(["a", "b", "c", "d"].filter((item) => away.has(item))).toEqual(["a", "b", "c"]);
  const [a, b] = [away.begin(), away.begin()];
  away.endAlone(a, "a");
  away.endAlone(away.begin(), "d");
  await clock.advance(1000);
  away.endAlone(away.begin(), "d");
  away.endAlone(b, "b");
  await clock.advance(1999 - 1000);
  expect(["a", "b", "c"].filter((item) => away.has(item))).toEqual(["b", "c"]);
  await clock.advance(1);
  expect(["a", "b", "c"].filter((item) => away.has(item))).toEqual(["b"]);
});

it("an item whose statement failed does not come back for being quick alone", () => {
  away.leave("a");
  away.endAlone(away.begin(), "a");
  expect(away.has("a")).toBe(true);
});

it("a request is slow after 50 ms, and after four times what is usual", async () => {
  await takes(50, ["a"]);
  await takes(200, ["b"]);
  expect(["a", "b"].filter((item) => away.has(item))).toEqual([]);
  for (let requests = 0; requests < 50; requests += 1) await takes(1, []);
  await takes(51, ["c"]);
  expect(away.has("c")).toBe(true);
});

it("one slow request changes little of what is usual; when all are slow, it follows", async () => {
  for (let requests = 0; requests < 50; requests += 1) await takes(20, []);
  await takes(60_000, []);
  await takes(120, ["a"]);
  expect(away.has("a")).toBe(true);
  for (let requests = 0; requests < 20; requests += 1) await takes(400, []);
  await takes(400, ["b"]);
  expect(away.has("b")).toBe(false);
});

it("a request that is late together with all others is not slow", async () => {
  const [first, second] = [away.begin(), away.begin()];
  await clock.advance(1000);
  away.end(first, ["a"]);
  away.end(second, ["b"]);
  expect(["a", "b"].filter((item) => away.has(item))).toEqual([]);
});

it("a request is slow that one overtakes which was sent after it", async () => {
  const [first, second] = [away.begin(), away.begin()];
  await clock.advance(1000);
  away.end(second, ["b"]);
  away.end(first, ["a"]);
  expect(["a", "b"].filter((item) => away.has(item))).toEqual(["a"]);
});

it("at most 1000 items are away: the one that left first comes back", () => {
  for (let item = 0; item < 1000; item += 1) away.leave(String(item));
  away.leave("0");
  away.leave("new");
  expect(["0", "1", "2", "new"].filter((item) => away.has(item))).toEqual(["0", "2", "new"]);
});

it("a request that no other can be compared with is slow when the one before was late too", async () => {
  for (const item of ["a", "b"]) {
    const request = away.begin();
    await clock.advance(item === "a" ? 51 : 1000);
    away.end(request, [item]);
  }
  expect(["a", "b"].filter((item) => away.has(item))).toEqual(["b"]);
});

it("an item comes back when the clock is set back", async () => {
  away.leave("a");
  clock.set(clock.now() - 1);
  expect(away.has("a")).toBe(false);
});

/** A request of these items that takes so long; one that is sent in the end overtakes it. */
async function takes(ms: number, items: readonly string[]): Promise<void> {
  const request = away.begin();
  await clock.advance(ms);
  away.endAlone(away.begin(), "quick");
  away.end(request, items);
}
