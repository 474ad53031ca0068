import { describe, expect, it } from "vitest";
import { countKey, type Counts } from "./call-log.ts";
import { KEYS, MODELS, PROJECT } from "./scenario.ts";
import { introText, viewText } from "./view.ts";

/** The width that the demo promises to fit into. */
const COLUMNS = 60;
const plain = (_format: string, text: string): string => text;

describe("the live view", () => {
  const text = viewText(
    {
      elapsedMs: 1500,
      lengthMs: 20_000,
      counts: {
        [countKey("key-web", "model-large")]: { granted: 3, refused: 2, failed: 1 },
        [countKey("key-batch", "model-large")]: { granted: 4, refused: 0, failed: 0 },
      },
      available: new Map([
        [countKey("key-web", "model-large"), { rpm: 15, tpm: -50 }],
        [countKey("key-batch", "model-large"), { rpm: 0, tpm: 800 }],
      ]),
    },
    plain,
  );
  const lines = text.split("\n");

  it("shows every limit of every key, so that one can see which of them refuses", () => {
    expect(lines[0]).toBe("1.5 s of 20 s");
    expect(lines[1]).toBe("model-large     Granted  Refused  rpm left  tpm left");
    expect(lines[2]).toMatch(/^key-web +3 +2 +███· +15 +···· +-50$/);
    expect(lines[3]).toMatch(/^key-batch +4 +0 +···· +0 +██·· +800$/);
    expect(lines[4]).toMatch(/^key-research +0 +0 +████ +20 +████ +1,600$/);
    expect(lines[6]).toMatch(/^model-small +Granted/);
  });

  it("adds up the keys for their project", () => {
    expect(lines[5]).toMatch(/^project-apollo +7 +2 +████ +40 +████ +3,600$/);
  });
});

describe("fits into 60 columns:", () => {
  it("the live view, with the largest numbers of a long run", () => {
    const entities = [...KEYS, PROJECT];
    const each = MODELS.flatMap(({ name }) => entities.map((id) => countKey(id, name)));
    const counts: Counts = Object.fromEntries(
      each.map((key) => [key, { granted: 123_456, refused: 123_456, failed: 0 }]),
    );
    const available = new Map(each.map((key) => [key, { rpm: -99, tpm: -99_999 }]));
    const moment = { elapsedMs: 86_399_900, lengthMs: 86_400_000, counts, available };
    expect(getWidth(viewText(moment, plain))).toBeLessThanOrEqual(COLUMNS);
  });

  it("what stands above it, which says that refusals are wanted", () => {
    const intro = introText(COLUMNS, plain);
    expect(getWidth(intro)).toBeLessThanOrEqual(COLUMNS);
    expect(intro.replaceAll("\n", " ")).toContain(
      "most calls are refused, which is what is wanted",
    );
    expect(intro).toMatch(/^model-small +project +540\/min \(15\) +300,000\/min \(10,000\)$/m);
  });
});

function getWidth(text: string): number {
  return Math.max(...text.split("\n").map((line) => line.length));
}
