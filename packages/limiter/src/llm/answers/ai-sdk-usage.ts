import { isRecord } from "../../core/amounts.ts";
import type { TokenUsage } from "../tokens/token-usage.ts";
import type { AnswerSoFar } from "./answer-reader.ts";

/** What a model of the AI SDK reported. */
export type AiSdkReport = Pick<AnswerSoFar, "reported" | "isReportFinal" | "hasUnreadableUsage">;

type Properties = Readonly<Record<string, unknown>>;

/** A number of tokens; `undefined` is not reported, and `NaN` cannot be read. */
type Count = number | undefined;

/** Tokens of a prompt, or of an answer, before they are told apart. */
interface Counts {
  readonly input: Count;
  readonly cachedInput: Count;
  readonly cacheWriteInput: Count;
  readonly output: Count;
  readonly reasoning: Count;
}

export const NOTHING_REPORTED: AiSdkReport = {
  reported: undefined,
  isReportFinal: false,
  hasUnreadableUsage: false,
};

/**
 * Reads the usage of a language model. The second version of the specification has flat numbers,
 * the third and fourth have nested ones. Numbers that are undefined were not reported.
 */
export function readUsage(usage: unknown, metadata: unknown): AiSdkReport {
  if (!isRecord(usage)) return NOTHING_REPORTED;
  const isNested = isRecord(usage["inputTokens"]) || isRecord(usage["outputTokens"]);
  return reportOf(isNested ? nestedCounts(usage) : flatCounts(usage, metadata));
}

/** Reads the usage of an embedding model, whose answers have no tokens. */
export function readEmbeddingUsage(usage: unknown): AiSdkReport {
  const input = countOf(usage, "tokens");
  const none = { cachedInput: 0, cacheWriteInput: 0, output: 0, reasoning: 0 };
  return input === undefined ? NOTHING_REPORTED : reportOf({ ...none, input });
}

function nestedCounts({ inputTokens, outputTokens }: Properties): Counts {
  const cachedInput = countOf(inputTokens, "cacheRead");
  const cacheWriteInput = countOf(inputTokens, "cacheWrite");
  const text = countOf(outputTokens, "text");
  const reasoning = countOf(outputTokens, "reasoning");
  const total = countOf(inputTokens, "total");
  return {
    input:
      countOf(inputTokens, "noCache") ?? sum(total, -(cachedInput ?? 0), -(cacheWriteInput ?? 0)),
    cachedInput,
    cacheWriteInput,
    output: countOf(outputTokens, "total") ?? sum(text, reasoning),
    reasoning,
  };
}

/**
 * Providers differ. `inputTokens` has the cached tokens in it, except those of Anthropic and
 * Bedrock, whose metadata also say what was written to a cache. `outputTokens` has those of
 * reasoning in it, except where only all three make the total (Google, xAI).
 */
function flatCounts(usage: Properties, metadata: unknown): Counts {
  const { anthropic, bedrock, openai } = isRecord(metadata) ? metadata : {};
  const inputTokens = countOf(usage, "inputTokens");
  const outputTokens = countOf(usage, "outputTokens");
  const reasoning = countOf(usage, "reasoningTokens");
  const cachedInput = countOf(usage, "cachedInputTokens");
  const cacheWriteInput =
    countOf(anthropic, "cacheCreationInputTokens") ??
    countOf(propertyOf(bedrock, "usage"), "cacheWriteInputTokens") ??
    countOf(propertyOf(openai, "usage"), "cacheWriteTokens");
  const areCachesApart = anthropic !== undefined || bedrock !== undefined;
  const total = countOf(usage, "totalTokens");
  const isReasoningApart =
    total !== undefined && total === sum(inputTokens, outputTokens, reasoning);
  return {
    input: areCachesApart
      ? inputTokens
      : sum(inputTokens, -(cachedInput ?? 0), -(cacheWriteInput ?? 0)),
    cachedInput,
    cacheWriteInput,
    output: isReasoningApart ? sum(outputTokens, reasoning) : outputTokens,
    reasoning,
  };
}

/** The report is of the whole answer if it has both input and output. */
export function reportOf(counts: Counts): AiSdkReport {
  const reported: Partial<Record<keyof TokenUsage, number>> = {};
  for (const [kind, count] of Object.entries(counts) as [keyof TokenUsage, Count][]) {
    if (count === undefined) continue;
    if (!Number.isSafeInteger(count) || count < 0)
      return { ...NOTHING_REPORTED, hasUnreadableUsage: true };
    reported[kind] = count;
  }
  const isReportFinal = reported.input !== undefined && reported.output !== undefined;
  const isEmpty = reported.input === undefined && reported.output === undefined;
  return { reported: isEmpty ? undefined : reported, isReportFinal, hasUnreadableUsage: false };
}

/** A number of an object that may be anything. */
export function countOf(value: unknown, name: string): Count {
  const count = propertyOf(value, name) ?? undefined;
  return count === undefined || typeof count === "number" ? count : Number.NaN;
}

/** The first number and more; undefined if the first is not known. */
export function sum(first: Count, ...more: readonly Count[]): Count {
  if (first === undefined) return undefined;
  return more.reduce<number>((total, count) => total + (count ?? 0), first);
}

/** A property of what may be anything. */
export function propertyOf(value: unknown, name: string): unknown {
  return isRecord(value) ? value[name] : undefined;
}
