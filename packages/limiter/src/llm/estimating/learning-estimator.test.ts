import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ValidationError } from "../../core/errors.ts";
import type { Estimator, LlmCall } from "../tokens/llm-call.ts";
import { NO_TOKENS, type TokenUsage } from "../tokens/token-usage.ts";
import { learningEstimator } from "./learning-estimator.ts";
import { simpleEstimator } from "./simple-estimator.ts";

const CALL: LlmCall = {
  model: "gpt-5",
  textBytes: 400,
  texts: () => [],
  images: 0,
  choices: 1,
  maxOutputTokens: undefined,
  stream: false,
};

describe("before anything was learned", () => {
  it("estimates like the start estimator", () => {
    expect(learningEstimator().estimate(CALL)).toEqual(simpleEstimator().estimate(CALL));
    const start = simpleEstimator({ output: 77 });
    expect(learningEstimator({ start }).estimate(CALL)).toEqual({ input: 100, output: 77 });
    expect(learningEstimator({ start }).tokensOf?.(CALL, 9)).toBe(3);
  });

  it("counts a quarter of the bytes if the start estimator does not count", () => {
    const start: Estimator = { estimate: () => ({ input: 1, output: 1 }) };
    expect(learningEstimator({ start }).tokensOf?.(CALL, 9)).toBe(3);
  });
});

describe("the input", () => {
  it("is exact after one report, for prompts that are alike", () => {
    const estimator = trainEstimator([{ input: 79, output: 5 }]);
    expect(estimator.estimate(CALL).input).toBe(79);
    expect(estimator.estimate({ ...CALL, textBytes: 4000 }).input).toBe(790);
    expect(estimator.tokensOf?.(CALL, 4000)).toBe(790);
  });

  it("is the mean of the first 64 reports, and forgets slowly from then on", () => {
    const reports = Array.from({ length: 64 }, (_, index) => ({ input: 50 + index * 2 }));
    expect(trainEstimator(reports).estimate(CALL).input).toBe(113);
    const changed = [...reports, { input: 113 + 64 }];
    expect(trainEstimator(changed).estimate(CALL).input).toBe(114);
  });

  it("counts the whole prompt: also what was cached or is written to a cache", () => {
    const estimator = trainEstimator([{ input: 10, cachedInput: 100, cacheWriteInput: 40 }]);
    expect(estimator.estimate(CALL).input).toBe(150);
  });

  it.each([
    [1, 13],
    [100_000, 800],
  ])("a report of %s for an estimate of 100 counts as %s", (input, tokens) => {
    expect(trainEstimator([{ input }]).estimate(CALL).input).toBe(tokens);
  });

  it("does not ask the start estimator again in order to learn", () => {
    let asked = 0;
    const count = (): number => (asked += 1);
    const estimator = learningEstimator({ start: simpleEstimator({ count }) });
    const call = { ...CALL, texts: () => ["a"] };
    estimator.learn?.(call, estimator.estimate(call), toUsage({ input: 5 }));
    expect(asked).toBe(1);
  });

  it("of an empty prompt teaches nothing", () => {
    const estimator = trainEstimator([{ input: 500 }], { ...CALL, textBytes: 0 });
    expect(estimator.estimate(CALL).input).toBe(100);
  });

  it("counts by its length: a greeting does not decide how long a document is", () => {
    const estimator = trainEstimator([{ input: 8 }], { ...CALL, textBytes: 2 });
    const long = { ...CALL, textBytes: 40_000 };
    estimator.learn?.(long, estimator.estimate(long), toUsage({ input: 10_000 }));
    expect(estimator.estimate(long).input).toBe(10_007); // × 10 008 reported ÷ 10 001 estimated
  });

  it("of prompts below 50 tokens on average does not decide how long an answer is", () => {
    const short = { ...CALL, textBytes: 196 };
    expect(trainEstimator([{ input: 490 }], short).tokensOf?.(CALL, 400)).toBe(100);
    const enough = { ...CALL, textBytes: 200 };
    expect(trainEstimator([{ input: 400 }], enough).tokensOf?.(CALL, 400)).toBe(800);
  });

  it("of a prompt with files teaches nothing: a file is any number of tokens", () => {
    const estimator = trainEstimator([{ input: 50_000, output: 7 }], { ...CALL, images: 1 });
    expect(estimator.estimate(CALL)).toEqual({ input: 100, output: 7 });
    expect(estimator.tokensOf?.(CALL, 400)).toBe(100);
  });
});

