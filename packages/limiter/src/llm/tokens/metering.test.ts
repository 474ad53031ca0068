import * as fc from "fast-check";
import { expect, it } from "vitest";
import { checkMetering, computeCost, METERING } from "./metering.ts";
import { NO_TOKENS } from "./token-usage.ts";

const USAGE = { input: 100, cachedInput: 30, cacheWriteInput: 7, output: 50, reasoning: 20 };

it("OpenAI counts tokens of every kind once; reasoning is part of the output", () => {
  expect(computeCost(METERING.openai, USAGE)).toEqual({ rpm: 1, tpm: 187 });
});

it("Anthropic counts input without what was read from a cache, and output", () => {
  expect(computeCost(METERING.anthropic, USAGE)).toEqual({ rpm: 1, itpm: 107, otpm: 50 });
});

it("weights may be fractions, and costs are rounded up once, at the end", () => {
  const metering = { credits: { input: 0.07, output: 0.33, reasoning: 0.5 } };
  expect(computeCost(metering, { ...NO_TOKENS, input: 100 })).toEqual({ credits: 7 });
  expect(computeCost(metering, { ...NO_TOKENS, input: 1 })).toEqual({ credits: 1 });
  expect(computeCost(metering, { ...NO_TOKENS, input: 50, output: 50, reasoning: 1 })).toEqual({
    credits: 21, // 3.5 + 16.5 + 0.5 = 20.5
  });
});

it("a cost is the sum of weights and tokens, in exact arithmetic, rounded up", () => {
  const parts = fc.nat(10_000_000);
  fc.assert(
    fc.property(parts, parts, fc.nat(100_000), fc.nat(100_000), (each, more, input, output) => {
      const metering = { credits: { input: each / 1e6, output: more / 1e6 } };
      const exact = BigInt(each) * BigInt(input) + BigInt(more) * BigInt(output);
      expect(computeCost(metering, { ...NO_TOKENS, input, output })).toEqual({
        credits: Number((exact + 999_999n) / 1_000_000n),
      });
    }),
  );
});

const MUST_SAY =
  "Invalid metering: must say what each limit counts, such as METERING.openai or { tpm: { input: 1, output: 1 } }";
const MUST_BE = "Invalid metering.tpm.input: must be from 0 to 1000000, with at most six decimals";
const mistakes: readonly (readonly [string, unknown, string])[] = [
  ["nothing", undefined, MUST_SAY],
  ["a word", "openai", `${MUST_SAY} (got 'openai')`],
  ["no limit", {}, `${MUST_SAY} (got {})`],
  ["all meterings at once", METERING, MUST_SAY],
  ["a list", ["rpm"], `${MUST_SAY} (got ["rpm"])`],
  [
    "a number instead of weights",
    { tpm: 1 },
    "Invalid metering.tpm: must be weights, such as { input: 1, output: 1 } (got 1)",
  ],
  [
    "a name that no limit can have",
    { "a b": { input: 1 } },
    "Invalid metering.a b: must begin with a letter and hold only letters, digits and _ . -",
  ],
  [
    "an unknown kind",
    { tpm: { inputs: 1 } },
    "Invalid inputs: is not an option of metering.tpm; did you mean input?",
  ],
  ["a negative weight", { tpm: { input: -1 } }, `${MUST_BE} (got -1)`],
  ["a text as a weight", { tpm: { input: "1" } }, `${MUST_BE} (got '1')`],
  ["NaN", { tpm: { input: NaN } }, `${MUST_BE} (got NaN)`],
  ["infinity", { tpm: { input: Infinity } }, `${MUST_BE} (got Infinity)`],
  ["seven decimals", { tpm: { input: 0.1234567 } }, `${MUST_BE} (got 0.1234567)`],
];
it.each(mistakes)("refuses %s", (_, metering, message) => {
  expect(() => checkMetering(metering)).toThrow(expect.objectContaining({ message }));
});

it("takes weights of six decimals, zeros, and kinds that are undefined", () => {
  checkMetering({
    tpm: { input: 0.000001, output: 999_999.999999, reasoning: undefined, requests: 0 },
  });
  checkMetering(METERING.openai);
  checkMetering(METERING.anthropic);
});
