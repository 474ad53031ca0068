import { expect, it } from "vitest";
import { UsageError } from "../../exit.ts";
import { repositoryUrl } from "./repository-url.ts";

it("prefers the option to the environment", () => {
  const env = { ZAEL_REPOSITORY: "sqlite:./from-environment.db" };
  expect(repositoryUrl({ repository: "memory:" }, env)).toBe("memory:");
  expect(repositoryUrl({}, env)).toBe("sqlite:./from-environment.db");
  expect(() => repositoryUrl({}, {})).toThrow(UsageError);
});

it("makes a DynamoDB URL from name, region and endpoint, whichever are given", () => {
  const env = { ZAEL_REPOSITORY: "memory:" };
  expect(repositoryUrl({ name: "my-stack", region: "eu-west-1" }, env)).toBe(
    "dynamodb://eu-west-1/my-stack",
  );
  expect(repositoryUrl({ name: "my-stack" }, env)).toBe("dynamodb:///my-stack");
  expect(repositoryUrl({ endpointUrl: "http://127.0.0.1:8000/?a=b&c" }, env)).toBe(
    "dynamodb:///?endpoint=http%3A%2F%2F127.0.0.1%3A8000%2F%3Fa%3Db%26c",
  );
});

it.each([
  { name: "x?endpoint=http://127.0.0.1:18650" },
  { name: "x/y" },
  { name: "x#y" },
  { name: "x y" },
  { name: "x%3Fy" },
  { name: "x\n" },
  { name: "" },
  { region: "eu-west-1/other?provisioning=table#" },
  { region: "eu-west-1.example.com" },
  { region: "EU-WEST-1" },
  { region: "" },
])("refuses %j, which could change the address", (location) => {
  expect(() => repositoryUrl({ name: "my-stack", ...location }, {})).toThrow(UsageError);
});

it("refuses a URL together with its shorthand", () => {
  expect(() => repositoryUrl({ repository: "memory:", region: "eu-west-1" }, {})).toThrow(
    /not both/,
  );
});
