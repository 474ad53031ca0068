import { afterEach, describe, expect, it, vi } from "vitest";
import { ValidationError } from "../../core/errors.ts";
import { forgetWarnings } from "../../warnings/warn-once.ts";
import type { LlmCall } from "../tokens/llm-call.ts";
import { toLlmCall } from "./to-llm-call.ts";
import { simpleEstimator, type SimpleEstimatorOptions } from "./simple-estimator.ts";

const HELLO = toCall("Hello, world!!"); // 14 bytes

describe("the input", () => {
  it("is a quarter of the bytes, rounded up", () => {
    expect(simpleEstimator().estimate(HELLO)).toEqual({ input: 4, output: 1024 });
  });

  it("counts bytes of UTF-8, not characters", () => {
    expect(simpleEstimator().estimate(toCall("限流器")).input).toBe(3);
  });

  it("has other bytes in a token, and other tokens in an image, if asked for", () => {
    const call = { ...HELLO, images: 2 };
    expect(simpleEstimator().estimate(call).input).toBe(2004);
    const estimator = simpleEstimator({ bytesPerToken: 3.5, tokensPerImage: 85 });
    expect(estimator.estimate(call).input).toBe(4 + 170);
    expect(estimator.tokensOf?.(call, 36)).toBe(11);
  });

  it("does not look for the texts without a tokenizer", () => {
    const texts = vi.fn<LlmCall["texts"]>(() => []);
    expect(simpleEstimator().estimate({ ...HELLO, texts }).input).toBe(4);
    expect(texts).not.toHaveBeenCalled();
  });
});

describe("a tokenizer", () => {
  afterEach(() => {
    forgetWarnings();
    vi.restoreAllMocks();
  });

  it("counts each text instead of its bytes", () => {
    const counted: string[] = [];
    const estimator = simpleEstimator({
      count: (text, model) => counted.push(`${text} of ${model}`),
    });
    const call = toLlmCall({
      model: "gpt-5",
      messages: [
        { role: "user", content: "one" },
        { role: "user", content: "two" },
      ],
    });
    expect(estimator.estimate(call).input).toBe(3);
    expect(counted.toSorted()).toEqual(["one of gpt-5", "two of gpt-5"]);
  });

  it.each([
    ["throws", () => expect.fail("Disallowed special token found: <|endoftext|>")],
    ["returns NaN", () => Number.NaN],
    ["returns a negative number", () => -5],
    ["returns nothing", () => undefined as unknown as number],
    ["returns the tokens", () => [1, 2, 3] as unknown as number],
    ["returns a promise", () => Promise.resolve(3) as unknown as number],
    ["returns more than there can be", () => Infinity],
  ])("that %s falls back to the text's bytes, with one warning", (_what, count) => {
    const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    const estimator = simpleEstimator({ count });
    expect(estimator.estimate(HELLO).input).toBe(4);
    expect(estimator.estimate(HELLO).input).toBe(4);
    expect(warned).toHaveBeenCalledOnce();
    expect(warned).toHaveBeenCalledWith(
      expect.stringContaining("The tokenizer of simpleEstimator failed"),
      { code: "WARN_LIMITER_METERING_FAILED" },
    );
  });

  it("that fails for one text counts the others", () => {
    vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    const estimator = simpleEstimator({
      count: (text) => (text.includes("<|endoftext|>") ? Number.NaN : 100),
    });
    const call = toLlmCall({ input: ["fine", "<|endoftext|>"] });
    expect(estimator.estimate(call).input).toBe(100 + Math.ceil(13 / 4));
  });
});

describe("the output", () => {
  it.each<[SimpleEstimatorOptions["output"], number | undefined, number]>([
    [undefined, undefined, 1024],
    [undefined, 100, 100],
    [undefined, 100_000, 1024],
    [500, undefined, 500],
    [500, 100, 100],
    [0, 100, 0],
    ["max", undefined, 1024],
    ["max", 100, 100],
    ["max", 100_000, 100_000],
    [undefined, 0, 0],
    ["max", 0, 0],
  ])("of option %s with a maximum of %s is %s", (output, maxOutputTokens, tokens) => {
    const estimator = simpleEstimator(output === undefined ? {} : { output });
    expect(estimator.estimate({ ...HELLO, maxOutputTokens }).output).toBe(tokens);
    expect(estimator.estimate({ ...HELLO, maxOutputTokens, choices: 3 }).output).toBe(3 * tokens);
  });
});

it.each<[Record<string, unknown>, string]>([
  [{ bytesPerToken: 0 }, "bytesPerToken"],
  [{ bytesPerToken: "4" }, "bytesPerToken"],
  [{ bytesPerToken: Number.NaN }, "bytesPerToken"],
  [{ tokensPerImage: -1 }, "tokensPerImage"],
  [{ tokensPerImage: 1.5 }, "tokensPerImage"],
  [{ count: "gpt-tokenizer" }, "count"],
  [{ output: "maximum" }, "output"],
  [{ output: -1 }, "output"],
  [{ output: 1e12 }, "output"],
  [{ bytesPerTokens: 4 }, "did you mean bytesPerToken?"],
])("refuses %s when it is made", (options, message) => {
  expect(() => simpleEstimator(options)).toThrow(ValidationError);
  expect(() => simpleEstimator(options)).toThrow(message);
});

function toCall(text: string): LlmCall {
  return toLlmCall({ model: "gpt-5", messages: [{ role: "user", content: text }] });
}
