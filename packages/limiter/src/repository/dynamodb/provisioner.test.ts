import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { piecesOf } from "./provisioner.ts";

const bytes = (text: string): number => Buffer.byteLength(text);

describe("the text of a state", () => {
  it("is cut into pieces that are full, and never within a character", () => {
    expect(piecesOf("", 4)).toEqual([]);
    expect(piecesOf("abcd", 4)).toEqual(["abcd"]);
    expect(piecesOf("abcde", 4)).toEqual(["abcd", "e"]);
    expect(piecesOf("abcé", 4)).toEqual(["abc", "é"]);
    expect(piecesOf("ab–c", 4)).toEqual(["ab", "–c"]);
    expect(piecesOf("abc😀", 4)).toEqual(["abc", "😀"]);
    expect(piecesOf("a😀😀b", 5)).toEqual(["a😀", "😀b"]);
  });

  it("fits into its pieces, whatever it is, and is the same when they are joined", () => {
    const text = fc.string({ unit: "grapheme", maxLength: 200 });
    fc.assert(
      fc.property(text, fc.integer({ min: 4, max: 40 }), (whole, maxBytes) => {
        const pieces = piecesOf(whole, maxBytes);
        expect(pieces.join("")).toBe(whole);
        for (const piece of pieces) {
          expect(bytes(piece)).toBeLessThanOrEqual(maxBytes);
          expect(Buffer.from(piece).toString()).toBe(piece);
        }
        // The next character never had room in the piece before it.
        for (const [index, piece] of pieces.slice(1).entries())
          expect(bytes(pieces[index]!) + bytes([...piece][0]!)).toBeGreaterThan(maxBytes);
      }),
    );
  });
});
