import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MAX_AMOUNT } from "../core/amounts.ts";
import {
  computeSettlement,
  type CallEnd,
  type Reservation,
  type Settlement,
} from "./settlement.ts";
import { computeCost, METERING, type Metering } from "./tokens/metering.ts";
import { NO_TOKENS, type TokenUsage } from "./tokens/token-usage.ts";

const ESTIMATE = { input: 100, output: 50 };
const RESERVED: Reservation = {
  metering: METERING.openai,
  estimate: ESTIMATE,
  abandoned: "counted",
};
const REPORT: TokenUsage = {
  input: 60,
  cachedInput: 20,
  cacheWriteInput: 5,
  output: 30,
  reasoning: 10,
};
/** What Anthropic has reported at the beginning of an answer. */
const FIRST_REPORT = { input: 60, cachedInput: 20, cacheWriteInput: 5, output: 1 };

interface Row {
  readonly what: string;
  readonly call: CallEnd;
  readonly of?: Partial<Reservation>;
  readonly cost: Settlement["cost"];
  readonly usage: Partial<TokenUsage>;
  readonly source: "reported" | "counted" | "estimated";
}

const TABLE: readonly Row[] = [
  {
    what: "answered with usage",
    call: { end: "complete", reported: REPORT, isReportFinal: true, counted: 7 },
    cost: { rpm: 1, tpm: 115 },
    usage: REPORT,
    source: "reported",
  },
  {
    what: "answered with usage, above what was reserved",
    call: { end: "complete", reported: { ...REPORT, output: 3000 }, isReportFinal: true },
    cost: { rpm: 1, tpm: 3085 },
    usage: { ...REPORT, output: 3000 },
    source: "reported",
  },
  {
    what: "answered without usage",
    call: { end: "complete", isReportFinal: false, counted: 7 },
    cost: { rpm: 1, tpm: 107 },
    usage: { input: 100, output: 7 },
    source: "counted",
  },
  {
    what: "answered without usage, although what is abandoned is kept",
    call: { end: "complete", counted: 7 },
    of: { abandoned: "kept" },
    cost: { rpm: 1, tpm: 107 },
    usage: { input: 100, output: 7 },
    source: "counted",
  },
  {
    what: "answered with something that cannot be counted",
    call: { end: "complete" },
    cost: "as taken",
    usage: ESTIMATE,
    source: "estimated",
  },
  {
    what: "upstream 4xx, 5xx, connection refused",
    call: { end: "failed" },
    cost: "give-back",
    usage: NO_TOKENS,
    source: "estimated",
  },
  {
    what: "failed, whatever was seen before",
    call: { end: "failed", reported: REPORT, isReportFinal: true, counted: 9 },
    cost: "give-back",
    usage: NO_TOKENS,
    source: "estimated",
  },
  {
    what: "aborted before an answer",
    call: { end: "abandoned" },
    cost: "as taken",
    usage: ESTIMATE,
    source: "estimated",
  },
  {
    what: "connection lost before an answer",
    call: { end: "cut" },
    cost: "as taken",
    usage: ESTIMATE,
    source: "estimated",
  },
  {
    what: "stream abandoned before its first event",
    call: { end: "abandoned", counted: 0 },
    cost: { rpm: 1, tpm: 100 },
    usage: { input: 100 },
    source: "counted",
  },
  {
    what: "stream abandoned after Anthropic has reported its input",
    call: { end: "abandoned", reported: FIRST_REPORT, isReportFinal: false, counted: 7 },
    cost: { rpm: 1, tpm: 92 },
    usage: { ...FIRST_REPORT, output: 7 },
    source: "counted",
  },
  {
    what: "stream abandoned with more output reported than counted",
    call: { end: "abandoned", reported: { ...FIRST_REPORT, output: 9 }, counted: 7 },
    cost: { rpm: 1, tpm: 94 },
    usage: { ...FIRST_REPORT, output: 9 },
    source: "counted",
  },
  {
    what: "stream abandoned after its whole usage was reported",
    call: { end: "abandoned", reported: REPORT, isReportFinal: true, counted: 7 },
    of: { abandoned: "kept" },
    cost: { rpm: 1, tpm: 115 },
    usage: REPORT,
    source: "reported",
  },
  {
    what: "stream cut",
    call: { end: "cut", counted: 7 },
    cost: { rpm: 1, tpm: 107 },
    usage: { input: 100, output: 7 },
    source: "counted",
  },
  {
    what: "stream abandoned and kept, shorter than reserved",
    call: { end: "abandoned", counted: 7 },
    of: { abandoned: "kept" },
    cost: { rpm: 1, tpm: 150 },
    usage: { input: 100, output: 7 },
    source: "counted",
  },
  {
    what: "stream cut and kept, longer than reserved",
    call: { end: "cut", counted: 70 },
    of: { abandoned: "kept" },
    cost: { rpm: 1, tpm: 170 },
    usage: { input: 100, output: 70 },
    source: "counted",
  },
  {
    what: "stream stopped",
    call: { end: "stopped", counted: 900 },
    cost: "as taken",
    usage: { input: 100, output: 900 },
    source: "counted",
  },
  {
    what: "stream stopped although its whole usage was reported",
    call: { end: "stopped", reported: REPORT, isReportFinal: true, counted: 900 },
    cost: "as taken",
    usage: { ...REPORT, output: 900 },
    source: "counted",
  },
  {
    what: "Anthropic, where reads from a cache are free",
    call: { end: "complete", reported: REPORT, isReportFinal: true },
    of: { metering: METERING.anthropic },
    cost: { rpm: 1, itpm: 65, otpm: 30 },
    usage: REPORT,
    source: "reported",
  },
  {
    what: "a usage that no lease can be settled to",
    call: {
      end: "complete",
      reported: { ...NO_TOKENS, output: Number.MAX_SAFE_INTEGER },
      isReportFinal: true,
    },
    cost: { rpm: 1, tpm: MAX_AMOUNT },
    usage: { output: Number.MAX_SAFE_INTEGER },
    source: "reported",
  },
];

