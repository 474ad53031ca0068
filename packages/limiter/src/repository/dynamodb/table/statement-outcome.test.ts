import { expect, it } from "vitest";
import { statementOutcome, type StatementReply } from "./statement-outcome.ts";
import { TableUnavailable } from "./table-errors.ts";

const item = { PK: { S: "key" } };

/** Every code that DynamoDB documents for a statement, and one that it does not. */
it.each([
  ["ConditionalCheckFailed", "condition failed"],
  ["ThrottlingError", "throttled"],
  ["ProvisionedThroughputExceeded", "throttled"],
  ["RequestLimitExceeded", "throttled"],
  ["ValidationError", "invalid"],
  ["ResourceNotFound", "invalid"],
  ["ItemCollectionSizeLimitExceeded", "invalid"],
  ["AccessDenied", "denied"],
  ["TransactionConflict", "not applied"],
  ["InternalServerError", "unknown"],
  ["DuplicateItem", "unknown"],
  ["SomethingNew", "unknown"],
])("a statement with the code %s is %s", (Code, expected) => {
  const Error = { Code, Message: "why" };
  expect(outcomeOf({ Error })).toBe(expected);
  // An item of a statement that failed shows nothing of what became of it.
  expect(outcomeOf({ Item: item, Error })).toBe(expected);
});

it("a statement without an error was applied; the reply may show its item", () => {
  expect(statementOutcome({ Item: item }, "t")).toEqual({ kind: "applied", item });
  for (const reply of [{}, { Error: null }])
    expect(statementOutcome(reply, "t")).toEqual({ kind: "applied", item: undefined });
});

it("a statement whose condition failed may show the item as it was", () => {
  const Error = { Code: "ConditionalCheckFailed", Item: item };
  expect(statementOutcome({ Error }, "t")).toEqual({ kind: "condition failed", item });
  expect(statementOutcome({ Error: { Code: Error.Code } }, "t")).toEqual({
    kind: "condition failed",
    item: undefined,
  });
});

it.each<[string, StatementReply | null | undefined]>([
  ["no place in the reply", undefined],
  ["nothing in its place", null],
  ["an error without a code", { Error: {} }],
])("the outcome of a statement is unknown that has %s", (_, reply) =>
  expect(outcomeOf(reply)).toBe("unknown"),
);

it("an error names the table, the code and the reason", () => {
  const outcome = statementOutcome(
    { Error: { Code: "InternalServerError", Message: "bad luck" } },
    "limits",
  );
  expect(outcome).toMatchObject({
    error: { message: expect.stringMatching(/table limits.*InternalServerError: bad luck/) },
  });
});

it("what a server says of a statement is cut to a length that fits a log", () => {
  const outcome = statementOutcome(
    { Error: { Code: "ValidationError", Message: "long ".repeat(1000) } },
    "t",
  );
  expect((outcome as { readonly why: string }).why).toMatch(/^ValidationError: long .{900,1100}…$/);
});

function outcomeOf(reply: StatementReply | null | undefined): string {
  const outcome = statementOutcome(reply, "t");
  if (outcome.kind !== "failed") return outcome.kind;
  expect(outcome.error).toBeInstanceOf(TableUnavailable);
  return outcome.error.ambiguous ? "unknown" : "not applied";
}
