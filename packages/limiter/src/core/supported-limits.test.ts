import { expect, it } from "vitest";
import { IncompatibleSchemaError, ValidationError } from "./errors.ts";
import { Limit } from "./limit.ts";
import { checkSupportedLimits, parseStoredLimit } from "./supported-limits.ts";

it("refuses the kinds and options that no store decides yet, and names them", () => {
  const rpm = Limit.perMinute("rpm", 5);
  expect(checkSupportedLimits([rpm])).toEqual([rpm]);
  const refuse = (limit: Limit): unknown => {
    try {
      return checkSupportedLimits([rpm, limit]);
    } catch (error) {
      return error instanceof ValidationError && `${error.field} ${error.reason}`;
    }
  };
  const reason = "is not supported yet; leave it out or use another kind of limit";
  expect(refuse(Limit.inFlight("x", 5))).toBe(`x.kind ${reason}`);
  expect(refuse(Limit.perMinute("x", 5, { soft: true }))).toBe(`x.soft ${reason}`);
});

it("a stored limit of a newer version is not mistaken for bad input", () => {
  expect(parseStoredLimit("rpm:5/min")).toEqual(Limit.perMinute("rpm", 5));
  for (const [text, message] of [
    ["q:5/day@Mars/Base", /does not know \(Mars\/Base\)\. Upgrade Node\.js/],
    ["rpm:5/min[soft]", /Upgrade zae-limiter/],
    ["rpm:5/fortnight", /Upgrade zae-limiter/],
  ] as const) {
    expect(() => parseStoredLimit(text)).toThrow(IncompatibleSchemaError);
    expect(() => parseStoredLimit(text)).toThrow(message);
  }
});
