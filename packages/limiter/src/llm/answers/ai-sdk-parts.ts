/*
 * Answers of the AI SDK's models. A stream of parts ends with `finish`, which has the usage. Models
 * send that part too when their provider has failed or was cut off: it then has no reason.
 */
import { AnswerNotes } from "./answer-notes.ts";
import type { AnswerReader, AnswerSoFar } from "./answer-reader.ts";
import { toList, toObject, type Json } from "./protocol.ts";
import {
  parsePartCount,
  parseTokenCount,
  buildUsage,
  type ReportedTotals,
} from "./token-counts.ts";

/** Reads the parts of a stream as they go by. */
export class AiSdkParts<Part> extends AnswerNotes implements AnswerReader<Part> {
  /** Tool calls whose input came in pieces. It comes a second time in one piece. */
  readonly #countedToolCalls = new Set<unknown>();

  read(part: Part): Part {
    const fields = toObject(part);
    switch (fields["type"]) {
      case "text-delta":
      case "reasoning-delta":
        this.addText(fields["delta"]);
        break;
      case "tool-input-delta":
        this.#countedToolCalls.add(fields["id"]);
        this.addText(fields["delta"]);
        break;
      case "tool-call":
        if (!this.#countedToolCalls.has(fields["toolCallId"])) this.addText(fields["input"]);
        break;
      case "error":
        this.fails();
        break;
      case "finish":
        readUsage(fields, this);
        this.finishes();
        if (hasReason(fields["finishReason"])) this.ends();
        break;
    }
    return part;
  }

  end(): undefined {}
}

/** Reads an answer of a language model that came in one piece. */
export function readAnswer(answer: unknown): AnswerSoFar {
  const notes = new AnswerNotes();
  const fields = toObject(answer);
  for (const part of toList(fields["content"])) {
    const { type, text, input } = toObject(part);
    if (type === "text" || type === "reasoning") notes.addText(text);
    if (type === "tool-call") notes.addText(input);
  }
  readUsage(fields, notes);
  notes.ends();
  return notes;
}

/** Reads an answer of an embedding model. */
export function readEmbeddings(answer: unknown): AnswerSoFar {
  const notes = new AnswerNotes();
  const { tokens } = toObject(toObject(answer)["usage"]);
  report({ prompt: tokens, output: 0 }, notes);
  notes.ends();
  return notes;
}

/** The second version of the specification has flat numbers, the others have nested ones. */
function readUsage({ usage, providerMetadata }: Json, notes: AnswerNotes): void {
  const fields = toObject(usage);
  const isFlat = typeof (fields["inputTokens"] ?? 0) !== "object";
  const totals = isFlat
    ? readFlatTotals(fields, toObject(providerMetadata))
    : readNestedTotals(fields);
  const hasSaid = notes.outputBytes !== 0;
  if (isMadeUp(totals.prompt, fields) || (hasSaid && isMadeUp(totals.output, fields)))
    notes.reports(undefined);
  else report(totals, notes);
}

/**
 * Since version 3, models report 0 for a number that their provider left out, which would make such
 * calls free. The provider's own numbers are in `raw`, which then has no 0.
 */
function isMadeUp(total: unknown, { raw }: Json): boolean {
  return total === 0 && !isMissing(raw) && !Object.values(toObject(raw)).includes(0);
}

/** Reports a usage, unless a number is missing. */
function report(totals: ReportedTotals, notes: AnswerNotes): void {
  if (isMissing(totals.prompt) || isMissing(totals.output)) return;
  notes.reports(buildUsage(totals));
}

function readNestedTotals({ inputTokens, outputTokens }: Json): ReportedTotals {
  const { total: prompt, noCache, cacheRead: cached, cacheWrite } = toObject(inputTokens);
  const { total: output, text, reasoning } = toObject(outputTokens);
  return {
    prompt: prompt ?? sum(noCache, cached, cacheWrite),
    cached,
    cacheWrite,
    output: output ?? sum(text, reasoning),
    reasoning,
  };
}

/**
 * `inputTokens` includes the tokens of caches, except for Anthropic and Bedrock. Tokens written to
 * a cache are only in the providers' own metadata.
 */
function readFlatTotals(usage: Json, { anthropic, bedrock, openai }: Json): ReportedTotals {
  const { inputTokens, cachedInputTokens: cached, outputTokens: output } = usage;
  const cacheWrite =
    toObject(anthropic)["cacheCreationInputTokens"] ??
    toObject(toObject(bedrock)["usage"])["cacheWriteInputTokens"] ??
    toObject(toObject(openai)["usage"])["cacheWriteTokens"];
  const areCachesApart = anthropic !== undefined || bedrock !== undefined;
  return {
    prompt: areCachesApart ? sum(inputTokens, cached, cacheWrite) : inputTokens,
    cached,
    cacheWrite,
    output,
    reasoning: usage["reasoningTokens"],
    total: usage["totalTokens"],
  };
}

/** Adds up a number and further parts; undefined if the first number is missing. */
function sum(first: unknown, ...parts: readonly unknown[]): number | undefined {
  if (isMissing(first)) return undefined;
  return parts.reduce<number>(
    (total, part) => total + parsePartCount(part),
    parseTokenCount(first),
  );
}

function isMissing(value: unknown): boolean {
  return value === undefined || value === null;
}

/** Reasons that models report when their provider gave none. */
const NO_REASONS: ReadonlySet<unknown> = new Set(["unknown", "error", "interrupted"]);

/** Whether the provider gave a reason for stopping. From version 3 on, `raw` is its own word. */
function hasReason(reason: unknown): boolean {
  const { unified = reason, raw } = toObject(reason);
  return !NO_REASONS.has(unified) && !(unified === "other" && unified !== reason && isMissing(raw));
}
