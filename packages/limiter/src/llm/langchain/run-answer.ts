import { AnswerNotes } from "../answers/answer-notes.ts";
import type { AnswerReader } from "../answers/answer-reader.ts";
import { toList, toObject, type Json } from "../answers/protocol.ts";
import { buildUsage } from "../answers/token-counts.ts";

/** The output in one piece of an answer: text, and input of tools. */
export type Piece = readonly unknown[];

/** Reads the answer of a run: its pieces as they pass, and the whole answer at the end. */
export class RunAnswer extends AnswerNotes implements AnswerReader<Piece> {
  #hasBegun = false;

  /** Undefined before the first piece: the answer of a run that fails then is not known. */
  override get outputBytes(): number | undefined {
    return this.#hasBegun ? super.outputBytes : undefined;
  }

  read(piece: Piece): Piece {
    this.#hasBegun = true;
    for (const text of piece) this.addText(text);
    return piece;
  }

  end(): undefined {}

  /** Reads the whole answer. */
  complete(output: unknown): void {
    const { generations, llmOutput } = toObject(output);
    const all = toList(generations).flatMap(toList).map(toObject);
    if (!this.#hasBegun) for (const generation of all) this.#readWhole(generation);
    this.#readUsage(toObject(all[0]?.["message"]), toObject(llmOutput));
    this.ends();
  }

  #readWhole({ text, message }: Json): void {
    this.read([text]);
    try {
      for (const call of toList(toObject(message)["tool_calls"]))
        this.read([JSON.stringify(toObject(call)["args"])]);
    } catch {
      this.cannotRead(); // a model of the application may answer with anything
    }
  }

  /** Prefers the usage of the message, which separates caches and reasoning. */
  #readUsage({ usage_metadata: ofMessage }: Json, { tokenUsage: ofOutput }: Json): void {
    const usage = toObject(ofMessage);
    const { promptTokens, completionTokens } = toObject(ofOutput);
    const inputDetails = toObject(usage["input_token_details"]);
    const prompt = usage["input_tokens"] ?? promptTokens;
    const output = usage["output_tokens"] ?? completionTokens;
    if (prompt === undefined && output === undefined) return;
    // LangChain reports 0 for a number that the provider left out, which would make calls free.
    if (prompt === 0 || (output === 0 && this.outputBytes !== 0)) return this.reports(undefined);
    this.reports(
      buildUsage({
        prompt,
        cached: inputDetails["cache_read"],
        cacheWrite: inputDetails["cache_creation"],
        output,
        reasoning: toObject(usage["output_token_details"])["reasoning"],
        total: usage["total_tokens"],
      }),
    );
  }
}

/** Converts a token of LangChain to a piece of an answer. */
export function toPiece(token: unknown, fields: unknown): Piece {
  const { message } = toObject(toObject(fields)["chunk"]);
  const calls = toList(toObject(message)["tool_call_chunks"]);
  return [token, ...calls.map((call) => toObject(call)["args"])];
}
