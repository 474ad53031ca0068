import type { AnswerReader, AnswerSoFar } from "./answer-reader.ts";
import {
  NOTHING_REPORTED,
  propertyOf,
  readEmbeddingUsage,
  readUsage,
  type AiSdkReport,
} from "./ai-sdk-usage.ts";

/**
 * Reads the parts of a stream of the AI SDK. `finish` ends an answer, and has its usage. A stream
 * that the provider cut off, or failed in, may have that part too: it then knows no reason.
 */
export class AiSdkParts<Part> implements AnswerReader<Part> {
  outputBytes = 0;
  isComplete = false;
  #report: AiSdkReport = NOTHING_REPORTED;
  #hasFailed = false;
  /** Calls of tools whose input came in pieces. It comes again in one piece. */
  readonly #countedToolCalls = new Set<unknown>();

  get reported(): AnswerSoFar["reported"] {
    return this.#report.reported;
  }

  get isReportFinal(): boolean {
    return this.#report.isReportFinal;
  }

  get hasUnreadableUsage(): boolean {
    return this.#report.hasUnreadableUsage;
  }

  read(part: Part): Part {
    switch (propertyOf(part, "type")) {
      case "tool-input-delta":
        this.#countedToolCalls.add(propertyOf(part, "id"));
        this.outputBytes += bytesOf(propertyOf(part, "delta"));
        break;
      case "text-delta":
      case "reasoning-delta":
        this.outputBytes += bytesOf(propertyOf(part, "delta"));
        break;
      case "tool-call":
        if (!this.#countedToolCalls.has(propertyOf(part, "toolCallId")))
          this.outputBytes += bytesOf(propertyOf(part, "input"));
        break;
      case "error":
        this.#hasFailed = true;
        break;
      case "finish":
        this.#report = readUsage(propertyOf(part, "usage"), propertyOf(part, "providerMetadata"));
        this.isComplete = !this.#hasFailed && hasReason(propertyOf(part, "finishReason"));
        break;
    }
    return part;
  }

  end(): undefined {}
}

/** Reads what a language model answered in one piece. */
export function readAnswer(answer: unknown): AnswerSoFar {
  const content = propertyOf(answer, "content");
  let outputBytes = 0;
  if (Array.isArray(content)) for (const part of content) outputBytes += bytesOfContent(part);
  const report = readUsage(propertyOf(answer, "usage"), propertyOf(answer, "providerMetadata"));
  return { ...report, outputBytes, isComplete: true };
}

/** Reads what an embedding model answered. */
export function readEmbeddings(answer: unknown): AnswerSoFar {
  return { ...readEmbeddingUsage(propertyOf(answer, "usage")), outputBytes: 0, isComplete: true };
}

function bytesOfContent(part: unknown): number {
  switch (propertyOf(part, "type")) {
    case "text":
    case "reasoning":
      return bytesOf(propertyOf(part, "text"));
    case "tool-call":
      return bytesOf(propertyOf(part, "input"));
    default:
      return 0;
  }
}

/** Whether the provider said why it stopped: "unknown" (ai 5), or "other" without its own word. */
function hasReason(reason: unknown): boolean {
  const unified = propertyOf(reason, "unified") ?? reason;
  if (unified === "unknown" || unified === "error") return false;
  return (
    unified !== "other" || typeof reason === "string" || propertyOf(reason, "raw") !== undefined
  );
}

function bytesOf(text: unknown): number {
  return typeof text === "string" ? Buffer.byteLength(text) : 0;
}
