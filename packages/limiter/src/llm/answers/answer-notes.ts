import type { TokenUsage } from "../tokens/token-usage.ts";
import type { AnswerSoFar } from "./answer-reader.ts";

/** What is noted of an answer while it is read, whatever its protocol. */
export class AnswerNotes implements AnswerSoFar {
  #outputBytes = 0;
  #hasUnreadable = false;
  #reported: Partial<TokenUsage> | undefined;
  /** Whether the report is about all that was said so far. */
  #isReportCurrent = false;
  #hasUnreadableUsage = false;
  #hasFinished = false;
  #hasEnded = false;
  #hasFailed = false;

  get outputBytes(): number | undefined {
    // What could be read is counted, also if there was more.
    return this.#hasUnreadable && this.#outputBytes === 0 ? undefined : this.#outputBytes;
  }

  get reported(): Partial<TokenUsage> | undefined {
    return this.#reported;
  }

  get isReportFinal(): boolean {
    return this.#isReportCurrent && (this.#hasFinished || this.isComplete);
  }

  get isComplete(): boolean {
    return this.#hasEnded && !this.#hasFailed;
  }

  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  get hasUnreadableUsage(): boolean {
    return this.#hasUnreadableUsage;
  }

  /** Whether the model has said why it stopped. Nothing but reports is expected after that. */
  get hasFinished(): boolean {
    return this.#hasFinished;
  }

  /** The model said something: text, reasoning or the input of a tool. Others are ignored. */
  addText(text: unknown): void {
    if (typeof text !== "string" || text === "") return;
    this.#outputBytes += Buffer.byteLength(text);
    this.#isReportCurrent = false;
  }

  /** Something went by that cannot be read. If nothing else does, nothing can be counted. */
  cannotRead(): void {
    this.#hasUnreadable = true;
  }

  /** The provider reported the usage up to here; undefined if its numbers cannot be read. */
  reports(usage: TokenUsage | undefined): void {
    this.#reported = usage ?? this.#reported;
    this.#isReportCurrent = usage !== undefined;
    this.#hasUnreadableUsage = usage === undefined;
  }

  /** The provider reported what the prompt has used; undefined if its numbers cannot be read. */
  reportsInput(usage: Partial<TokenUsage> | undefined): void {
    this.#reported = usage;
    this.#hasUnreadableUsage = usage === undefined;
  }

  /** The model has said why it stopped. */
  finishes(): void {
    this.#hasFinished = true;
  }

  /** The protocol has said that the answer has ended. */
  ends(): void {
    this.#hasEnded = true;
  }

  /** The provider has told an error. The answer will not be complete, whatever follows. */
  fails(): void {
    this.#hasFailed = true;
  }
}
