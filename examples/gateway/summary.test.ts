import { expect, it } from "vitest";
import { nextText, summaryText } from "./summary.ts";

const RESULT = {
  ok: true,
  granted: 278,
  refused: 3076,
  failed: 12,
  unavailable: 0,
  unwritten: 0,
  byProcess: [140, 138],
  checks: [{ promise: "Strict: no bucket gave more than it held", ok: true, detail: "by far" }],
};

it.each([40, 60, 80])("breaks every line between words at %i columns", (columns) => {
  const text =
    summaryText(RESULT, columns, (_format, plain) => plain) + nextText("./demo.db", columns);
  expect(Math.max(...text.split("\n").map((line) => line.length))).toBeLessThanOrEqual(columns);
});

it("continues a long command in a way that a shell reads as one line", () => {
  const printed = nextText("./demo.db", 40).replaceAll(/ \\\n +/g, " ");
  expect(printed).toBe(nextText("./demo.db", 200));
  expect(printed).toContain("\n  npx zae-limiter bucket show key-web\n");
});
