import { expect, it } from "vitest";
import { countKey } from "./call-log.ts";
import { viewText } from "./view.ts";

it("shows every key and the project, with debt in a column of its own", () => {
  const text = viewText(
    {
      elapsedMs: 1500,
      lengthMs: 20_000,
      counts: {
        [countKey("key-web", "model-large")]: { granted: 3, refused: 2, failed: 1 },
        [countKey("key-batch", "model-large")]: { granted: 4, refused: 0, failed: 0 },
      },
      available: new Map([
        [countKey("key-web", "model-large"), { rpm: 17, tpm: -50 }],
        [countKey("key-batch", "model-large"), { rpm: 17, tpm: 800 }],
      ]),
    },
    (_format, plain) => plain,
  );
  const lines = text.split("\n");
  expect(lines[0]).toContain("1.5 s of 20 s");
  expect(lines.find((line) => line.startsWith("key-web") && line.includes("model-large"))).toMatch(
    / 3 +2 +1 +·{8} +0 +50$/,
  );
  expect(
    lines.find((line) => line.startsWith("key-batch") && line.includes("model-large")),
  ).toMatch(/ 4 +0 +0 +█{4}·{4} +800 +0$/);
  expect(
    lines.find((line) => line.startsWith("project-apollo") && line.includes("model-large")),
  ).toMatch(/ 7 +2 +1 +█{8} +3,600 +0$/);
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
});
