import { describe, expect, it } from "vitest";
import { ValidationError } from "./errors.ts";
import { checkOptions, optionNames } from "./options.ts";

const KNOWN = optionNames<{ endpointUrl: 1; waitUpToMs: 1; entityId: 1; onUnavailable: 1 }>({
  endpointUrl: true,
  waitUpToMs: true,
  entityId: true,
  onUnavailable: true,
});

function catchFault(options: unknown): ValidationError {
  try {
    checkOptions(options, KNOWN, "open");
  } catch (error) {
    if (error instanceof ValidationError) return error;
    throw error;
  }
  throw new Error("they were accepted");
}

describe("options", () => {
  it("that are known are accepted, whatever their values", () => {
    for (const options of [{}, { waitUpToMs: undefined }, { entityId: "a", endpointUrl: 1 }])
      expect(() => checkOptions(options, KNOWN, "open")).not.toThrow();
  });

  it.each([
    ["endpoint", "endpointUrl"],
    ["endpoint_url", "endpointUrl"],
    ["waitUpTo", "waitUpToMs"],
    ["entity_id", "entityId"],
    ["ENTITYID", "entityId"],
    ["entityID", "entityId"],
    ["onUnavailabel", "onUnavailable"],
    ["onUnavalable", "onUnavailable"],
  ])("%s is refused, and %s is named", (name, meant) => {
    expect(catchFault({ [name]: undefined })).toMatchObject({
      field: name,
      message: `Invalid ${name}: is not an option of open; did you mean ${meant}?`,
    });
  });

  it.each(["timeout", "x", "en", "__proto", "constructor", "toString"])(
    "%s is refused, and all options are listed if none is similar",
    (name) => {
      expect(catchFault({ [name]: 1 }).message).toBe(
        `Invalid ${name}: is not an option of open; known are endpointUrl, waitUpToMs, entityId, onUnavailable`,
      );
    },
  );

  it.each([null, 1, "path", [1], new Map()])("cannot be %j", (options) => {
    expect(catchFault(options)).toMatchObject({
      field: "options",
      reason: "must be an object of options of open",
    });
  });
});
