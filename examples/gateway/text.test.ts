import { expect, it } from "vitest";
import { barText, tableText, wrapText } from "./text.ts";

it("aligns text to the left and numbers to the right", () => {
  const rows = [
    ["a", 1, "x"],
    ["long name", 12_345, "y"],
  ];
  expect(tableText(["Name", "Count", "Last"], rows, (_format, text) => text)).toBe(
    "Name        Count  Last\na               1  x\nlong name  12,345  y\n",
  );
});

it("draws a bar to an eighth of a cell", () => {
  expect([barText(0), barText(0.125), barText(2.5), barText(3)]).toEqual(["", "▏", "██▌", "███"]);
});

it("breaks a sentence between words, and indents what follows", () => {
  expect(wrapText("ok     one two three", 12, 7)).toBe("ok     one\n       two\n       three");
  expect(wrapText("   one two three", 10, 3)).toBe("   one two\n   three");
  expect(wrapText("short", 80)).toBe("short");
  expect(wrapText("a-word-that-is-longer-than-the-line and more", 10)).toBe(
    "a-word-that-is-longer-than-the-line\nand more",
  );
});

it("does not count colours when it breaks a line", () => {
  expect(wrapText("\u001B[32mok\u001B[39m one two", 6)).toBe("\u001B[32mok\u001B[39m one\ntwo");
});
