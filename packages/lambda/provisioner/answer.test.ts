import { expect, it } from "vitest";
import { buildAnswer } from "./answer.ts";

const REQUEST = {
  RequestType: "Create",
  ResponseURL: "https://example.com/answer",
  StackId: "arn:aws:cloudformation:eu-west-1:123456789012:stack/app/1",
  RequestId: "request-1",
  LogicalResourceId: "Limits",
  ResourceProperties: { Namespace: "secret" },
} as const;
const COPIED = {
  StackId: REQUEST.StackId,
  RequestId: REQUEST.RequestId,
  LogicalResourceId: REQUEST.LogicalResourceId,
};

it("says what was done, as texts, and which resource it is", () => {
  const report = { revision: 7, created: 1, updated: 2, deleted: 3, unchanged: 4 };
  const answer = buildAnswer(REQUEST, { status: "SUCCESS", physicalId: "id", report });
  expect(JSON.parse(answer)).toEqual({
    Status: "SUCCESS",
    PhysicalResourceId: "id",
    ...COPIED,
    Data: { Created: "1", Updated: "2", Deleted: "3", Unchanged: "4", Revision: "7" },
  });
});

it("says why it failed", () => {
  const answer = buildAnswer(REQUEST, { status: "FAILED", physicalId: "id", reason: "no room" });
  expect(JSON.parse(answer)).toEqual({
    Status: "FAILED",
    Reason: "no room",
    PhysicalResourceId: "id",
    ...COPIED,
  });
});

it.each([
  ["letters of one byte", "x"],
  ["letters of three bytes", "…"],
  ["letters that JSON escapes", "\n"],
  ["pairs of codes", "🙂"],
])("is never longer than CloudFormation reads, with %s", (_, letter) => {
  for (const length of [1, 3000, 4096, 100_000]) {
    const reason = letter.repeat(length);
    const answer = buildAnswer(REQUEST, { status: "FAILED", physicalId: "id", reason });
    const bytes = Buffer.byteLength(answer);
    expect(bytes).toBeLessThanOrEqual(4096);
    const { Reason } = JSON.parse(answer) as { readonly Reason: string };
    if (Reason === reason) continue;
    // Cut, and not by more than needed.
    expect(Reason).toContain(letter);
    expect(Reason.endsWith("(the log of the function has more)")).toBe(true);
    expect(bytes).toBeGreaterThan(4080);
  }
});
