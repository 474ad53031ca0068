import { AnswerNotes } from "../answers/answer-notes.ts";
import type { AnswerReader } from "../answers/answer-reader.ts";
import { listOf, objectOf, type Json } from "../answers/protocol.ts";
import { usageOfTotals } from "../answers/token-counts.ts";

/** What the model said in one piece of an answer: text, and input of tools. */
export type Piece = readonly unknown[];

/** Reads the answer of a run: its pieces as they go by, and all of it at the end. */
export class RunAnswer extends AnswerNotes implements AnswerReader<Piece> {
  #hasBegun = false;

  /** Undefined before the first piece: the answer of a run that fails then is not known. */
  override get outputBytes(): number | undefined {
    return this.#hasBegun ? super.outputBytes : undefined;
  }

  read(piece: Piece): Piece {
    this.#hasBegun = true;
    for (const text of piece) this.said(text);
    return piece;
  }

  end(): undefined {}

  /** Reads the whole answer. */
  complete(output: unknown): void {
    const { generations, llmOutput } = objectOf(output);
    const all = listOf(generations).flatMap(listOf).map(objectOf);
    if (!this.#hasBegun) for (const generation of all) this.#readWhole(generation);
    this.#readUsage(objectOf(all[0]?.["message"]), objectOf(llmOutput));
    this.ends();
  }

  #readWhole({ text, message }: Json): void {
    this.read([text]);
    try {
      for (const call of listOf(objectOf(message)["tool_calls"]))
        this.read([JSON.stringify(objectOf(call)["args"])]);
    } catch {
      this.cannotRead(); // a model of the application may answer with anything
    }
  }

  /** Prefers what the message says: it tells caches and reasoning apart. */
  #readUsage({ usage_metadata: ofMessage }: Json, { tokenUsage: ofOutput }: Json): void {
    const usage = objectOf(ofMessage);
    const { promptTokens, completionTokens } = objectOf(ofOutput);
    const inputDetails = objectOf(usage["input_token_details"]);
    const prompt = usage["input_tokens"] ?? promptTokens;
    const output = usage["output_tokens"] ?? completionTokens;
    if (prompt === undefined && output === undefined) return;
    // LangChain says 0 for a number that the provider left out, which would make such calls free.
    if (prompt === 0 || (output === 0 && this.outputBytes !== 0)) return this.reports(undefined);
    this.reports(
      usageOfTotals({
        prompt,
        cached: inputDetails["cache_read"],
        cacheWrite: inputDetails["cache_creation"],
        output,
        reasoning: objectOf(usage["output_token_details"])["reasoning"],
        total: usage["total_tokens"],
      }),
    );
  }
}

/** A piece of an answer that streams, as LangChain tells it. */
export function streamedPiece(token: unknown, fields: unknown): Piece {
  const { message } = objectOf(objectOf(fields)["chunk"]);
  const calls = listOf(objectOf(message)["tool_call_chunks"]);
  return [token, ...calls.map((call) => objectOf(call)["args"])];
}
