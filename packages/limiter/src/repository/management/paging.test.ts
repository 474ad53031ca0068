import { describe, expect, it } from "vitest";
import { ValidationError } from "../../core/errors.ts";
import type { Keyed, KeyPage } from "../store.ts";
import { readAllPages, parsePageRequest, toPage } from "./paging.ts";

function numbersAfter({ limit, after = "0" }: KeyPage, last: number): Keyed<number> {
  const first = Number(after) + 1;
  const items = Array.from(
    { length: Math.min(limit, last - first + 1) },
    (_, index) => first + index,
  );
  return { items, next: first + limit <= last ? String(first + limit - 1) : undefined };
}

describe("pages", () => {
  it("hold 100 items by default, and 1 to 1000 by request", () => {
    expect(parsePageRequest("q", {})).toEqual({ limit: 100, after: undefined });
    expect(parsePageRequest("q", { limit: 1000 }).limit).toBe(1000);
    for (const limit of [0, -1, 1001, 1.5, Number.NaN, "5", null])
      expect(() => parsePageRequest("q", { limit: limit as number })).toThrow(ValidationError);
  });

  it("continue after the key in the cursor, whatever the key contains", () => {
    for (const key of ["", "a", "k1:", "ä#/ \n", "0".repeat(300)]) {
      const { cursor } = toPage("q", { items: [], next: key }, (item) => item);
      expect(cursor).toMatch(/^[\w-]+$/);
      expect(parsePageRequest("q", { cursor: cursor! }).after).toBe(key);
    }
  });

  it("refuse an invalid cursor", () => {
    for (const cursor of ["", "abc", "e30", 5, null, {}])
      expect(() => parsePageRequest("q", { cursor: cursor as string })).toThrow(
        expect.objectContaining({ field: "cursor" }),
      );
  });

  it("refuse a cursor with a letter too many", () => {
    // With twelve bytes, no further letter is the beginning of another byte.
    const { cursor } = toPage("q", { items: [], next: "key-123" }, (item) => item);
    for (const more of ["A", "=", "\n", " "])
      expect(() => parsePageRequest("q", { cursor: cursor + more })).toThrow(
        expect.objectContaining({ field: "cursor" }),
      );
  });

  it("refuse a cursor whose last letter is another with the same meaning", () => {
    // Of 13 bytes, the last of 18 letters says two bits; four more are left over.
    const { cursor } = toPage("q", { items: [], next: "key-1234" }, (item) => item);
    expect(cursor).toMatch(/^.{17}A$/);
    expect(() => parsePageRequest("q", { cursor: `${cursor!.slice(0, -1)}B` })).toThrow(
      expect.objectContaining({ field: "cursor" }),
    );
  });

  it("refuse the cursor of another query", () => {
    const { cursor } = toPage("limits of gpt-4", { items: [], next: "key-1" }, (item) => item);
    for (const query of ["limits of gpt", "limits of gpt-40", "entities"])
      expect(() => parsePageRequest(query, { cursor: cursor! })).toThrow(
        expect.objectContaining({ field: "cursor" }),
      );
  });

  it("convert their items, and the last one has no cursor", () => {
    expect(toPage("q", { items: [1, 2], next: undefined }, (item) => item * 2)).toEqual({
      items: [2, 4],
      cursor: undefined,
    });
  });

  it("are all read by allOf", async () => {
    const all = await readAllPages((page) => numbersAfter(page, 2500));
    expect(all).toHaveLength(2500);
    expect(all.at(-1)).toBe(2500);
  });
});
