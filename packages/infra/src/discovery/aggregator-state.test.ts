import { expect, it } from "vitest";
import { judgeAggregator, type AggregatorEvidence } from "./aggregator-state.ts";

const NOW_MS = Date.parse("2026-11-15T06:30:00Z");
const FUNCTION = { logicalId: "AggregatorFunction", physicalId: "s-aggregator" };

function judge(evidence: Partial<AggregatorEvidence>): string {
  const { state, reason } = judgeAggregator(
    { heartbeat: undefined, function: undefined, changedAt: undefined, ...evidence },
    NOW_MS,
  );
  return `${state}: ${reason}`;
}

function beat(lagMs: number): AggregatorEvidence["heartbeat"] {
  return { countedUntil: new Date(NOW_MS - lagMs), lagMs };
}

it("is enabled if usage was just counted, by a function or by a runner [W-78]", () => {
  for (const lambda of [FUNCTION, undefined, { unknown: "denied" }])
    expect(judge({ heartbeat: beat(180_000), function: lambda })).toBe("enabled: usage is counted");
});

it("is not enabled because there is a function, or because it counted long ago [W-78]", () => {
  const broken = /^broken: the function s-aggregator does not count: see its log/;
  expect(judge({ function: FUNCTION })).toMatch(broken);
  expect(judge({ function: FUNCTION, heartbeat: beat(180_001) })).toMatch(broken);
  const none = "none: the stack has no function, and no runner counts";
  expect(judge({})).toBe(none);
  expect(judge({ heartbeat: beat(180_001) })).toBe(none);
});

const judgeAfterChange = (agoMs: number): string =>
  judge({ function: FUNCTION, changedAt: new Date(NOW_MS - agoMs) });

it("starts for some minutes after the stack was changed", () => {
  expect(judgeAfterChange(599_999)).toBe("starting: the function s-aggregator has not counted yet");
  expect(judgeAfterChange(600_000)).toMatch(/^broken: /);
});

it("is unknown if the heartbeat, or without one the stack, cannot be seen", () => {
  expect(judge({ heartbeat: { unknown: "no table" }, function: FUNCTION })).toBe(
    "unknown: no table",
  );
  expect(judge({ function: { unknown: "denied" } })).toBe("unknown: denied");
});
