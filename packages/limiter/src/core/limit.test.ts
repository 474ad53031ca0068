import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { validLimit } from "../../test/support/arbitraries.ts";
import { MAX_AMOUNT } from "./amounts.ts";
import { checkLimit, reduceRate } from "./check-limit.ts";
import { InvalidNameError, ValidationError } from "./errors.ts";
import { checkLimits, Limit, sameLimits } from "./limit.ts";

const VALID = { name: "tpm", capacity: 10, refillAmount: 5, refillPeriodSeconds: 60 };

function catchFault(work: () => unknown): ValidationError {
  try {
    work();
  } catch (error) {
    if (error instanceof ValidationError) return error;
    throw error;
  }
  throw new Error("it was accepted");
}

describe("making limits", () => {
  it("rejects an unknown option, and names the nearest", () => {
    const misspelt = { bust: 150 } as unknown as { burst: number };
    expect(catchFault(() => Limit.perMinute("rpm", 100, misspelt)).message).toBe(
      "Invalid bust: is not an option of a limit; did you mean burst?",
    );
    const { refillPeriodSeconds, ...rest } = VALID;
    expect(
      catchFault(() => Limit.custom({ ...rest, refill_period: refillPeriodSeconds } as never))
        .message,
    ).toBe("Invalid refill_period: is not an option of a limit; did you mean refillPeriodSeconds?");
    expect(catchFault(() => Limit.perMinute("rpm", 100, 150 as never)).field).toBe("options");
  });

  it.each([
    ["perSecond", 1],
    ["perMinute", 60],
    ["perHour", 3600],
    ["perDay", 86_400],
  ] as const)(
    "%s counts in %i seconds, and the burst is the capacity",
    (unit, refillPeriodSeconds) => {
      expect(Limit[unit]("rpm", 100)).toEqual({
        name: "rpm",
        capacity: 100,
        refillAmount: 100,
        refillPeriodSeconds,
      });
      expect(Limit[unit]("rpm", 100, { burst: 150 })).toEqual({
        name: "rpm",
        capacity: 150,
        refillAmount: 100,
        refillPeriodSeconds,
      });
    },
  );

  it("copies and freezes, so that later changes of the argument have no effect", () => {
    const given = { ...VALID };
    const limit = Limit.custom(given);
    given.capacity = 99;
    expect(limit.capacity).toBe(10);
    expect(Object.isFrozen(limit)).toBe(true);
    expect(Object.isFrozen(checkLimits([VALID]))).toBe(true);
  });

  it("accepts every limit that can be computed exactly, up to the largest", () => {
    fc.assert(
      fc.property(validLimit(), (limit) => {
        expect(checkLimit(limit)).toEqual(limit);
      }),
    );
    expect(
      checkLimit({
        name: "a",
        capacity: MAX_AMOUNT,
        refillAmount: MAX_AMOUNT,
        refillPeriodSeconds: 1,
      }),
    ).toBeDefined();
    expect(
      checkLimit({
        name: "a",
        capacity: MAX_AMOUNT,
        refillAmount: MAX_AMOUNT,
        refillPeriodSeconds: MAX_AMOUNT,
      }),
    ).toBeDefined();
  });

  it("refuses a rate whose products would leave the safe range", () => {
    const fault = catchFault(() =>
      checkLimit({ ...VALID, refillAmount: 94_906_267, refillPeriodSeconds: 94_906_266 }),
    );
    expect(fault).toMatchObject({ field: "tpm.refillAmount", value: "94906267" });
    expect(
      checkLimit({ ...VALID, refillAmount: 94_906_265, refillPeriodSeconds: 94_906_264 }),
    ).toBeDefined();
  });
});

describe("bad limits", () => {
  it("a bad number is refused with field, value and reason", () => {
    for (const part of ["capacity", "refillAmount", "refillPeriodSeconds"]) {
      const fault = catchFault(() => checkLimit({ ...VALID, [part]: 1.5 }));
      expect(fault).toMatchObject({ field: `tpm.${part}`, value: "1.5" });
      expect(fault.reason).not.toBe("");
    }
  });

  it("a bad or reserved name is an invalid name", () => {
    for (const name of ["", "wcu", "1a", "a#b", "__proto__", "a\n", "x".repeat(65)])
      expect(() => checkLimit({ ...VALID, name }), JSON.stringify(name)).toThrow(InvalidNameError);
  });

  it("an unknown kind is refused, and the known one is not stored", () => {
    expect(
      catchFault(() => checkLimit({ ...VALID, kind: "window" } as unknown as Limit)).field,
    ).toBe("tpm.kind");
    expect(checkLimit({ ...VALID, kind: "rate" })).toEqual(VALID);
  });

  it("lists must be arrays of 1 to 32 limits with distinct names", () => {
    expect(catchFault(() => checkLimits("x" as unknown as Limit[])).field).toBe("limits");
    expect(catchFault(() => checkLimits([])).field).toBe("limits");
    expect(catchFault(() => checkLimits([VALID, { ...VALID, capacity: 3 }])).value).toBe("tpm");
    const many = Array.from({ length: 33 }, (_, index) => ({ ...VALID, name: `l${index}` }));
    expect(catchFault(() => checkLimits(many)).value).toBe("33");
    expect(checkLimits(many.slice(1))).toHaveLength(32);
  });
});

describe("comparing", () => {
  it("ignores the order of lists, and distinguishes every parameter", () => {
    const other = { ...VALID, name: "rpm" };
    expect(sameLimits([VALID, other], [other, { ...VALID }])).toBe(true);
    expect(sameLimits([VALID], [VALID, other])).toBe(false);
    for (const option of [{ soft: true }, { counts: "a" }, { reserve: { batch: 1 } }])
      expect(sameLimits([VALID], [{ ...VALID, ...option }])).toBe(false);
    for (const part of ["capacity", "refillAmount", "refillPeriodSeconds"] as const)
      expect(sameLimits([VALID], [{ ...VALID, [part]: VALID[part] + 1 }]), part).toBe(false);
  });

  it("reduces a rate to lowest terms without changing it", () => {
    fc.assert(
      fc.property(validLimit(), ({ refillAmount, refillPeriodSeconds }) => {
        const { amount, period } = reduceRate(refillAmount * 1000, refillPeriodSeconds * 1000);
        expect(BigInt(amount) * BigInt(refillPeriodSeconds)).toBe(
          BigInt(period) * BigInt(refillAmount),
        );
        expect(reduceRate(amount, period)).toEqual({ amount, period });
      }),
    );
  });
});
