import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { anyLimit } from "../../test/support/any-limit.ts";
import { validLimit } from "../../test/support/arbitraries.ts";
import { ValidationError } from "./errors.ts";
import { Limit } from "./limit.ts";

const name = fc.stringMatching(/^[a-zA-Z][a-zA-Z0-9_.-]{0,63}$/).filter((text) => text !== "wcu");

const daily = { every: "day", zone: "UTC" } as const;

describe("the text form of a limit", () => {
  it("parses what it formats, for every valid limit", () => {
    fc.assert(
      fc.property(name.chain(validLimit), (limit) => {
        expect(Limit.parse(Limit.format(limit))).toEqual(limit);
      }),
      { numRuns: 1000 },
    );
  });

  it("parses what it formats without a space, for every valid limit of every kind", () => {
    fc.assert(
      fc.property(anyLimit(), (limit) => {
        const text = Limit.format(limit);
        expect(text).not.toMatch(/\s/);
        expect(Limit.parse(text)).toEqual(limit);
      }),
      { numRuns: 1000 },
    );
  });

  it.each<[text: string, limit: Limit]>([
    ["tpd:10/day@UTC[counts=tpm]", Limit.quota("tpd", 10, daily, { counts: "tpm" })],
    [
      "budget:500/month(15,09:00)@UTC[carry=debt,5]",
      Limit.quota(
        "budget",
        500,
        { every: "month", zone: "UTC", day: 15, at: "09:00" },
        { carry: { debt: true, unused: 5 } },
      ),
    ],
    [
      "q:5/week(monday,09:00)@UTC[carry=debt][alerts=80,100]",
      Limit.quota(
        "q",
        5,
        { every: "week", zone: "UTC", at: "09:00" },
        { alerts: [80, 100], carry: { debt: true } },
      ),
    ],
    [
      "q:5/cron(0_9_*_*_mon-fri)@UTC[carry=3]",
      Limit.quota("q", 5, { cron: " 0 9 *  * MON-FRI", zone: "UTC" }, { carry: { unused: 3 } }),
    ],
    ["messages:45/session(5hour)", Limit.session("messages", 45, { windowSeconds: 18_000 })],
    ["running:20/inflight(2min)", Limit.inFlight("running", 20, { holdSeconds: 120 })],
    ["running:20/inflight[soft]", Limit.inFlight("running", 20, { soft: true })],
    [
      "rpm:100/min:200[reserve=a:1,b:20][mon-fri_09:00-17:00@UTC=50%][sat@UTC=5:10][sun@UTC=7]",
      Limit.perMinute("rpm", 100, {
        burst: 200,
        reserve: { b: 20, a: 1 },
        schedule: [
          { when: "Mon-Fri  09:00-17:00", zone: "UTC", percent: 50 },
          { when: "sat", zone: "UTC", capacity: 10, refillAmount: 5 },
          { when: "sun", zone: "UTC", capacity: 7, refillAmount: 7 },
        ],
      }),
    ],
  ])("reads and writes %s", (text, limit) => {
    expect(Limit.parse(text)).toEqual(limit);
    expect(Limit.format(limit)).toBe(text);
  });

  it("reads cron expressions and hours with spaces, and options in any order", () => {
    expect(Limit.parse("q:500/cron(0 9 * * 1)@UTC[sat 09:00-17:00@UTC=1%][soft]")).toEqual(
      Limit.parse("q:500/cron(0_9_*_*_1)@UTC[soft][sat_09:00-17:00@UTC=1%]"),
    );
  });

  it.each([
    ["rpm:5[sof]", "is not an option of a limit, did you mean soft?"],
    ["rpm:5[alert=5]", "did you mean alerts?"],
    ["rpm:5[soft][soft]", "each option once"],
    ["rpm:5[reserve=batch:1,batch:2]", "each class once"],
    ["rpm:5[alerts=50]", "alerts: is not an option of a limit"],
    ["q:5/day@Europ/Berlin", "did you mean Europe/Berlin?"],
    ["q:5/day", undefined],
    ["q:5/hour(5)@UTC", "must look like"],
    ["q:5/week@+02:00", "must look like"],
  ])("says what is wrong with %s", (text, message) => {
    if (message === undefined) expect(Limit.parse(text).kind).toBe(undefined);
    else expect(() => Limit.parse(text)).toThrow(message);
  });

  it.each([
    ["rpm:100", { name: "rpm", capacity: 100, refillAmount: 100, refillPeriodSeconds: 60 }],
    [
      "tpm:10000/min:15000",
      { name: "tpm", capacity: 15_000, refillAmount: 10_000, refillPeriodSeconds: 60 },
    ],
    ["rps:5/sec", { name: "rps", capacity: 5, refillAmount: 5, refillPeriodSeconds: 1 }],
    ["x:5/30sec", { name: "x", capacity: 5, refillAmount: 5, refillPeriodSeconds: 30 }],
    ["x:5/5min:7", { name: "x", capacity: 7, refillAmount: 5, refillPeriodSeconds: 300 }],
    ["x:5/2hour", { name: "x", capacity: 5, refillAmount: 5, refillPeriodSeconds: 7200 }],
    ["x:5/day", { name: "x", capacity: 5, refillAmount: 5, refillPeriodSeconds: 86_400 }],
    ["x:100:200", { name: "x", capacity: 200, refillAmount: 100, refillPeriodSeconds: 60 }],
    ["  a-b.c:1 ", { name: "a-b.c", capacity: 1, refillAmount: 1, refillPeriodSeconds: 60 }],
  ])("reads %j", (text, limit) => expect(Limit.parse(text)).toEqual(limit));

  it.each([
    [Limit.perMinute("rpm", 100), "rpm:100/min"],
    [Limit.perSecond("rpm", 100, { burst: 200 }), "rpm:100/sec:200"],
    [
      Limit.custom({ name: "rpm", capacity: 1, refillAmount: 1, refillPeriodSeconds: 90 }),
      "rpm:1/90sec",
    ],
    [
      Limit.custom({ name: "rpm", capacity: 1, refillAmount: 1, refillPeriodSeconds: 172_800 }),
      "rpm:1/2day",
    ],
  ])("writes %j as %s", (limit, text) => expect(Limit.format(limit)).toBe(text));

  it.each([
    "",
    "rpm",
    "rpm:",
    ":100",
    "rpm:-1",
    "rpm:1.5",
    "rpm:1e3",
    "rpm:abc",
    "rpm:0",
    "rpm:100/week",
    "rpm:100/0min",
    "rpm:100/",
    "rpm:100/min/5",
    "rpm:100:",
    "rpm:100:0",
    "rpm:100/min:1:2",
    "wcu:100",
    "1a:100",
    "a#b:100",
    "a b:100",
    "rpm:99999999999999999999",
    "rpm:٣",
  ])("refuses %j", (text) => expect(() => Limit.parse(text)).toThrow(ValidationError));

  it.each([null, undefined, 5, {}, ["rpm:100"]])("refuses %j, which is not a text", (value) =>
    expect(() => Limit.parse(value as string)).toThrow(ValidationError),
  );

  it("does not format a limit that it would not parse", () => {
    expect(() =>
      Limit.format({ name: "wcu", capacity: 1, refillAmount: 1, refillPeriodSeconds: 1 }),
    ).toThrow(ValidationError);
  });
});
