import { expect, it } from "vitest";
import { ApplyError, ManifestError, type PlanEntry } from "zae-limiter/manifest";
import { toReason } from "./reason.ts";

const entry = (fields: Partial<PlanEntry>): PlanEntry => ({
  action: "create",
  level: "system",
  values: [],
  managed: false,
  drift: false,
  ...fields,
});
const failed = (left: readonly PlanEntry[]): ApplyError =>
  new ApplyError("It failed.", { done: 1, left, cause: undefined });

it("lists what is left of a change, up to a bound", () => {
  const left = [
    entry({}),
    entry({ action: "update", level: "record", entityId: "acme" }),
    entry({ action: "delete", level: "entity", entityId: "key-1", resource: "gpt-4" }),
  ];
  expect(toReason(failed(left))).toBe(
    "It failed. Left: create system, update record acme, delete entity key-1 gpt-4.",
  );
  expect(toReason(failed(Array.from({ length: 10_000 }, () => left[0]!)))).toMatch(
    /^It failed\. Left: (create system, ){10}9990 more\.$/,
  );
  expect(toReason(failed([]))).toBe("It failed.");
});

it("has a line for each problem of a manifest, and the message of anything else", () => {
  const problem = { file: "f", line: 1, path: "a", message: "m", suggestion: undefined };
  const error = new ManifestError([
    { ...problem, column: 1 },
    { ...problem, column: 2 },
  ]);
  expect(toReason(error)).toBe("f:1:1: m\nf:1:2: m");
  expect([toReason(new Error("no room")), toReason("a text")]).toEqual(["no room", "a text"]);
});

it("is never empty", () => {
  expect(toReason(new AggregateError([]))).toBe("AggregateError");
});
