import { describe, expect, it } from "vitest";
import * as errors from "./errors.ts";

const VERSIONS = { clientVersion: "1.0.0", schemaVersion: "2.0.0" };

/** Codes are part of the public surface: changing one breaks callers that switch on it. */
const CODES: readonly (readonly [
  string,
  errors.ZaeLimiterError,
  readonly (abstract new (...values: never[]) => Error)[],
])[] = [
  ["ERR_LIMITER_LEASE_EXPIRED", new errors.LeaseExpiredError("committed"), [errors.RateLimitError]],
  [
    "ERR_LIMITER_UNAVAILABLE",
    new errors.RateLimiterUnavailable("down"),
    [errors.InfrastructureError],
  ],
  [
    "ERR_LIMITER_PERMISSION_DENIED",
    new errors.PermissionDenied("no"),
    [errors.InfrastructureError],
  ],
  [
    "ERR_LIMITER_STACK_OPERATION",
    new errors.StackOperationError("s", "why", ["event"]),
    [errors.InfrastructureError],
  ],
  [
    "ERR_LIMITER_STACK_EXISTS",
    new errors.StackAlreadyExistsError("s"),
    [errors.InfrastructureError],
  ],
  [
    "ERR_LIMITER_INFRASTRUCTURE_NOT_FOUND",
    new errors.InfrastructureNotFoundError("gone"),
    [errors.InfrastructureError],
  ],
  [
    "ERR_LIMITER_NAMESPACE_NOT_FOUND",
    new errors.NamespaceNotFoundError("n"),
    [errors.InfrastructureError],
  ],
  [
    "ERR_LIMITER_NAMESPACE_STATE",
    new errors.NamespaceStateError("n", "purging", "why"),
    [errors.InfrastructureError],
  ],
  ["ERR_LIMITER_ENTITY_NOT_FOUND", new errors.EntityNotFoundError("e"), [errors.EntityError]],
  ["ERR_LIMITER_ENTITY_EXISTS", new errors.EntityExistsError("e"), [errors.EntityError]],
  [
    "ERR_LIMITER_VERSION_MISMATCH",
    new errors.VersionMismatchError("m", { ...VERSIONS, canAutoUpdate: true }),
    [errors.VersionError],
  ],
  [
    "ERR_LIMITER_INCOMPATIBLE_SCHEMA",
    new errors.IncompatibleSchemaError("m", VERSIONS),
    [errors.VersionError],
  ],
  ["ERR_LIMITER_VALIDATION", new errors.ValidationError("f", 1, "r"), []],
  [
    "ERR_LIMITER_INVALID_IDENTIFIER",
    new errors.InvalidIdentifierError("f", 1, "r"),
    [errors.ValidationError],
  ],
  ["ERR_LIMITER_INVALID_NAME", new errors.InvalidNameError("f", 1, "r"), [errors.ValidationError]],
  ["ERR_LIMITER_APPLY_CONFLICT", new errors.ApplyConflictError(3), [errors.ValidationError]],
];

describe("errors", () => {
  it.each(CODES)(
    "%s is the code of its error, whose bases are as declared",
    (code, error, bases) => {
      expect(error.code).toBe(code);
      expect(error.name).toBe(error.constructor.name);
      for (const base of [Error, errors.ZaeLimiterError, ...bases])
        expect(error).toBeInstanceOf(base);
    },
  );

  it("each have a code of their own", () => {
    const codes = CODES.map(([code]) => code);
    expect(new Set(codes).size).toBe(codes.length);
    const abstract = [
      "ZaeLimiterError",
      "RateLimitError",
      "InfrastructureError",
      "EntityError",
      "VersionError",
    ];
    expect([...CODES.map(([, error]) => error.name), ...abstract].sort()).toEqual(
      Object.keys(errors)
        .filter((name) => /^[A-Z]/.test(name))
        .sort(),
    );
  });
});

function getValue(value: unknown): string {
  return new errors.ValidationError("f", value, "r").value;
}

