import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { fullBucket } from "./bucket.ts";
import type { LimitStatus } from "./decision.ts";
import { RateLimitError, ValidationError } from "../errors.ts";
import { Limit } from "../limit.ts";
import { buildPolicy } from "./policy.ts";
import { RateLimitExceeded, Refused } from "./refusal.ts";

function status(limitName: string, retryAfterSeconds: number): LimitStatus {
  const exceeded = retryAfterSeconds > 0;
  return {
    entityId: "key-1",
    resource: "gpt-4",
    limitName,
    limit: Limit.perMinute(limitName, 100, { burst: 200 }),
    source: "system",
    kind: "rate",
    resetsAt: undefined,
    resetsInSeconds: undefined,
    available: 7,
    requested: exceeded ? 10 : 1,
    leaves: 0,
    exceeded,
    deficit: exceeded ? 3 : 0,
    retryAfterSeconds,
  };
}

/** A decision that one limit refused. */
function short(): Refused {
  const policy = buildPolicy([Limit.perMinute("rpm", 10)], "system");
  const bucket = fullBucket(policy.bucketLimits, 0);
  return new Refused(
    [{ entityId: "key-1", resource: "gpt-4", policy, bucket, amounts: { rpm: 11 } }],
    0,
  );
}

describe("a refusal", () => {
  it("lists the limits that refused and that passed, and the one with the longest wait", () => {
    const [rpm, tpm, day] = [status("rpm", 1.8), status("tpm", 0), status("day", 3.2)] as const;
    const refusal = new RateLimitExceeded([rpm, tpm, day]);
    expect(refusal).toBeInstanceOf(RateLimitError);
    expect(refusal.statuses).toEqual([rpm, tpm, day]);
    expect(refusal.violations).toEqual([rpm, day]);
    expect(refusal.passed).toEqual([tpm]);
    expect(refusal.primaryViolation).toBe(day);
    expect(refusal.retryAfterSeconds).toBe(3.2);
    expect(refusal.code).toBe("ERR_LIMITER_RATE_LIMIT_EXCEEDED");
    expect(refusal.message).toBe(
      "day of key-1 on gpt-4: 7 of 200 left, 10 requested. Retry in 3.2 s.",
    );
  });

  it("says when the window ends", () => {
    const resetsAt = new Date("2026-10-25T23:00:00Z");
    expect(new RateLimitExceeded([{ ...status("day", 3.2), resetsAt }]).message).toMatch(
      / Retry in 3\.2 s\. The window ends at 2026-10-25T23:00:00\.000Z\.$/,
    );
  });

  it.each([
    [0.001, "1"],
    [0.999, "1"],
    [1, "1"],
    [1.001, "2"],
    [59.94, "60"],
    [60, "60"],
    [Infinity, undefined],
  ])("of %f s has the header %s: whole seconds, rounded up", (seconds, header) => {
    expect(new RateLimitExceeded([status("rpm", seconds)]).retryAfterHeader).toBe(header);
  });

  it("has the JSON form of the Python zae-limiter", () => {
    const refusal = new RateLimitExceeded([status("rpm", 0.07), status("tpm", 0)]);
    const limit = {
      entity_id: "key-1",
      resource: "gpt-4",
      kind: "rate",
      capacity: 200,
      refill_amount: 100,
      refill_period_seconds: 60,
      available: 7,
    };
    expect(JSON.parse(JSON.stringify(refusal))).toEqual({
      error: "rate_limit_exceeded",
      message: refusal.message,
      retry_after_seconds: 0.07,
      retry_after_ms: 70,
      limits: [
        {
          ...limit,
          limit_name: "rpm",
          requested: 10,
          leaves: 0,
          exceeded: true,
          retry_after_seconds: 0.07,
        },
        {
          ...limit,
          limit_name: "tpm",
          requested: 1,
          leaves: 0,
          exceeded: false,
          retry_after_seconds: 0,
        },
      ],
    });
  });

  it("has null in JSON if the call can never fit", () => {
    const json = new RateLimitExceeded([status("rpm", Infinity), status("tpm", 2)]).toJSON();
    expect(json).toMatchObject({ retry_after_seconds: null, retry_after_ms: null });
    expect(json.limits.map(({ retry_after_seconds }) => retry_after_seconds)).toEqual([null, 2]);
    expect(json.message).toBe(
      "rpm of key-1 on gpt-4: 7 of 200 left, 10 requested. This can never fit: request less, or raise the limit.",
    );
  });

  it.each([
    [0.001, 0.1],
    [0.3, 0.3],
    [1.1, 1.1],
    [11.372, 11.4],
    [59.999, 60],
  ])("of %f s says to retry in %f s: never too early", (seconds, said) => {
    expect(new RateLimitExceeded([status("rpm", seconds)]).message).toMatch(
      new RegExp(` Retry in ${said} s\\.$`),
    );
  });

  it("is printed in a few lines, also by Node when it is uncaught", () => {
    const refusal = new RateLimitExceeded([status("rpm", 1), status("tpm", 0)], "to be thrown");
    // What Node does with an uncaught error.
    const uncaught = inspect(refusal, { customInspect: false, depth: 5 });
    for (const text of [uncaught, inspect(refusal)]) {
      expect(text.replace(refusal.stack!, "")).toBe(
        " {\n  code: 'ERR_LIMITER_RATE_LIMIT_EXCEEDED'\n}",
      );
      expect(text).toContain(refusal.message);
    }
  });

  it("as a value has the same properties and prints the same as one that is thrown", () => {
    const statuses = [status("rpm", 1), status("tpm", 0)];
    const [value, thrown] = [
      new RateLimitExceeded(statuses),
      new RateLimitExceeded(statuses, "to be thrown"),
    ];
    expect(Object.keys(value)).toEqual(["code", "name"]);
    expect(Object.keys(thrown)).toEqual(["code", "name"]);
    expect(value).toEqual(thrown);
    expect(String(value)).toBe(String(thrown));
    expect(inspect(value)).toBe(
      `[RateLimitExceeded: ${value.message}] {\n  code: 'ERR_LIMITER_RATE_LIMIT_EXCEEDED'\n}`,
    );
  });

  it("that is thrown keeps its message when it is copied to another thread", () => {
    const thrown = new RateLimitExceeded(short(), "to be thrown");
    expect(structuredClone(thrown).message).toBe(thrown.message);
  });

  it("lets the code that catches it set another message", () => {
    for (const use of ["as a value", "to be thrown"] as const) {
      const refusal = new RateLimitExceeded(short(), use);
      refusal.message = `Model call: ${refusal.message}`;
      expect(refusal.message).toMatch(/^Model call: rpm of key-1/);
      expect(refusal.toJSON().message).toBe(refusal.message);
      expect(Object.keys(refusal)).toEqual(["code", "name"]);
    }
  });

  it("has a stack trace if it is thrown", () => {
    const refusal = new RateLimitExceeded([status("rpm", 1)], "to be thrown");
    expect(refusal.stack).toMatch(/^RateLimitExceeded: rpm of key-1.*\n\s+at .*refusal\.test\.ts/);
  });

  it("captures no stack trace, and leaves the traces of other errors alone", () => {
    const before = Error.stackTraceLimit;
    const refusal = new RateLimitExceeded([status("rpm", 1)]);
    expect(refusal.stack).not.toMatch(/\n\s+at /);
    expect(Error.stackTraceLimit).toBe(before);
    expect(new Error("other").stack).toMatch(/\n\s+at /);
  });

  it("cannot be made without a violation, and failing leaves the traces of other errors alone", () => {
    const before = Error.stackTraceLimit;
    expect(() => new RateLimitExceeded([])).toThrow(ValidationError);
    expect(() => new RateLimitExceeded([status("rpm", 0)])).toThrow(ValidationError);
    expect(Error.stackTraceLimit).toBe(before);
  });
});
