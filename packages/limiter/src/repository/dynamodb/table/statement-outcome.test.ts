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
  expect(toOutcome({ Error })).toBe(expected);
  // An item of a statement that failed shows nothing of what became of it.
  expect(toOutcome({ Item: item, Error })).toBe(expected);
});

it("a statement with an item and without an error was applied", () => {
  for (const reply of [{ Item: item }, { Item: item, Error: null }])
    expect(statementOutcome(reply, "t")).toEqual({ kind: "applied", item });
});

it("a statement whose condition failed may show the item as it was", () => {
  const Error = { Code: "ConditionalCheckFailed", Item: item };
  expect(statementOutcome({ Error }, "t")).toEqual({ kind: "condition failed", item });
  for (const rest of [{}, { Message: null, Item: null }])
    expect(statementOutcome({ Error: { Code: Error.Code, ...rest } }, "t")).toEqual({
      kind: "condition failed",
      item: undefined,
    });
});

it.each<[string, StatementReply | null | undefined]>([
  ["no place in the reply", undefined],
  ["nothing in its place", null],
  ["neither an item nor an error", {}],
  ["nothing for its item and its error", { Item: null, Error: null }],
  ["an error without a code", { Error: {} }],
  ["an error with nothing in it", { Error: { Code: null, Message: null, Item: null } }],
])("the outcome of a statement is unknown that has %s", (_, reply) =>
  expect(toOutcome(reply)).toBe("unknown"),
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

function toOutcome(reply: StatementReply | null | undefined): string {
  const outcome = statementOutcome(reply, "t");
  if (outcome.kind !== "failed") return outcome.kind;
  expect(outcome.error).toBeInstanceOf(TableUnavailable);
  return outcome.error.ambiguous ? "unknown" : "not applied";
}
