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

it("all items of a slow request leave; one that is quick alone comes back at once", () => {
  away.noteRequest(["a", "b", "c"], 51);
  expect(["a", "b", "c", "d"].filter((item) => away.has(item))).toEqual(["a", "b", "c"]);
  away.noteAlone("a", 5);
  away.noteAlone("b", 1000);
  expect(["a", "b", "c"].filter((item) => away.has(item))).toEqual(["b", "c"]);
});

it("an item whose statement failed does not come back for being quick alone", () => {
  away.leave("a");
  away.noteAlone("a", 1);
  expect(away.has("a")).toBe(true);
});

it("a request is slow after 50 ms, and after four times what is usual", () => {
  away.noteRequest(["a"], 50);
  expect([away.slowMs, away.has("a")]).toEqual([200, false]);
  away.noteRequest(["a"], 200);
  expect(away.has("a")).toBe(false);
  away.noteRequest(["b"], away.slowMs + 1);
  expect(away.has("b")).toBe(true);
  for (let requests = 0; requests < 50; requests += 1) away.noteRequest([], 1);
  expect(away.slowMs).toBe(50);
});

it("one slow request changes little of what is usual; when all are slow, it follows", () => {
  for (let requests = 0; requests < 50; requests += 1) away.noteRequest([], 20);
  const before = away.slowMs;
  away.noteRequest(["a"], 60_000);
  expect(away.slowMs).toBeLessThan(1.5 * before);
  for (let requests = 0; requests < 20; requests += 1) away.noteRequest([], 400);
  away.noteRequest(["b"], 400);
  expect(away.has("b")).toBe(false);
});

it("at most 1000 items are away: the one that left first comes back", () => {
  for (let item = 0; item < 1000; item += 1) away.leave(String(item));
  away.leave("0");
  away.leave("new");
  expect(["0", "1", "2", "new"].filter((item) => away.has(item))).toEqual(["0", "2", "new"]);
});
