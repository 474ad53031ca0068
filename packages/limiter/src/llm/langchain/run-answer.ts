import type { AnswerReader, AnswerSoFar } from "../answers/answer-reader.ts";
import {
  countOf,
  NOTHING_REPORTED,
  propertyOf,
  reportOf,
  sum,
  type AiSdkReport,
} from "../answers/ai-sdk-usage.ts";

/** Reads the answer of a run: its pieces as they go by, and all of it at the end. */
export class RunAnswer implements AnswerReader<number> {
  /** Undefined before the first piece: the answer of a run that fails then is not known. */
  outputBytes: number | undefined;
  isComplete = false;
  #report: AiSdkReport = NOTHING_REPORTED;

  get reported(): AnswerSoFar["reported"] {
    return this.#report.reported;
  }

  get isReportFinal(): boolean {
    return this.#report.isReportFinal;
  }

  get hasUnreadableUsage(): boolean {
    return this.#report.hasUnreadableUsage;
  }

  /** Reads the bytes of a piece. */
  read(bytes: number): number {
    this.outputBytes = (this.outputBytes ?? 0) + bytes;
    return bytes;
  }

  end(): undefined {}

  /** Reads the whole answer. */
  complete(output: unknown): void {
    const generations = listOf(propertyOf(output, "generations")).flatMap(listOf);
    this.#report = usageOf(generations[0], propertyOf(output, "llmOutput"));
    const bytes = generations.reduce<number>((total, each) => total + bytesOfGeneration(each), 0);
    this.outputBytes = Math.max(this.outputBytes ?? 0, bytes);
    this.isComplete = true;
  }
}

/** The UTF-8 bytes of a piece of an answer: its text, and the input of tools. */
export function bytesOfPiece(token: unknown, fields: unknown): number {
  const message = propertyOf(propertyOf(fields, "chunk"), "message");
  const calls = listOf(propertyOf(message, "tool_call_chunks"));
  return calls.reduce<number>(
    (bytes, call) => bytes + bytesOf(propertyOf(call, "args")),
    bytesOf(token),
  );
}

/** Prefers what messages say: it tells the cached tokens apart. All tokens of a prompt are its input. */
function usageOf(generation: unknown, llmOutput: unknown): AiSdkReport {
  const usage = propertyOf(propertyOf(generation, "message"), "usage_metadata");
  if (usage !== undefined) {
    const inputDetails = propertyOf(usage, "input_token_details");
    const cachedInput = countOf(inputDetails, "cache_read");
    const cacheWriteInput = countOf(inputDetails, "cache_creation");
    const caches = sum(0, cachedInput, cacheWriteInput)!;
    return reportOf({
      input: sum(countOf(usage, "input_tokens"), -caches),
      cachedInput,
      cacheWriteInput,
      output: countOf(usage, "output_tokens"),
      reasoning: countOf(propertyOf(usage, "output_token_details"), "reasoning"),
    });
  }
  const tokenUsage = propertyOf(llmOutput, "tokenUsage");
  return reportOf({
    input: countOf(tokenUsage, "promptTokens"),
    cachedInput: undefined,
    cacheWriteInput: undefined,
    output: countOf(tokenUsage, "completionTokens"),
    reasoning: undefined,
  });
}

function bytesOfGeneration(generation: unknown): number {
  const calls = listOf(propertyOf(propertyOf(generation, "message"), "tool_calls"));
  return calls.reduce<number>(
    (bytes, call) => bytes + bytesOf(JSON.stringify(propertyOf(call, "args"))),
    bytesOf(propertyOf(generation, "text")),
  );
}

function bytesOf(text: unknown): number {
  return typeof text === "string" ? Buffer.byteLength(text) : 0;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