it.each(TABLE)("$what", ({ call, of, cost, usage, source }) => {
  expect(computeSettlement(call, { ...RESERVED, ...of })).toEqual({
    cost,
    usage: { ...NO_TOKENS, ...usage },
    source,
  });
});

const tokens = fc.oneof(fc.nat(2000), fc.maxSafeNat());
const usages = fc.record({
  input: tokens,
  cachedInput: tokens,
  cacheWriteInput: tokens,
  output: tokens,
  reasoning: tokens,
});
const weights = fc.oneof(
  fc.constantFrom(0, 1, 0.07, 0.1, 1.25, 5, 1_000_000),
  fc.nat(3_000_000).map((parts) => parts / 1_000_000),
);
const meterings: fc.Arbitrary<Metering> = fc.dictionary(
  fc.constantFrom("rpm", "tpm", "itpm", "otpm", "credits", "constructor"),
  fc.record(
    {
      requests: weights,
      input: weights,
      cachedInput: weights,
      cacheWriteInput: weights,
      output: weights,
      reasoning: weights,
    },
    { requiredKeys: [] },
  ),
  { minKeys: 1, noNullPrototype: true },
);
const ends = fc.constantFrom<CallEnd["end"][]>("complete", "abandoned", "cut", "stopped", "failed");

const cases = fc
  .record({
    metering: meterings,
    estimate: fc.record({ input: fc.nat(100_000), output: fc.nat(100_000) }),
    abandoned: fc.constantFrom("counted" as const, "kept" as const),
    end: ends,
    reported: fc.option(fc.oneof(usages, fc.record({ input: tokens })), { nil: undefined }),
    isReportFinal: fc.boolean(),
    counted: fc.option(fc.nat(1_000_000), { nil: undefined }),
  })
  .map(({ metering, estimate, abandoned, ...call }) => ({
    call: { ...call, isReportFinal: call.isReportFinal && call.reported !== undefined },
    of: { metering, estimate, abandoned },
  }));

/** The totals of a call that was counted or reported. */
function listTotals(call: CallEnd, of: Reservation): Readonly<Record<string, number>> {
  const { cost } = computeSettlement(call, of);
  if (typeof cost === "string") throw new Error(`no totals: ${cost}`);
  return cost;
}

describe("of every end of every call", () => {
  it("no total is negative, fractional or too large, and no limit of the metering is forgotten", () => {
    fc.assert(
      fc.property(cases, ({ call, of }) => {
        const { cost, usage } = computeSettlement(call, of);
        for (const count of Object.values(usage))
          expect(Number.isSafeInteger(count) && count >= 0).toBe(true);
        if (typeof cost === "string") return;
        expect(Object.keys(cost).toSorted()).toEqual(Object.keys(of.metering).toSorted());
        for (const total of Object.values(cost))
          expect(Number.isInteger(total) && total >= 0 && total <= MAX_AMOUNT).toBe(true);
      }),
    );
  });

  it("what is kept costs no less than was reserved, unless the whole usage is known", () => {
    fc.assert(
      fc.property(cases, fc.constantFrom("abandoned", "cut"), ({ call, of }, end) => {
        fc.pre(call.counted !== undefined);
        const totals = listTotals(
          { ...call, end, isReportFinal: false },
          { ...of, abandoned: "kept" },
        );
        const reserved = computeCost(of.metering, { ...NO_TOKENS, ...of.estimate });
        for (const name in of.metering)
          expect(totals[name]).toBeGreaterThanOrEqual(Math.min(reserved[name]!, MAX_AMOUNT));
      }),
    );
  });

  it("more output never costs less", () => {
    fc.assert(
      fc.property(cases, fc.nat(1000), ({ call, of }, more) => {
        fc.pre(call.end !== "failed" && call.end !== "stopped" && call.counted !== undefined);
        const less = listTotals(call, of);
        const totals = listTotals({ ...call, counted: (call.counted ?? 0) + more }, of);
        for (const name in less) expect(totals[name]).toBeGreaterThanOrEqual(less[name]!);
      }),
    );
  });

  it("a whole report alone decides, and it never matters what was estimated", () => {
    fc.assert(
      fc.property(cases, usages, fc.nat(5000), ({ call, of }, reported, estimated) => {
        fc.pre(call.end !== "failed" && call.end !== "stopped");
        const whole = { ...call, reported, isReportFinal: true };
        const estimate = { input: estimated, output: estimated };
        expect(computeSettlement(whole, { ...of, estimate })).toEqual(computeSettlement(whole, of));
        expect(computeSettlement(whole, of).usage).toEqual(reported);
      }),
    );
  });
});
