import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MAX_AMOUNT } from "../core/amounts.ts";
import { settlementOf, type CallEnd, type Reservation } from "./settlement.ts";
import { costOf, METERING, type Metering } from "./tokens/metering.ts";
import { NO_TOKENS, type TokenUsage } from "./tokens/token-usage.ts";

const ESTIMATE = { input: 100, output: 50 };
const TAKEN = { rpm: 1, tpm: 150, other: 0 };
const RESERVED: Reservation = {
  metering: METERING.openai,
  estimate: ESTIMATE,
  taken: TAKEN,
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

const ESTIMATED = { ...NO_TOKENS, ...ESTIMATE };

interface Row {
  readonly what: string;
  readonly call: CallEnd;
  readonly of?: Partial<Reservation>;
  readonly totals: Record<string, number> | undefined;
  readonly usage: Partial<TokenUsage>;
  readonly source: "reported" | "counted" | "estimated";
}

const TABLE: readonly Row[] = [
  {
    what: "answered with usage",
    call: { end: "complete", reported: REPORT, isReportFinal: true, counted: 7 },
    totals: { rpm: 1, tpm: 115 },
    usage: REPORT,
    source: "reported",
  },
  {
    what: "answered with usage, above what was reserved",
    call: { end: "complete", reported: { ...REPORT, output: 3000 }, isReportFinal: true },
    totals: { rpm: 1, tpm: 3085 },
    usage: { ...REPORT, output: 3000 },
    source: "reported",
  },
  {
    what: "answered without usage",
    call: { end: "complete", isReportFinal: false, counted: 7 },
    totals: { rpm: 1, tpm: 107 },
    usage: { input: 100, output: 7 },
    source: "counted",
  },
  {
    what: "answered without usage, although what is abandoned is kept",
    call: { end: "complete", counted: 7 },
    of: { abandoned: "kept" },
    totals: { rpm: 1, tpm: 107 },
    usage: { input: 100, output: 7 },
    source: "counted",
  },
  {
    what: "answered with something that cannot be counted",
    call: { end: "complete" },
    totals: { rpm: 1, tpm: 150 },
    usage: ESTIMATE,
    source: "estimated",
  },
  {
    what: "upstream 4xx, 5xx, connection refused",
    call: { end: "failed" },
    totals: undefined,
    usage: NO_TOKENS,
    source: "estimated",
  },
  {
    what: "failed, whatever was seen before",
    call: { end: "failed", reported: REPORT, isReportFinal: true, counted: 9 },
    totals: undefined,
    usage: NO_TOKENS,
    source: "estimated",
  },
  {
    what: "aborted before an answer",
    call: { end: "abandoned" },
    totals: { rpm: 1, tpm: 150 },
    usage: ESTIMATE,
    source: "estimated",
  },
  {
    what: "connection lost before an answer",
    call: { end: "cut" },
    totals: { rpm: 1, tpm: 150 },
    usage: ESTIMATE,
    source: "estimated",
  },
  {
    what: "stream abandoned before its first event",
    call: { end: "abandoned", counted: 0 },
    totals: { rpm: 1, tpm: 100 },
    usage: { input: 100 },
    source: "counted",
  },
  {
    what: "stream abandoned after Anthropic has reported its input",
    call: { end: "abandoned", reported: FIRST_REPORT, isReportFinal: false, counted: 7 },
    totals: { rpm: 1, tpm: 92 },
    usage: { ...FIRST_REPORT, output: 7 },
    source: "counted",
  },
  {
    what: "stream abandoned with more output reported than counted",
    call: { end: "abandoned", reported: { ...FIRST_REPORT, output: 9 }, counted: 7 },
    totals: { rpm: 1, tpm: 94 },
    usage: { ...FIRST_REPORT, output: 9 },
    source: "counted",
  },
  {
    what: "stream abandoned after its whole usage was reported",
    call: { end: "abandoned", reported: REPORT, isReportFinal: true, counted: 7 },
    of: { abandoned: "kept" },
    totals: { rpm: 1, tpm: 115 },
    usage: REPORT,
    source: "reported",
  },
  {
    what: "stream cut",
    call: { end: "cut", counted: 7 },
    totals: { rpm: 1, tpm: 107 },
    usage: { input: 100, output: 7 },
    source: "counted",
  },
  {
    what: "stream abandoned and kept, shorter than reserved",
    call: { end: "abandoned", counted: 7 },
    of: { abandoned: "kept" },
    totals: { rpm: 1, tpm: 150 },
    usage: { input: 100, output: 7 },
    source: "counted",
  },
  {
    what: "stream cut and kept, longer than reserved",
    call: { end: "cut", counted: 70 },
    of: { abandoned: "kept" },
    totals: { rpm: 1, tpm: 170 },
    usage: { input: 100, output: 70 },
    source: "counted",
  },
  {
    what: "stream stopped",
    call: { end: "stopped", counted: 900 },
    of: { taken: { rpm: 1, tpm: 662, other: 0 } },
    totals: { rpm: 1, tpm: 662 },
    usage: { input: 100, output: 900 },
    source: "counted",
  },
  {
    what: "stream stopped although its whole usage was reported",
    call: { end: "stopped", reported: REPORT, isReportFinal: true, counted: 900 },
    of: { taken: { rpm: 1, tpm: 662 } },
    totals: { rpm: 1, tpm: 662 },
    usage: { ...REPORT, output: 900 },
    source: "counted",
  },
  {
    what: "Anthropic, where reads from a cache are free",
    call: { end: "complete", reported: REPORT, isReportFinal: true },
    of: { metering: METERING.anthropic, taken: { rpm: 1, itpm: 100, otpm: 50 } },
    totals: { rpm: 1, itpm: 65, otpm: 30 },
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
    totals: { rpm: 1, tpm: MAX_AMOUNT },
    usage: { output: Number.MAX_SAFE_INTEGER },
    source: "reported",
  },
];

it.each(TABLE)("$what", ({ call, of, totals, usage, source }) => {
  expect(settlementOf(call, { ...RESERVED, ...of })).toEqual({
    totals,
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
    moreTaken: fc.nat(1000),
    abandoned: fc.constantFrom("counted" as const, "kept" as const),
    end: ends,
    reported: fc.option(fc.oneof(usages, fc.record({ input: tokens })), { nil: undefined }),
    isReportFinal: fc.boolean(),
    counted: fc.option(fc.nat(1_000_000), { nil: undefined }),
  })
  .map(({ metering, estimate, abandoned, moreTaken, ...call }) => {
    const cost = costOf(metering, { ...NO_TOKENS, ...estimate });
    const taken = Object.fromEntries(
      Object.entries(cost).map(([name, amount]) => [name, amount + moreTaken]),
    );
    const isReportFinal = call.isReportFinal && call.reported !== undefined;
    return {
      call: { ...call, isReportFinal },
      of: { metering, estimate, abandoned, taken: { ...taken, unmetered: 0 } },
    };
  });

describe("of every end of every call", () => {
  it("no total is negative, fractional or too large, and no limit of the metering is forgotten", () => {
    fc.assert(
      fc.property(cases, ({ call, of }) => {
        const { totals, usage } = settlementOf(call, of);
        for (const count of Object.values(usage))
          expect(Number.isSafeInteger(count) && count >= 0).toBe(true);
        if (totals === undefined) return;
        expect(Object.keys(totals).toSorted()).toEqual(Object.keys(of.metering).toSorted());
        for (const total of Object.values(totals))
          expect(Number.isInteger(total) && total >= 0 && total <= MAX_AMOUNT).toBe(true);
      }),
    );
  });

  it("everything goes back if and only if the call failed", () => {
    fc.assert(
      fc.property(cases, ({ call, of }) => {
        expect(settlementOf(call, of).totals === undefined).toBe(call.end === "failed");
      }),
    );
  });

  it("what was stopped costs what was taken", () => {
    fc.assert(
      fc.property(cases, ({ call, of }) => {
        const { unmetered: _, ...taken } = of.taken;
        expect(settlementOf({ ...call, end: "stopped" }, of).totals).toEqual(taken);
      }),
    );
  });

  it("what is kept costs no less than was taken, unless the whole usage is known", () => {
    fc.assert(
      fc.property(cases, fc.constantFrom("abandoned", "cut"), ({ call, of }, end) => {
        const ended = { ...call, end, isReportFinal: false };
        const { totals } = settlementOf(ended, { ...of, abandoned: "kept" });
        for (const name in of.metering)
          expect(totals![name]).toBeGreaterThanOrEqual(Math.min(of.taken[name]!, MAX_AMOUNT));
      }),
    );
  });

  it("more output never costs less", () => {
    fc.assert(
      fc.property(cases, fc.nat(1000), ({ call, of }, more) => {
        fc.pre(call.end !== "failed" && call.counted !== undefined);
        const less = settlementOf(call, of).totals!;
        const { totals } = settlementOf({ ...call, counted: call.counted! + more }, of);
        for (const name in less) expect(totals![name]).toBeGreaterThanOrEqual(less[name]!);
      }),
    );
  });

  it("a whole report alone decides, and it never matters what was estimated", () => {
    fc.assert(
      fc.property(cases, usages, fc.nat(5000), ({ call, of }, reported, estimated) => {
        fc.pre(call.end !== "failed" && call.end !== "stopped");
        const whole = { ...call, reported, isReportFinal: true };
        const estimate = { input: estimated, output: estimated };
        expect(settlementOf(whole, { ...of, estimate })).toEqual(settlementOf(whole, of));
        expect(settlementOf(whole, of).usage).toEqual(reported);
      }),
    );
  });

  it("a call that nothing is known of costs what was taken for it", () => {
    fc.assert(
      fc.property(cases, ({ call, of }) => {
        fc.pre(call.end !== "failed");
        const { unmetered: _, ...taken } = of.taken;
        expect(settlementOf({ end: call.end }, of).totals).toEqual(taken);
      }),
    );
  });
});

it("an estimate is what was reserved", () => {
  expect(settlementOf({ end: "abandoned" }, RESERVED).usage).toEqual(ESTIMATED);
});
