import { Limit } from "zae-limiter";
import { describe, expect, it } from "vitest";
import { amountArgument, limitArgument, timeArgument } from "./arguments.ts";

describe("limits", () => {
  it.each(["rpm:10,tpm:100/min:150", "rpm=10,tpm=100/min:150", "rpm:10,tpm=100/min:150"])(
    "%s is two limits",
    (text) => {
      expect(limitArgument(text)).toEqual([
        Limit.perMinute("rpm", 10),
        Limit.perMinute("tpm", 100, { burst: 150 }),
      ]);
    },
  );

  it("commas within brackets and parentheses belong to a limit", () => {
    const text =
      "tpd=9/week(friday,09:00)@UTC[alerts=50,80][reserve=a:1,b:2],rpm:10[soft],x:1/inflight";
    expect(limitArgument(text)).toEqual([
      Limit.quota(
        "tpd",
        9,
        { every: "week", zone: "UTC", weekday: "friday", at: "09:00" },
        { alerts: [50, 80], reserve: { a: 1, b: 2 } },
      ),
      Limit.perMinute("rpm", 10, { soft: true }),
      Limit.inFlight("x", 1),
    ]);
  });

  it.each(["rpm:10=20", "rpm:10,", ",rpm:10", "=10", "rpm==10", "rpm"])(
    "%s is not a limit",
    (text) => {
      expect(() => limitArgument(text)).toThrow("A limit is written name:rate[/period][:burst]");
    },
  );

  it("a name is given once", () => {
    expect(() => limitArgument("rpm:10,rpm=20")).toThrow("rpm is given twice.");
    expect(() => limitArgument("rpm:10", [Limit.perMinute("rpm", 1)])).toThrow("given twice");
  });
});

describe("amounts", () => {
  it.each(["rpm=1,tpm=500", "rpm:1,tpm:500", "rpm=1,tpm:500"])("%s is two amounts", (text) => {
    expect(amountArgument(text)).toEqual({ rpm: 1, tpm: 500 });
  });

  it.each(["rpm=-1", "rpm:1:2", "rpm=1=2", "rpm=1.5", "rpm", "rpm=1,", "=1"])(
    "%s is not an amount",
    (text) => {
      expect(() => amountArgument(text)).toThrow("An amount is written name=number");
    },
  );

  it("a name is given once, and none is special", () => {
    expect(() => amountArgument("rpm=1,rpm:2")).toThrow("rpm is given twice.");
    expect(amountArgument("toString=1")).toEqual({ toString: 1 });
  });
});

describe("times", () => {
  const now = Date.parse("2026-11-15T06:30:00Z");
  const time = (text: string): string => timeArgument(() => now)(text).toISOString();

  it.each([
    ["7d", "2026-11-08T06:30:00.000Z"],
    ["-7d", "2026-11-08T06:30:00.000Z"],
    ["24h", "2026-11-14T06:30:00.000Z"],
    ["30m", "2026-11-15T06:00:00.000Z"],
    ["2w", "2026-11-01T06:30:00.000Z"],
    ["0m", "2026-11-15T06:30:00.000Z"],
    ["2026-11-01", "2026-11-01T00:00:00.000Z"],
    ["2026-11-01T07:00", "2026-11-01T07:00:00.000Z"],
    ["2026-11-01 07:00", "2026-11-01T07:00:00.000Z"],
    ["2026-11-01T07:00+01:00", "2026-11-01T06:00:00.000Z"],
  ])("%s is %s", (text, expected) => {
    expect(time(text)).toBe(expected);
  });

  it.each(["yesterday", "7", "d", "7y", "+7d", "--7d", "1.5d", "123456d", "2026-13-01", ""])(
    "%s is not a time, and the error shows both ways to write one",
    (text) => {
      expect(() => time(text)).toThrow(/2026-11-15T06:00:00Z, or as an age: 30m, 24h, 7d or 2w/);
    },
  );
});
