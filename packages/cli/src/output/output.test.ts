import { Limit } from "zae-limiter";
import { describe, expect, it } from "vitest";
import { barText, chartText } from "./chart.ts";
import { jsonText } from "./json.ts";
import { fieldsText, tableText } from "./table.ts";
import { numberText, rateText, timeText, waitText } from "./text.ts";

describe("a table", () => {
  it("aligns text to the left and numbers to the right", () => {
    expect(
      tableText(
        ["Name", "Count"],
        [
          ["a", 1],
          ["long name", 12_345],
        ],
      ),
    ).toBe("Name        Count\na               1\nlong name  12,345\n");
  });

  it("counts cells, not characters", () => {
    expect(
      tableText(
        ["Name", "X"],
        [
          ["日本", "1"],
          ["é", "2"],
          ["🦊", "3"],
        ],
      ),
    ).toBe("Name  X\n日本  1\né     2\n🦊    3\n");
  });

  it("has only a header when there are no rows", () => {
    expect(tableText(["Name", "Count"], [])).toBe("Name  Count\n");
  });

  it("leaves out absent fields", () => {
    expect(
      fieldsText([
        ["Name", "a"],
        ["Parent", undefined],
        ["Cascade", false],
      ]),
    ).toBe("Name     a\nCascade  no\n");
  });
});

describe("a chart", () => {
  it("scales bars to the largest value, to an eighth of a cell", () => {
    expect(
      chartText(
        "tpm",
        [
          { label: "a", value: 80 },
          { label: "b", value: 10 },
          { label: "c", value: 0 },
        ],
        { columns: 17 },
      ),
    ).toBe("tpm\na  80  ██████████\nb  10  █▎\nc   0\n");
    expect(barText(0.125)).toBe("▏");
  });

  it("draws a negative value in another shade, and no bar for zero", () => {
    expect(
      chartText(
        "tpm",
        [
          { label: "a", value: 5 },
          { label: "b", value: -5 },
        ],
        { columns: 0 },
      ),
    ).toBe("tpm\na   5  ██████████\nb  -5  ░░░░░░░░░░\n");
    expect(chartText("tpm", [{ label: "a", value: 0 }])).toBe("tpm\na  0\n");
    expect(chartText("tpm", [])).toBe("tpm\n");
  });
});

describe("text", () => {
  it("writes times as ISO strings and a wait without end as null in JSON", () => {
    expect(JSON.parse(jsonText({ at: new Date(0), wait: Infinity, absent: undefined }))).toEqual({
      at: "1970-01-01T00:00:00.000Z",
      wait: null,
    });
  });

  it("writes numbers, times, rates and waits for people", () => {
    expect(numberText(1_234_567.891)).toBe("1,234,567.89");
    expect(timeText(new Date(Date.UTC(2026, 10, 15, 6)))).toBe("2026-11-15 06:00:00Z");
    expect(timeText(undefined)).toBe("");
    expect(
      rateText({ name: "a.b", capacity: 1, refillAmount: 1000, refillPeriodSeconds: 300 }),
    ).toBe("1,000/5min");
    expect(
      ["rpm:1000/5min:2000[soft]", "q:5000/day(09:00)@UTC", "x:20/inflight"].map((text) =>
        rateText(Limit.parse(text)),
      ),
    ).toEqual(["1,000/5min[soft]", "5,000/day(09:00)@UTC", "20/inflight"]);
    expect([0, 0.5, 599.9, 600, 3600.001, 2_678_340.5, Infinity].map(waitText)).toEqual([
      "now",
      "0.5 s",
      "599.9 s",
      "600 s (10 min)",
      "3,600.001 s (1 h 1 min)",
      "2,678,340.5 s (31 d)",
      "never",
    ]);
  });
});
