import { describe, expect, it } from "vitest";
import { ValidationError } from "../core/errors.ts";
import { RateLimiter } from "../limiter/rate-limiter.ts";
import { MemoryRepository } from "../repository/memory/memory-repository.ts";
import { checkHttpOptions, type HttpLimitOptions } from "./options.ts";

const valid: HttpLimitOptions<Request> = {
  limiter: new RateLimiter({ repository: new MemoryRepository() }),
  entity: () => "key-1",
  resource: "chat",
  consume: { rpm: 1 },
};

describe("options of a middleware", () => {
  it("accepts what is right, and functions where a request decides", () => {
    const answers = {
      also: () => undefined,
      settle: () => undefined,
      onRefused: () => undefined,
      waitUntil: () => undefined,
      respond: () => undefined,
    };
    for (const options of [
      valid,
      { ...valid, resource: () => "chat", consume: () => ({ rpm: 1 }) },
      { ...valid, ...answers, waitUpToMs: 0, onUnavailable: "allow", headers: false },
      { ...valid, consume: {}, headers: { style: "legacy" }, settle: undefined },
    ])
      expect(() => checkHttpOptions(options as never, "limitRequests", ["respond"])).not.toThrow();
  });

  const wrong: readonly [field: string, options: unknown][] = [
    ["options", undefined],
    ["options", null],
    ["options", [valid]],
    ["limiter", { ...valid, limiter: undefined }],
    ["limiter", { ...valid, limiter: new MemoryRepository() }],
    ["entity", { ...valid, entity: undefined }],
    ["entity", { ...valid, entity: "key-1" }],
    ["resource", { ...valid, resource: undefined }],
    ["resource", { ...valid, resource: "" }],
    ["resource", { ...valid, resource: "no resource" }],
    ["consume", { ...valid, consume: undefined }],
    ["consume", { ...valid, consume: 1 }],
    ["consume", { ...valid, consume: [1] }],
    ["consume.rpm", { ...valid, consume: { rpm: Number.NaN } }],
    ["consume.rpm", { ...valid, consume: { rpm: -1 } }],
    ["consume.rpm", { ...valid, consume: { rpm: 0.5 } }],
    ["consume.rpm", { ...valid, consume: { rpm: "1" } }],
    ["consume.r p m", { ...valid, consume: { "r p m": 1 } }],
    ["also", { ...valid, also: { search: { queries: 1 } } }],
    ["settle", { ...valid, settle: "give-back" }],
    ["onRefused", { ...valid, onRefused: true }],
    ["waitUntil", { ...valid, waitUntil: null }],
    ["respond", { ...valid, respond: 429 }],
    ["waitUpToMs", { ...valid, waitUpToMs: -1 }],
    ["waitUpToMs", { ...valid, waitUpToMs: Number.NaN }],
    ["waitUpToMs", { ...valid, waitUpToMs: "1s" }],
    ["onUnavailable", { ...valid, onUnavailable: "open" }],
    ["options", { ...valid, headers: true }],
    ["headers", { ...valid, headers: "legacy" }],
    ["options", { method: "GET", headers: {}, url: "/" }],
    ["options", { req: {} }],
    ["wait", { ...valid, wait: 1 }],
  ];
  it.each(wrong)("refuses a wrong %s before any request comes: %o", (field, options) => {
    let thrown: unknown;
    try {
      checkHttpOptions(options as never, "limitRequests", ["respond"]);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(ValidationError);
    expect((thrown as ValidationError).field).toBe(field);
  });

  it("hints at the option that was meant", () => {
    const options = { ...valid, waitUpTo: 1000 };
    expect(() => checkHttpOptions(options, "limitHandler")).toThrow(
      "Invalid waitUpTo: is not an option of limitHandler; did you mean waitUpToMs?",
    );
  });
});