describe("the output", () => {
  it("is the largest of the first answers, as many as the quantile needs", () => {
    const answers = [{ output: 20 }, { output: 300 }, { output: 5 }, { output: 100 }];
    expect(trainEstimator(answers).estimate(CALL).output).toBe(300);
  });

  it.each([1, 7, 100, 123_456])("of one answer of %s tokens is as much", (output) => {
    expect(trainEstimator([{ output }]).estimate(CALL).output).toBe(output);
  });

  it("then moves by steps: a fifth as far down as up, if four of five are to be covered", () => {
    const answers = Array.from({ length: 4 }, () => ({ output: 1000 }));
    const lower = 1001 * Math.exp(-0.02) - 1;
    expect(trainEstimator([...answers, { output: 10 }]).estimate(CALL).output).toBe(
      Math.ceil(lower),
    );
    const higher = 1001 * Math.exp(0.08) - 1;
    expect(trainEstimator([...answers, { output: 5000 }]).estimate(CALL).output).toBe(
      Math.ceil(higher),
    );
  });

  it("is never above the call's maximum, and is reserved for each choice", () => {
    const estimator = trainEstimator([{ output: 300 }]);
    expect(estimator.estimate({ ...CALL, maxOutputTokens: 100 }).output).toBe(100);
    expect(estimator.estimate({ ...CALL, choices: 3 }).output).toBe(900);
    expect(estimator.estimate({ ...CALL, choices: 3, maxOutputTokens: 100 }).output).toBe(300);
  });

  it("is learned by choice", () => {
    const estimator = trainEstimator([{ output: 300 }], { ...CALL, choices: 3 });
    expect(estimator.estimate(CALL).output).toBe(100);
  });

  it("learns nothing from embeddings", () => {
    const estimator = trainEstimator([{ output: 300 }]);
    const embedding = { ...CALL, maxOutputTokens: 0 };
    for (let calls = 0; calls < 100; calls += 1)
      estimator.learn?.(embedding, { input: 100, output: 0 }, toUsage({ output: 0 }));
    expect(estimator.estimate(CALL).output).toBe(300);
    expect(estimator.estimate(embedding).output).toBe(0);
    expect(trainEstimator([{ output: 0 }], embedding).estimate(CALL).output).toBe(1024);
  });

  it("is not lowered by answers that were cut off at their maximum", () => {
    const estimator = trainEstimator(Array.from({ length: 5 }, () => ({ output: 300 })));
    const { output } = estimator.estimate(CALL);
    const cut = { ...CALL, maxOutputTokens: 16 };
    const learn = (tokens: number): void =>
      estimator.learn?.(cut, { input: 100, output: 16 }, toUsage({ output: tokens }));
    for (let calls = 0; calls < 100; calls += 1) learn(16);
    expect(estimator.estimate(CALL).output).toBe(output);
    learn(15);
    expect(estimator.estimate(CALL).output).toBeLessThan(output);
  });

  it("is raised by cut answers that are longer than it", () => {
    const estimator = trainEstimator(Array.from({ length: 4 }, () => ({ output: 10 })));
    const cut = { ...CALL, maxOutputTokens: 50 };
    for (let calls = 0; calls < 100; calls += 1)
      estimator.learn?.(cut, { input: 100, output: 10 }, toUsage({ output: 50 }));
    expect(estimator.estimate(CALL).output).toBeGreaterThanOrEqual(50);
  });

  it("is 0 if all answers are empty, and not below", () => {
    const estimator = trainEstimator(Array.from({ length: 50 }, () => ({ output: 0 })));
    expect([0, 1]).toContain(estimator.estimate(CALL).output);
  });

  // The steps add up to how far the logarithm has moved: that is a law, whatever the answers are.
  it("covers the quantile, whatever the answers are", () => {
    const outputs = fc.array(fc.integer({ min: 0, max: 200_000 }), {
      minLength: 100,
      maxLength: 2000,
    });
    fc.assert(
      fc.property(outputs, fc.constantFrom(0.5, 0.8, 0.95), (answers, quantile) => {
        const estimator = learningEstimator({ quantile });
        let covered = 0;
        for (const output of answers) {
          if (output <= estimator.estimate(CALL).output) covered += 1;
          estimator.learn?.(CALL, { input: 100, output: 0 }, toUsage({ output }));
        }
        const first = Math.ceil(quantile / (1 - quantile)) + 1;
        const moved = Math.log(200_001) / 0.1;
        expect(Math.abs(covered - quantile * answers.length)).toBeLessThanOrEqual(moved + first);
      }),
      { numRuns: 50 },
    );
  });
});

