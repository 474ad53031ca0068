import { expect, it } from "vitest";
import { ValidationError } from "../../../core/errors.ts";
import { resolveOptions } from "../opening/options.ts";
import { openLeanTransport } from "./lean/lean-transport.ts";
import { systemClock } from "../../system-clock.ts";
import { checkRegion } from "./region.ts";

const FOREIGN = "eu.evil.example/?";

it.each(["eu-west-1", "us-gov-west-1", "local", "aws-global"])("accepts %s", (region) => {
  expect(checkRegion(region)).toBe(region);
});

it.each([
  "",
  FOREIGN,
  "eu-west-1.evil.example",
  "evil@eu-west-1",
  "eu-west-1:8000",
  "eu-west-1\n",
  "EU-WEST-1",
  "e".repeat(64),
  7,
])("refuses %j", (region) => {
  expect(() => checkRegion(region)).toThrow(ValidationError);
});

it("checks a region wherever it comes from, before it becomes part of an address", async () => {
  expect(() => resolveOptions("app", { region: FOREIGN }, {})).toThrow(/^Invalid region/);
  expect(() => resolveOptions("app", {}, { AWS_REGION: FOREIGN })).toThrow(/^Invalid region/);
  expect(() => resolveOptions("app", {}, { AWS_DEFAULT_REGION: FOREIGN })).toThrow(
    /^Invalid region/,
  );
  expect(resolveOptions("app", {}, {}).region).toBeUndefined();
  const endpointUrl = "http://127.0.0.1:8000";
  for (const [options, environment] of [
    [{ region: FOREIGN, endpointUrl }, {}],
    [{ endpointUrl }, { AWS_REGION: FOREIGN }],
  ] as const)
    await expect(openLeanTransport(options, { environment, clock: systemClock })).rejects.toThrow(
      /^Invalid region/,
    );
});
