import { expect, it } from "vitest";
import { Limit } from "../limit.ts";
import { buildWindow, convertWindow, type LimitWindow, type WindowState } from "./windows.ts";

const MIDNIGHT = Date.UTC(2030, 0, 2);
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** A quota a day in a zone whose clocks show UTC. */
function daily(zone: string): LimitWindow {
  return buildWindow(Limit.quota("q", 10, { every: "day", zone }))!;
}

function convert(state: WindowState, nowMs: number): WindowState {
  return convertWindow(daily("UTC"), state, daily("Africa/Abidjan"), nowMs);
}

it("an open window stays open under another calendar, also for a clock that it has not begun for", () => {
  const state = { storedMilli: 4000, endMs: MIDNIGHT };
  expect(convert(state, MIDNIGHT - 1)).toEqual(state);
  const early = { storedMilli: 4000, endMs: MIDNIGHT + DAY };
  expect(convert(early, MIDNIGHT - 1000)).toEqual(early);
  // By other time zone data, days end an hour earlier.
  const other = { storedMilli: 4000, endMs: MIDNIGHT - HOUR + DAY };
  expect(convert(other, MIDNIGHT - 1000)).toEqual(early);
});

it("a slower clock finds no window to open after one that was over under another calendar", () => {
  const next = { storedMilli: 10_000, endMs: MIDNIGHT + DAY };
  expect(convert({ storedMilli: 0, endMs: MIDNIGHT }, MIDNIGHT)).toEqual(next);
  expect(convert({ storedMilli: 0, endMs: MIDNIGHT - HOUR }, MIDNIGHT - 1000)).toEqual(next);
  const unopened = { storedMilli: 10_000, endMs: 0 };
  expect(convert(unopened, MIDNIGHT)).toEqual(unopened);
});
