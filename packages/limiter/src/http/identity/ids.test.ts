import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ValidationError } from "../../core/errors.ts";
import { entityId } from "../../core/identifiers.ts";
import { hashedId, toId } from "./ids.ts";

describe("an id for a secret", () => {
  it("is the prefix, a dash and 32 hex digits of its SHA-256", () => {
    // FIPS 180-2, appendix B.1: the SHA-256 of "abc".
    expect(hashedId("key", "abc")).toBe("key-ba7816bf8f01cfea414140de5dae2223");
    expect(hashedId("key", "")).toBe("key-e3b0c44298fc1c149afbf4c8996fb924");
    expect(hashedId("user:eu", "abc")).toBe("user:eu-ba7816bf8f01cfea414140de5dae2223");
  });

  it.each([
    ["", "abc"],
    ["-", "abc"],
    ["two words", "abc"],
    [undefined, "abc"],
    ["k".repeat(224), "abc"],
    ["key", undefined],
    ["key", ["abc"]],
  ])("is not made of %j and %j", (prefix, secret) => {
    expect(() => hashedId(prefix as never, secret as never)).toThrow(ValidationError);
  });

  it("is not in errors", () => {
    const secret = ["sk-live-51H8"] as never;
    expect(() => hashedId("key", secret)).toThrow(/^(?!.*sk-live)/s);
    expect(hashedId("k".repeat(223), "abc")).toHaveLength(256);
  });
});

describe("an id for any text", () => {
  it.each([
    ["user-1", "user-1"],
    ["a@b.example", "a@b.example"],
    ["a".repeat(256), "a".repeat(256)],
    ["", "enc:"],
    ["2001:db8::/56", "enc:2001:db8::@2f56"],
    ["::1", "enc:::1"],
    ["mail <a@b.example>", "enc:mail@20@3ca@40b.example@3e"],
    ["Jürgen", "enc:J@u00fcrgen"],
    ["enc:a", "enc:enc:a"],
    ["cut:a", "enc:cut:a"],
  ])("%j has %s", (text, id) => {
    expect(toId(text)).toBe(id);
  });

  it("is cut and hashed if it is too long", () => {
    const id = toId("/".repeat(84) + "a");
    expect(toId("/".repeat(84))).toHaveLength(256);
    expect(id).toMatch(/^cut:(?:@2f){62}@:[0-9a-f]{64}$/);
    expect(id).toHaveLength(256);
    expect(toId("/".repeat(84) + "b")).not.toBe(id);
    // In UTF-8 they would be the same.
    expect(toId("/".repeat(84) + "\ud800")).not.toBe(toId("/".repeat(84) + "\ud801"));
  });

  it("is valid, and the text can be read from it", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const id = toId(text);
        expect(entityId(id)).toBe(id);
        if (!id.startsWith("cut:")) expect(decode(id)).toBe(text);
      }),
      { numRuns: 500 },
    );
  });

  it("is that of no other text, not even of its own id", () => {
    fc.assert(
      fc.property(anyText, anyText, (left, right) => {
        if (left !== right) expect(toId(left)).not.toBe(toId(right));
        if (toId(left) !== left) expect(toId(toId(left))).not.toBe(toId(left));
      }),
      { numRuns: 500 },
    );
  });

  it("is made of texts only", () => {
    expect(() => toId(7 as never)).toThrow("Invalid text: must be a string");
  });
});

/** UTF-16 of every kind, including lone surrogates, and texts that look like ids. */
const part = fc.oneof(
  fc.constantFrom("enc:", "cut:", "@", "@2f", "@u00fc", "u00fc", "\ud800", "\udc00", "\ufffd", "ü"),
  fc.string({ unit: "binary", maxLength: 5 }),
  fc.string({ maxLength: 5 }),
  fc.constantFrom("/".repeat(84), "a".repeat(253), "a".repeat(256)),
);
const anyText = fc.array(part, { maxLength: 5 }).map((parts) => parts.join(""));

function decode(id: string): string {
  if (!id.startsWith("enc:")) return id;
  return id
    .slice("enc:".length)
    .replaceAll(/@(?:u([0-9a-f]{4})|([0-9a-f]{2}))/g, (_, wide?: string, narrow?: string) =>
      String.fromCharCode(Number.parseInt(wide ?? narrow!, 16)),
    );
}
