import { describe, expect, it } from "vitest";
import {
  InfrastructureNotFoundError,
  PermissionDenied,
  RateLimiterUnavailable,
} from "../../../core/errors.ts";
import {
  ConditionFailed,
  TableUnavailable,
  TransactionCancelled,
  translateError,
} from "./table-errors.ts";
import { classifyError } from "../transport/failure.ts";

const named = (name: string, more: object = {}): Error =>
  Object.assign(new Error("said so"), { name, ...more });
const translate = (error: unknown): Error =>
  translateError(error, { tableName: "limits", operation: "UpdateItem" });

describe("errors of the client", () => {
  it("are repeated in a length that fits a log, whatever a server sent as name, message and reasons", () => {
    const long = "x".repeat(100_000);
    const error = translate(Object.assign(new Error(long), { name: long }));
    expect(error.message.length).toBeLessThan(1200);
    const CancellationReasons = [{ Code: long }];
    const cancelled = translate(named("TransactionCanceledException", { CancellationReasons }));
    expect(cancelled.message.length).toBeLessThan(200);
  });

  it.each([
    "ProvisionedThroughputExceededException",
    "ThrottlingException",
    "RequestLimitExceeded",
  ])("%s is unavailability that applied nothing", (name) => {
    expect(translate(named(name))).toMatchObject({
      name: "RateLimiterUnavailable",
      throttled: true,
      ambiguous: false,
      stackName: "limits",
    });
  });

  it.each([
    ["a time-out", named("TimeoutError")],
    ["a time-out of a signal", new DOMException("said so", "TimeoutError")],
    ["an internal error", named("InternalServerError", { $metadata: { httpStatusCode: 500 } })],
    ["a bad gateway", named("UnknownError", { $metadata: { httpStatusCode: 502 } })],
    ["a reset connection", named("Error", { code: "ECONNRESET" })],
    [
      "a network that went away under an open connection",
      named("Error", { code: "EHOSTUNREACH", syscall: "read" }),
    ],
    ["an answer that is not HTTP", named("Error", { code: "HPE_INVALID_CONSTANT" })],
    [
      "an answer of success that is not JSON",
      named("SyntaxError", { $metadata: { httpStatusCode: 200 } }),
    ],
    ["a transaction in progress", named("TransactionInProgressException")],
  ])("%s leaves the outcome unknown", (_, error) => {
    const translatedError = translate(error);
    expect(translatedError).toBeInstanceOf(RateLimiterUnavailable);
    expect((translatedError as TableUnavailable).ambiguous).toBe(true);
  });

  it.each(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH"])(
    "%s never sent anything",
    (code) => {
      const translatedError = translate(named("Error", { code }));
      expect(translatedError).toBeInstanceOf(RateLimiterUnavailable);
      expect((translatedError as TableUnavailable).ambiguous).toBe(false);
    },
  );

  it.each([
    ["AccessDeniedException", "ERR_LIMITER_PERMISSION_DENIED"],
    ["KMSAccessDeniedException", "ERR_LIMITER_PERMISSION_DENIED"],
    ["UnrecognizedClientException", "ERR_LIMITER_NO_CREDENTIALS"],
    ["ExpiredTokenException", "ERR_LIMITER_NO_CREDENTIALS"],
    ["InvalidSignatureException", "ERR_LIMITER_NO_CREDENTIALS"],
    ["CredentialsProviderError", "ERR_LIMITER_NO_CREDENTIALS"],
    ["TokenProviderError", "ERR_LIMITER_NO_CREDENTIALS"],
  ])("%s is a denied permission, which is never unavailability, with code %s", (name, code) => {
    const error = translate(named(name));
    expect(error).toBeInstanceOf(PermissionDenied);
    expect(error).not.toBeInstanceOf(RateLimiterUnavailable);
    expect(error).toMatchObject({ code });
  });

  it("names the action that was denied, as AWS does, and what to do", () => {
    const said =
      "User: arn:aws:iam::123456789012:user/ann is not authorized to perform: dynamodb:PutItem " +
      "on resource: arn:aws:dynamodb:eu-west-1:123456789012:table/limits";
    const denied = Object.assign(named("AccessDeniedException"), { message: said });
    expect(translate(denied).message).toBe(
      "AWS denied dynamodb:PutItem on table limits: attach the policy that fits the program to its role " +
        `(acquire-only, read-only or full-access, or that of its namespace) (AccessDeniedException: ${said}).`,
    );
    expect(translate(named("AccessDeniedException")).message).toContain(
      "AWS denied dynamodb:UpdateItem on table limits: attach",
    );
  });

  it("says of credentials that are refused or missing what to do", () => {
    expect(translate(named("ExpiredTokenException")).message).toBe(
      "AWS does not accept the credentials, which are wrong or have expired (ExpiredTokenException: said so): renew them, or choose others with AWS_PROFILE, or with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
    );
    expect(translate(named("CredentialsProviderError")).message).toBe(
      "No AWS credentials were found (said so): set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, choose a profile with AWS_PROFILE, give the machine a role, or pass credentials.",
    );
  });

  it("treats a signature with a wrong time as unavailability: the next attempt corrects it", () => {
    expect(
      classifyError(
        Object.assign(named("InvalidSignatureException"), { message: "Signature expired: now" }),
      ).kind,
    ).toBe("unavailable");
  });

  it.each([
    [{ ThrottlingReasons: [{ reason: "TableWriteKeyRangeThroughputExceeded" }] }, "keys"],
    [{ ThrottlingReasons: [{ reason: "TableWriteProvisionedThroughputExceeded" }] }, "table"],
    [{ throttlingReasons: [{ reason: "TableWriteAccountLimitExceeded" }] }, "table"],
    [
      {
        ThrottlingReasons: [
          { reason: "TableWriteMaxOnDemandThroughputExceeded" },
          { reason: "TableWriteKeyRangeThroughputExceeded" },
        ],
      },
      "keys",
    ],
    [{}, "unknown"],
  ])("distinguishes throttling of the whole table from that of a key: %j", (details, reason) => {
    const error = translate(named("ThrottlingException", details)) as TableUnavailable;
    for (const each of [error, error.withFacts({ ambiguous: true })])
      expect(each).toMatchObject({
        throttled: true,
        tableWide: reason === "table",
        keysThrottled: reason === "keys",
      });
  });

  it("reports a missing table", () => {
    expect(translate(named("ResourceNotFoundException"))).toBeInstanceOf(
      InfrastructureNotFoundError,
    );
  });

  it("captures no stack for expected outcomes", () => {
    const before = Error.stackTraceLimit;
    for (const name of ["ConditionalCheckFailedException", "TransactionCanceledException"])
      expect(translate(named(name)).stack).not.toContain("\n");
    expect(Error.stackTraceLimit).toBe(before);
  });

  it("carries the item of a failed condition", () => {
    const item = { PK: { S: "x" } };
    expect(translate(named("ConditionalCheckFailedException", { Item: item }))).toMatchObject({
      item,
    });
    expect(translate(named("ConditionalCheckFailedException"))).toBeInstanceOf(ConditionFailed);
  });

  it("carries the reasons of a cancelled transaction in order", () => {
    const error = translate(
      named("TransactionCanceledException", {
        CancellationReasons: [{ Code: "None" }, { Code: "ConditionalCheckFailed", Item: {} }],
      }),
    );
    expect(error).toBeInstanceOf(TransactionCancelled);
    expect((error as TransactionCancelled).reasons).toEqual([
      { code: "None", item: undefined },
      { code: "ConditionalCheckFailed", item: {} },
    ]);
  });

  it("does not treat a rejected request, which is our own fault, as unavailability", () => {
    expect(translate(named("ValidationException"))).toMatchObject({
      code: "ERR_LIMITER_STORE_REJECTED",
    });
    expect(translate(new TypeError("undefined is not a function"))).not.toBeInstanceOf(
      RateLimiterUnavailable,
    );
  });
});
