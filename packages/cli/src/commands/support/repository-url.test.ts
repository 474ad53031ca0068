import { describe, expect, it } from "vitest";
import { ValidationError } from "zae-limiter";
import { UsageError } from "../../exit.ts";
import {
  createsOnFirstUse,
  managedStack,
  repositoryOrStackUrl,
  repositoryUrl,
  stackPlace,
} from "./repository-url.ts";

it("prefers the option to the environment", () => {
  const env = { ZAEL_REPOSITORY: "sqlite:./from-environment.db" };
  expect(repositoryUrl({ repository: "memory:" }, env)).toBe("memory:");
  expect(repositoryUrl({}, env)).toBe("sqlite:./from-environment.db");
  expect(() => repositoryUrl({}, {})).toThrow(UsageError);
});

it.each([{}, { ZAEL_REPOSITORY: "" }, { ZAEL_REPOSITORY: "dynamodb://us-east-1/other" }])(
  "makes a DynamoDB URL from stack, region and endpoint, whichever are given, with %j",
  (env) => {
    expect(repositoryUrl({ stack: "my-stack", region: "eu-west-1" }, env)).toBe(
      "dynamodb://eu-west-1/my-stack",
    );
    expect(repositoryUrl({ stack: "my-stack" }, env)).toBe("dynamodb:///my-stack");
    expect(repositoryUrl({ endpointUrl: "http://127.0.0.1:8000/?a=b&c" }, env)).toBe(
      "dynamodb:///?endpoint=http%3A%2F%2F127.0.0.1%3A8000%2F%3Fa%3Db%26c",
    );
  },
);

it.each([
  { stack: "x?endpoint=http://127.0.0.1:18650" },
  { stack: "x/y" },
  { stack: "x#y" },
  { stack: "x y" },
  { stack: "x%3Fy" },
  { stack: "x\n" },
  { stack: "" },
  { region: "eu-west-1/other?provisioning=table#" },
  { region: "eu-west-1.example.com" },
  { region: "EU-WEST-1" },
  { region: "" },
])("refuses %j, which could change the address", (location) => {
  expect(() => repositoryUrl({ stack: "my-stack", ...location }, {})).toThrow(UsageError);
});

const STACK_OPTIONS = [
  ["--stack", { stack: "my-stack" }],
  ["--region", { region: "eu-west-1" }],
  ["--endpoint-url", { endpointUrl: "http://127.0.0.1:8000" }],
] as const;

it.each(STACK_OPTIONS)("refuses %s beside another repository, and says which", (option, given) => {
  for (const url of ["sqlite:./limits.db", "memory:"])
    expect(() => repositoryUrl(given, { ZAEL_REPOSITORY: url })).toThrow(
      `${option} can only name a DynamoDB table, but ZAEL_REPOSITORY is ${url}. ` +
        `Leave ${option} out, or unset ZAEL_REPOSITORY.`,
    );
  for (const repository of ["sqlite:./limits.db", "dynamodb://eu-west-1/my-stack"])
    expect(() => repositoryUrl({ repository, ...given }, {})).toThrow(
      `${option} can only name a DynamoDB table, but --repository already names ${repository}. ` +
        "Pass one or the other.",
    );
});