it.each<Partial<TokenUsage>>([
  { input: 0, output: 0 },
  { input: 0, output: 500 },
  { input: -1 },
  { input: 1.5 },
  { output: -1 },
  { output: 0.5 },
  { output: Number.NaN },
  { output: Infinity },
  { output: 1e15 },
  { cachedInput: -5 },
  { output: "9" as unknown as number },
  { input: undefined as unknown as number },
])("learns nothing from the rubbish %o", (usage) => {
  const estimator = trainEstimator([{ input: 200, output: 300 }]);
  estimator.learn?.(CALL, estimator.estimate(CALL), { ...toUsage({}), ...usage });
  expect(estimator.estimate(CALL)).toEqual({ input: 200, output: 300 });
});

describe("models", () => {
  it("are learned apart", () => {
    const estimator = trainEstimator([{ input: 200, output: 300 }]);
    expect(estimator.estimate({ ...CALL, model: "gpt-5-mini" })).toEqual({
      input: 100,
      output: 1024,
    });
  });

  it("are remembered up to a number; the least recently used one goes", () => {
    const estimator = learningEstimator({ maxKeys: 2 });
    const learn = (model: string): void =>
      estimator.learn?.(nameIt(model), { input: 100, output: 0 }, toUsage({ output: 10 }));
    const isKnown = (model: string): boolean => estimator.estimate(nameIt(model)).output === 10;
    learn("a");
    learn("b");
    expect(isKnown("a")).toBe(true);
    learn("c");
    expect(["a", "b", "c"].map(isKnown)).toEqual([true, false, true]);
  });

  it("may have the names of what objects inherit", () => {
    const call = { ...CALL, model: "__proto__" };
    expect(trainEstimator([{ output: 5 }], call).estimate(call).output).toBe(5);
  });
});

it.each<[Record<string, unknown>, string]>([
  [{ quantile: 0 }, "quantile"],
  [{ quantile: 1 }, "quantile"],
  [{ quantile: 80 }, "such as 0.8"],
  [{ quantile: "0.8" }, "quantile"],
  [{ maxKeys: 0 }, "maxKeys"],
  [{ maxKeys: 1.5 }, "maxKeys"],
  [{ start: simpleEstimator }, "start"],
  [{ start: {} }, "such as simpleEstimator()"],
  [{ quantiles: 0.5 }, "did you mean quantile?"],
])("refuses %s when it is made", (options, message) => {
  expect(() => learningEstimator(options)).toThrow(ValidationError);
  expect(() => learningEstimator(options)).toThrow(message);
});

/** An estimator that has learned from these answers. */
function trainEstimator(answers: readonly Partial<TokenUsage>[], call = CALL): Estimator {
  const estimator = learningEstimator();
  for (const answer of answers)
    estimator.learn?.(call, { input: 100, output: 1024 }, toUsage(answer));
  return estimator;
}

function toUsage(usage: Partial<TokenUsage>): TokenUsage {
  return { ...NO_TOKENS, input: 100, ...usage };
}

function nameIt(model: string): LlmCall {
  return { ...CALL, model };
}
