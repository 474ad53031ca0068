import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { validLimit } from "../../test/support/arbitraries.ts";
import { ValidationError } from "./errors.ts";
import { Limit } from "./limit.ts";

const name = fc.stringMatching(/^[a-zA-Z][a-zA-Z0-9_.-]{0,63}$/).filter((text) => text !== "wcu");

describe("the text form of a limit", () => {
  it("parses what it formats, for every valid limit", () => {
    fc.assert(
      fc.property(name.chain(validLimit), (limit) => {
        expect(Limit.parse(Limit.format(limit))).toEqual(limit);
      }),
      { numRuns: 1000 },
    );
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