describe("the stack of an infrastructure verb", () => {
  it("is zae-limiter, unless the environment names one", () => {
    expect(stackPlace({}, {})).toEqual({ stack: "zae-limiter" });
    expect(stackPlace({}, { ZAEL_STACK: "" })).toEqual({ stack: "zae-limiter" });
    expect(stackPlace({}, { ZAEL_STACK: "mine" })).toEqual({ stack: "mine" });
    expect(stackPlace({}, { ZAEL_REPOSITORY: "dynamodb://eu-west-1/other" })).toEqual({
      stack: "other",
      region: "eu-west-1",
    });
    const env = { ZAEL_STACK: "mine", ZAEL_REPOSITORY: "dynamodb://eu-west-1" };
    expect(stackPlace({}, env)).toEqual({ stack: "mine", region: "eu-west-1" });
  });

  it("is what options or a URL name, whatever the environment says", () => {
    const env = { ZAEL_STACK: "mine", ZAEL_REPOSITORY: "dynamodb://us-east-1/other" };
    const endpointUrl = "http://127.0.0.1:8000/?a=b&c";
    expect(stackPlace({ stack: "one", region: "eu-west-1", endpointUrl }, env)).toEqual({
      stack: "one",
      region: "eu-west-1",
      endpointUrl,
    });
    const repository = "dynamodb://eu-west-1/one?provisioning=table";
    expect(stackPlace({ repository }, env)).toEqual({ stack: "one", region: "eu-west-1" });
    expect(stackPlace({ region: "eu-west-1" }, env)).toEqual({
      stack: "mine",
      region: "eu-west-1",
    });
  });

  it("leaves a repository elsewhere aside if the environment names it, and refuses an option", () => {
    const env = { ZAEL_REPOSITORY: "sqlite:./limits.db" };
    expect(stackPlace({}, env)).toEqual({ stack: "zae-limiter" });
    expect(stackPlace({ stack: "one" }, env)).toEqual({ stack: "one" });
    expect(() => stackPlace({ repository: "memory:" }, {})).toThrow("memory: has no stack.");
  });

  it("is named where stacks are managed, if the environment names a repository without one", () => {
    for (const url of ["sqlite:./limits.db", "memory:", "postgres://127.0.0.1/limits"]) {
      const env = { ZAEL_REPOSITORY: url, ZAEL_STACK: "mine" };
      const said = `ZAEL_REPOSITORY is ${url}, which has no stack. Name the`;
      for (const location of [{}, { region: "eu-west-1" }])
        expect(() => managedStack(location, env)).toThrow(`${said} stack with --stack, or unset`);
      expect(() => managedStack({}, env, ["stack", "region"])).toThrow(`${said} region`);
      const region = "eu-west-1";
      expect(managedStack({ region }, env, ["stack", "region"])).toEqual({ stack: "mine", region });
      expect(managedStack({ stack: "one" }, env)).toEqual({ stack: "one" });
    }
    for (const env of [{}, { ZAEL_REPOSITORY: "" }, { ZAEL_REPOSITORY: "dynamodb://" }])
      expect(managedStack({}, env)).toEqual({ stack: "zae-limiter" });
  });

  it.each(["my_stack", "1st", "-a", "ab", "a".repeat(56), "a.b", "ä-stack"])(
    "cannot be called %s, wherever that comes from",
    (stack) => {
      const location = { repository: `dynamodb://eu-west-1/${stack}` };
      for (const place of [() => stackPlace(location, {}), () => stackPlace({ stack }, {})])
        expect(place).toThrow(`'${stack}' cannot be a stack: it must begin with a letter`);
      expect(() => stackPlace({}, { ZAEL_STACK: stack })).toThrow(UsageError);
    },
  );

  it("refuses a URL as the library does", () => {
    for (const repository of ["dynamodb:s", "dynamodb://a/b/c", "dynamodb://a/b?endpont=x"])
      expect(() => stackPlace({ repository }, {})).toThrow(ValidationError);
    expect(() => stackPlace({ stack: "x?endpoint=http://127.0.0.1:1" }, {})).toThrow(UsageError);
  });
});

it("status is about the repository that is named, or else about the stack", () => {
  const sqlite = { ZAEL_REPOSITORY: "sqlite:./limits.db" };
  expect(repositoryOrStackUrl({}, sqlite)).toBe("sqlite:./limits.db");
  expect(repositoryOrStackUrl({ region: "eu-west-1" }, {})).toBe("dynamodb://eu-west-1/");
  expect(repositoryOrStackUrl({}, {})).toBe("dynamodb:///zae-limiter");
  expect(repositoryOrStackUrl({}, { ZAEL_STACK: "mine" })).toBe("dynamodb:///mine");
  expect(() => repositoryOrStackUrl({ stack: "s" }, sqlite)).toThrow(UsageError);
});

it.each([
  ["sqlite:./limits.db", true],
  ["dynamodb://eu-west-1/my-stack", false],
  ["dynamodb://eu-west-1/my-stack?provisioning=stack", false],
  ["dynamodb://eu-west-1/my-stack?provisioning=never", false],
  ["dynamodb://eu-west-1/my-stack?provisioning=table", true],
  ["dynamodb://eu-west-1/my-stack?endpoint=http%3A%2F%2F127.0.0.1%3A8000", true],
  [
    "dynamodb://eu-west-1/my-stack?endpoint=http%3A%2F%2F127.0.0.1%3A8000&provisioning=stack",
    false,
  ],
])("a verb that stores something creates %s on first use: %s", (url, expected) => {
  expect(createsOnFirstUse(url)).toBe(expected);
});
