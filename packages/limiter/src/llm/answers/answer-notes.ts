import type { TokenUsage } from "../tokens/token-usage.ts";
import type { AnswerSoFar } from "./answer-reader.ts";

/** Collects the facts about an answer while it is read, whatever its protocol. */
export class AnswerNotes implements AnswerSoFar {
  #outputBytes = 0;
  #hasUnreadable = false;
  #reported: Partial<TokenUsage> | undefined;
  /** Whether the report covers all output so far. */
  #isReportCurrent = false;
  #hasUnreadableUsage = false;
  #hasFinished = false;
  #hasEnded = false;
  #hasFailed = false;

  get outputBytes(): number | undefined {
    // The readable part is counted even if there was an unreadable one.
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

  /** Whether the model gave its reason for stopping. Only reports are expected after that. */
  get hasFinished(): boolean {
    return this.#hasFinished;
  }

  /** Counts output: text, reasoning or the input of a tool. Other values are ignored. */
  addText(text: unknown): void {
    if (typeof text !== "string" || text === "") return;
    this.#outputBytes += Buffer.byteLength(text);
    this.#isReportCurrent = false;
  }

  /** Notes an unreadable part. If all parts are unreadable, nothing can be counted. */
  cannotRead(): void {
    this.#hasUnreadable = true;
  }

  /** Notes a reported usage of all output so far; undefined if its numbers cannot be read. */
  reports(usage: TokenUsage | undefined): void {
    this.#reported = usage ?? this.#reported;
    this.#isReportCurrent = usage !== undefined;
    this.#hasUnreadableUsage = usage === undefined;
  }

  /** Notes a reported usage of the prompt alone; undefined if its numbers cannot be read. */
  reportsInput(usage: Partial<TokenUsage> | undefined): void {
    this.#reported = usage;
    this.#hasUnreadableUsage = usage === undefined;
  }

  /** Notes that the model gave its reason for stopping. */
  finishes(): void {
    this.#hasFinished = true;
  }

  /** Notes that the protocol has ended the answer. */
  ends(): void {
    this.#hasEnded = true;
  }

  /** Notes an error of the provider. The answer will not be complete, whatever follows. */
  fails(): void {
    this.#hasFailed = true;
  }
}
