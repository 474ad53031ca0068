import { expect, it } from "vitest";
import { boundaryAfter, type CalendarSpec } from "./oracle-calendar.ts";

it.each<[why: string, calendar: CalendarSpec, after: string, next: readonly string[]]>([
  [
    "a day of 23 hours",
    { every: "day", zone: "Europe/Berlin" },
    "2026-03-28T12:00Z",
    ["2026-03-28T23:00Z", "2026-03-29T22:00Z"],
  ],
  [
    "a day without a midnight",
    { every: "day", zone: "America/Havana" },
    "2026-03-07T12:00Z",
    ["2026-03-08T05:00Z", "2026-03-09T04:00Z"],
  ],
  [
    "two midnights, of which the first counts",
    { every: "day", zone: "America/Havana" },
    "2026-10-31T12:00Z",
    ["2026-11-01T04:00Z", "2026-11-02T05:00Z"],
  ],
  [
    "an hour and a half on Lord Howe, and half an hour",
    { every: "hour", zone: "Australia/Lord_Howe" },
    "2026-04-04T13:30Z",
    ["2026-04-04T14:00Z", "2026-04-04T15:30Z"],
  ],
  [
    "the last day of a short month",
    { every: "month", day: 31, zone: "UTC" },
    "2028-01-31T00:00Z",
    ["2028-02-29T00:00Z", "2028-03-31T00:00Z"],
  ],
  [
    "working days",
    { cron: "30 6,18 * * 1-5", zone: "Europe/Berlin" },
    "2026-07-03T12:00Z",
    ["2026-07-03T16:30Z", "2026-07-06T04:30Z"],
  ],
])("finds %s", (_, calendar, after, next) => {
  let atMs = Date.parse(after);
  for (const boundary of next) {
    atMs = boundaryAfter(calendar, atMs);
    expect(new Date(atMs).toISOString()).toBe(new Date(boundary).toISOString());
  }
});