describe("the content of errors", () => {
  it("unavailability names the call that failed, and its cause", () => {
    const cause = new Error("socket");
    const error = new errors.RateLimiterUnavailable("Down.", {
      entityId: "e",
      resource: "r",
      stackName: "s",
      cause,
    });
    expect(error).toMatchObject({
      message: "Down. [stack=s, entity=e, resource=r]",
      entityId: "e",
      resource: "r",
      stackName: "s",
      cause,
    });
    expect("cause" in new errors.RateLimiterUnavailable("Down.")).toBe(false);
  });

  it("other errors have the fields that a caller needs", () => {
    expect(new errors.StackOperationError("s", "why", ["event"])).toMatchObject({
      stackName: "s",
      reason: "why",
      events: ["event"],
    });
    expect(new errors.NamespaceStateError("n", "purging", "why")).toMatchObject({
      namespaceName: "n",
      state: "purging",
    });
    expect(
      new errors.VersionMismatchError("m", { ...VERSIONS, canAutoUpdate: true }),
    ).toMatchObject({
      ...VERSIONS,
      canAutoUpdate: true,
      lambdaVersion: undefined,
    });
    expect(new errors.EntityNotFoundError("e").entityId).toBe("e");
  });

  it("an invalid value is cut to 50 characters, whatever it is", () => {
    const circular: Record<string, unknown> = {};
    circular["self"] = circular;
    expect(getValue("x".repeat(51))).toBe("x".repeat(50));
    expect(getValue({ text: "x".repeat(100) })).toHaveLength(50);
    expect([undefined, null, 1.5, 2n, Symbol("s"), circular, { a: 1 }].map(getValue)).toEqual([
      "undefined",
      "null",
      "1.5",
      "2",
      "Symbol(s)",
      "object",
      '{"a":1}',
    ]);
  });

  it("a validation error names the field and what is wrong with it", () => {
    expect(new errors.ValidationError("consume.rpm", -1, "must not be negative").message).toBe(
      "Invalid consume.rpm: must not be negative (got -1)",
    );
  });

  it.each([
    ["a text in quotes", "auth0|abc", " (got 'auth0|abc')"],
    ["an empty text", "", " (got '')"],
    ["a boolean", true, " (got true)"],
    ["a list", [1, 2], " (got [1,2])"],
    ["a plain object", { rpm: 1 }, ' (got {"rpm":1})'],
    ["50 characters of a long text", "x".repeat(60), ` (got '${"x".repeat(50)}')`],
    ["no control characters", "a\u001B[31m\n\u202Eb", " (got 'a\\u{1b}[31m\\u{a}\\u{202e}b')"],
    ["no password", "http://me:secret@host/x?y", " (got 'http://***@host/x?y')"],
    ["no password with signs in it", "db://a?u=http://me:s/e@c:r@host", " (got 'db://***@host')"],
    ["no password with a space in it", "db://me:s e@host", " (got 'db://***@host')"],
    ["no secret of an object", { secretAccessKey: "abc" }, ' (got {"secretAccessKey":"***"})'],
    ["no secret deep inside", { a: { sessionToken: "x" } }, ' (got {"a":{"sessionToken":"***"}})'],
    ["an amount, whatever its name", { tokens: 5 }, ' (got {"tokens":5})'],
    ["nothing for undefined", undefined, ""],
    ["nothing for null", null, ""],
    ["nothing for an object of a class", Promise.resolve(1), ""],
    ["nothing for a function", () => 1, ""],
  ])("a validation error repeats %s", (_, value, repeated) => {
    expect(new errors.ValidationError("f", value, "why").message).toBe(`Invalid f: why${repeated}`);
  });

  it("a validation error cuts and escapes a field that is named after input", () => {
    const { ValidationError } = errors;
    const long = new ValidationError(`consume.${"x".repeat(100_000)}`, 1, "no such limit");
    expect(long.field).toBe(`consume.${"x".repeat(192)}…`);
    expect(long.message).toBe(`Invalid ${long.field}: no such limit (got 1)`);
    const forged = new ValidationError("consume.a\u001B[2J\n\u202Eb", "a\u001B[2J\n\u202Eb", "no");
    expect(forged.message).toBe("Invalid consume.a\\u{1b}[2J\\u{a}\\u{202e}b: no");
    expect(forged.field).toBe("consume.a\\u{1b}[2J\\u{a}\\u{202e}b");
    const widest = `metadata.${"y".repeat(128)}`;
    expect(new ValidationError(widest, 1, "no").field).toBe(widest);
  });

  it("a value that the message has already is not repeated", () => {
    const { ValidationError } = errors;
    expect(new ValidationError("consume.rmp", "rmp", "no such limit").message).toBe(
      "Invalid consume.rmp: no such limit",
    );
    expect(new ValidationError("limits", "rpm", "the name 'rpm' appears twice").message).toBe(
      "Invalid limits: the name 'rpm' appears twice",
    );
  });

  it.each([
    ["me:secret@host:8000", "***@host:8000"],
    ["http:me:secret@host", "***@host"],
    ["ftp://me:secret@host", "ftp://***@host"],
    ["host:8000", "host:8000"],
  ])("no validation error has the credentials of a mistyped address: %s", (address, shown) => {
    const { message, value } = new errors.ValidationError("endpointUrl", address, "is wrong");
    expect([message, value]).toEqual([`Invalid endpointUrl: is wrong (got '${shown}')`, shown]);
  });

  it.each([
    ["http://me:secret@host:8000 did not answer", "http://***@host:8000 did not answer"],
    ["http%3A%2F%2Fme%3Asecret%40host did not", "http%3A%2F%2F***%40host did not"],
    [
      'see "dynamodb://eu-west-1/s?endpoint=http://me:se%24cret@host&provisioning=table".',
      'see "dynamodb://eu-west-1/s?endpoint=http://***@host&provisioning=table".',
    ],
    [
      "dynamodb:///s?endpoint=http%3a%2f%2fme%40host",
      "dynamodb:///s?endpoint=http%3a%2f%2f***%40host",
    ],
    [
      "npm install @zae-limiter/infra, or https://x/y.",
      "npm install @zae-limiter/infra, or https://x/y.",
    ],
    ["https://host/@scope/name", "https://host/@scope/name"],
    ["a@b of dynamodb://eu-west-1/s", "a@b of dynamodb://eu-west-1/s"],
  ])("no message has the credentials of an address: %s", (message, shown) => {
    expect(new errors.RateLimiterUnavailable(message).message).toBe(shown);
    expect(errors.withoutCredentials(shown)).toBe(shown);
  });

  it("no field of a validation error has a password", () => {
    expect(getValue("https://me:secret@host")).toBe("https://***@host");
  });

  it("a value that throws on every access does not break the error", () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    const unnamed = Object.assign(() => 1, { toString: () => expect.fail() });
    expect([proxy, unnamed].map(getValue)).toEqual(["object", "function"]);
  });

  it("a text of many addresses is scanned once, not once for each", () => {
    expect(getValue("://".repeat(1_000_000))).toHaveLength(50);
  });

  it("an expired lease says how that happens", () => {
    expect(new errors.LeaseExpiredError("committed").message).toBe(
      "This lease was already committed. Did the function return before its work was done? Await all of it there, or acquire a new lease.",
    );
  });
});
