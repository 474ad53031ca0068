import { describe, expect, it } from "vitest";
import { aggregatorVerdict, type AggregatorEvidence } from "./aggregator-verdict.ts";

const STREAM = "arn:aws:dynamodb:eu-west-1:123456789012:table/s/stream/2026-11-15T06:30:00.000";
const FUNCTION = { name: "s-aggregator", state: "Active", lastUpdate: "Successful" };
const MAPPING = { state: "Enabled", stateReason: "User action", lastResult: "OK" };
const WORKING: AggregatorEvidence = {
  function: FUNCTION,
  mapping: { ...MAPPING, streamArn: STREAM },
  heartbeat: undefined,
  streamArn: STREAM,
};

function heartbeat(lagMs: number): AggregatorEvidence["heartbeat"] {
  return { countedUntil: new Date(0), lagMs };
}

/** What becomes of a working aggregator of which one thing is different. */
function verdict(changed: Partial<AggregatorEvidence>): string {
  const { state, reason } = aggregatorVerdict({ ...WORKING, ...changed });
  return `${state}: ${reason}`;
}

describe("the aggregator is enabled", () => {
  it("if the function and its mapping are [W-78]", () => {
    expect(verdict({})).toBe("enabled: the function s-aggregator counts");
  });

  it("if a runner has just counted, whether there is a function or not [W-78]", () => {
    const recent = heartbeat(120_000);
    const off = { ...MAPPING, state: "Disabled" };
    const runs = "enabled: a runner counts (zae-limiter aggregate)";
    expect(verdict({ function: undefined, heartbeat: recent })).toBe(runs);
    expect(verdict({ function: { unknown: "denied" }, heartbeat: recent })).toBe(runs);
    expect(verdict({ mapping: off, heartbeat: recent })).toBe(runs);
  });

  it("not because the table has a stream [W-78]", () => {
    expect(verdict({ function: undefined, mapping: undefined })).toBe(
      "none: there is no function, and no runner counts",
    );
  });

  it("not because a runner counted long ago [W-78]", () => {
    expect(verdict({ function: undefined, heartbeat: heartbeat(120_001) })).toMatch(/^none: /);
  });
});

describe("the aggregator is broken", () => {
  it.each([
    [
      "without a mapping",
      { mapping: undefined },
      "no event source mapping leads from the table's stream to s-aggregator",
    ],
    [
      "when the function has failed",
      { function: { ...FUNCTION, state: "Failed", stateReason: "The image is gone." } },
      "the function s-aggregator has failed: The image is gone.",
    ],
    [
      "when its last update has failed",
      { function: { ...FUNCTION, lastUpdate: "Failed", lastUpdateReason: "No such role." } },
      "the function s-aggregator has failed: No such role.",
    ],
    [
      "when Lambda switched the mapping off",
      { mapping: { ...MAPPING, state: "Disabled", stateReason: "Function not found" } },
      "Lambda switched the event source mapping off: Function not found",
    ],
    [
      "when the mapping has a problem",
      { mapping: { ...MAPPING, lastResult: "PROBLEM: Function call failed" } },
      "the event source mapping has a problem: Function call failed",
    ],
    [
      "when the mapping reads the stream of an earlier table",
      { mapping: { ...MAPPING, streamArn: "arn:old" } },
      "the event source mapping reads a stream that is not the table's: arn:old",
    ],
  ])("%s, also if it counted a minute ago [W-78]", (_, changed, reason) => {
    expect(verdict(changed)).toBe(`broken: ${reason}`);
    expect(verdict({ ...changed, heartbeat: heartbeat(60_000) })).toBe(`broken: ${reason}`);
  });
});

describe("the aggregator is neither", () => {
  it("when somebody switched its mapping off [W-78]", () => {
    for (const stateReason of ["User action", "USER_INITIATED", "User initiated"])
      expect(verdict({ mapping: { ...MAPPING, state: "Disabled", stateReason } })).toBe(
        "disabled: somebody switched its event source mapping off",
      );
  });

  it("while AWS prepares it [W-78]", () => {
    expect(verdict({ function: { ...FUNCTION, state: "Pending" } })).toBe(
      "starting: the function is Pending",
    );
    for (const state of ["Creating", "Enabling", "Updating"])
      expect(verdict({ mapping: { ...MAPPING, state } })).toBe(`starting: the mapping is ${state}`);
  });

  it("when it may not be seen [W-78]", () => {
    expect(verdict({ function: { unknown: "denied" } })).toBe("unknown: denied");
    expect(verdict({ mapping: { unknown: "denied" } })).toBe("unknown: denied");
  });
});
