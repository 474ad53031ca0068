import { describe, expect, it } from "vitest";
import { MAX_AMOUNT } from "./amounts.ts";
import { ValidationError } from "./errors.ts";
import { Limit } from "./limit.ts";
import { applyProfile, parseHours } from "./profile.ts";

const RATE = { name: "l", capacity: 10, refillAmount: 5, refillPeriodSeconds: 60 };
const QUOTA = { name: "l", kind: "quota", capacity: 10, resets: { every: "day", zone: "UTC" } };
const SESSION = { name: "l", kind: "session", capacity: 10, windowSeconds: 60 };
const IN_FLIGHT = { name: "l", kind: "inflight", capacity: 10, holdSeconds: 60 };

/** The field that is refused of a limit; undefined if the limit is valid. */
function findFault(limit: object): string | undefined {
  try {
    Limit.custom(limit as Limit);
    return undefined;
  } catch (error) {
    if (error instanceof ValidationError && error.reason !== "") return error.field;
    throw error;
  }
}

const resets = (calendar: object): object => ({
  ...QUOTA,
  resets: { ...QUOTA.resets, ...calendar },
});
const cron = (expression: unknown): object => ({
  ...QUOTA,
  resets: { cron: expression, zone: "UTC" },
});
const profile = (given: object, limit: object = RATE): object => ({
  ...limit,
  schedule: [{ when: "sat", zone: "UTC", ...given }],
});

describe("a limit is refused", () => {
  it.each<[field: string, limit: object]>([
    ["kind", { ...RATE, kind: "window" }],
    ["kind", { ...RATE, kind: null }],
    ["resets", { ...QUOTA, resets: "day" }],
    ["resets.every", resets({ every: "year" })],
    ["weekday", resets({ weekday: "monday" })],
    ["at", resets({ every: "hour", at: "09:00" })],
    ...["Mars/Base", "+02:00", "-0200", "02:00", "", undefined, 5].map((zone): [string, object] => [
      "resets.zone",
      resets({ zone }),
    ]),
    ...["24:00", "9:00", "09:60", "09:00:00", 9].map((at): [string, object] => [
      "resets.at",
      resets({ at }),
    ]),
    ...[0, 32, 1.5, "1"].map((day): [string, object] => [
      "resets.day",
      resets({ every: "month", day }),
    ]),
    ["resets.weekday", resets({ every: "week", weekday: "mon" })],
    ...[
      "0 0 * *",
      "0 0 0 * * *",
      "60 * * * *",
      "* 24 * * *",
      "* * 0 * *",
      "* * 32 * *",
      "* * * 13 *",
      "* * * * 8",
      "* * L * *",
      "* * 15W * *",
      "* * * * 5#2",
      "* * ? * *",
      "*/0 * * * *",
      "5/15 * * * *",
      "30-10 * * * *",
      "1,,2 * * * *",
      "* * 1 * 1",
      "* * 1-31 * 1",
      "0 0 30 2 *",
      "0 0 31 4,6,9,11 *",
      "@daily",
      5,
    ].map((expression): [string, object] => ["resets.cron", cron(expression)]),
    ["windowSeconds", { ...SESSION, windowSeconds: 0 }],
    ["windowSeconds", { ...SESSION, windowSeconds: 366 * 86_400 + 1 }],
    ["holdSeconds", { ...IN_FLIGHT, holdSeconds: 9 }],
    ["holdSeconds", { ...IN_FLIGHT, holdSeconds: 86_401 }],
    ["carry", { ...SESSION, carry: { debt: true } }],
    ["alerts", { ...RATE, alerts: [50] }],
    ["alerts", { ...IN_FLIGHT, alerts: [50] }],
    ...[[0], [201], [50, 50], [80, 50], [1.5], "50", [1, 2, 3, 4, 5, 6, 7, 8, 9]].map(
      (alerts): [string, object] => ["alerts", { ...QUOTA, alerts }],
    ),
    ["carry.debt", { ...QUOTA, carry: { debt: 1 } }],
    ["carry.unused", { ...QUOTA, carry: { unused: -1 } }],
    ["carry.unused", { ...QUOTA, carry: { unused: MAX_AMOUNT } }],
    ["soft", { ...RATE, soft: "yes" }],
    ["counts", { ...RATE, counts: "a#b" }],
    ["reserve", { ...RATE, reserve: ["a"] }],
    ["reserve", { ...RATE, reserve: { "a#b": 1 } }],
    ["reserve.batch", { ...RATE, reserve: { batch: 10 } }],
    ["reserve.batch", { ...RATE, reserve: { batch: 0 } }],
    ["reserve", { ...RATE, reserve: Object.fromEntries([..."abcdefghi"].map((c) => [c, 1])) }],
    ["schedule", { ...RATE, schedule: Array.from({ length: 9 }, () => ({})) }],
    ...["", "someday", "mon-fri09:00-17:00", "09:00-25:00", "09:00-09:00", "9-17", 5].map(
      (when): [string, object] => ["schedule[0].when", profile({ when, percent: 50 })],
    ),
    ["schedule[0].zone", profile({ zone: "Mars/Base", percent: 50 })],
    ["schedule[0]", profile({})],
    ["schedule[0]", profile({ percent: 50, capacity: 5 })],
    ["schedule[0].percent", profile({ percent: 10_001 })],
    ["schedule[0].refillAmount", profile({ percent: 50, refillAmount: 5 })],
    ["schedule[0].refillAmount", profile({ capacity: 5, refillAmount: 5 }, QUOTA)],
    ["schedule[0].capacity", profile({ percent: 1 })],
    ["schedule[0].capacity", profile({ percent: 1 }, QUOTA)],
    ["schedule[0].refillAmount", profile({ percent: 10 })],
    [
      "schedule[0].refillAmount",
      profile({ capacity: 94_906_267 }, { ...RATE, refillPeriodSeconds: 94_906_266 }),
    ],
  ])("for its %s: %j", (field, limit) => {
    expect(["", "l."].map((prefix) => prefix + field)).toContain(findFault(limit));
  });
});

it("accepts every bound, and drops what is the default", () => {
  expect(findFault({ ...SESSION, windowSeconds: 366 * 86_400 })).toBe(undefined);
  expect(findFault({ ...IN_FLIGHT, holdSeconds: 10 })).toBe(undefined);
  expect(findFault(cron("*/5,7 0-23/2 29 feb *"))).toBe(undefined);
  expect(findFault(cron("0 9 * * fri-sun"))).toBe(undefined);
  const written = {
    ...QUOTA,
    resets: { every: "week", zone: "UTC", weekday: "monday", at: "00:00" },
    counts: "l",
    soft: false,
    schedule: [],
    reserve: {},
    alerts: [],
    carry: { debt: false },
  } as unknown as Limit;
  expect(Limit.custom(written)).toEqual({ ...QUOTA, resets: { every: "week", zone: "UTC" } });
});

it("a profile replaces the numbers, or takes a part of them, exactly", () => {
  const large = { ...RATE, capacity: MAX_AMOUNT, refillAmount: 7 };
  const when = { when: "sat", zone: "UTC" };
  expect(applyProfile(large, { ...when, percent: 50 })).toEqual({
    ...large,
    capacity: Number((BigInt(MAX_AMOUNT) * 50n) / 100n),
    refillAmount: 3,
  });
  expect(applyProfile(RATE, { ...when, capacity: 3 })).toMatchObject({
    capacity: 3,
    refillAmount: 3,
  });
});

it.each([
  ["mon-fri 09:00-17:00", [0, 1, 2, 3, 4], 540, 1020],
  ["sat,mon", [5, 0], 0, 1440],
  ["fri-mon", [4, 5, 6, 0], 0, 1440],
  ["22:00-06:00", [0, 1, 2, 3, 4, 5, 6], 1320, 360],
])("the hours %s are understood", (when, days, fromMinute, toMinute) => {
  expect(parseHours(when)).toEqual({ days: new Set(days), fromMinute, toMinute });
});
