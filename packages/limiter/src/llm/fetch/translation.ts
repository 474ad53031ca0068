import { warnOnce } from "../../http/identity/warn-once.ts";
import type { AnswerReader } from "../answers/answer-reader.ts";
import type { LlmCall } from "../tokens/llm-call.ts";
import type { Protocol } from "./llm-path.ts";
import type { SentRequest } from "./sent-request.ts";

/** What is known of a call by the request for it. */
export function callOf(sent: SentRequest): LlmCall {
  const { protocol, body, model } = sent;
  if (protocol !== undefined && body.json !== undefined)
    return {
      ...NO_TEXT,
      textBytes: Buffer.byteLength(body.text!),
      model,
      maxOutputTokens: undefined,
    }; // to be built
  if (protocol !== undefined && sent.hasBody)
    warnOnce(
      "WARN_LIMITER_BODY_UNREADABLE",
      `The body of a request to ${sent.url.pathname} is no text in JSON, so nothing but the request itself was reserved. ` +
        "Its tokens are only charged if the answer reports them. Pass the body as a string.",
    );
  return { ...NO_TEXT, model };
}

const NO_TEXT: Omit<LlmCall, "model"> = {
  textBytes: 0,
  texts: () => [],
  images: 0,
  choices: 1,
  maxOutputTokens: 0,
  stream: false,
};

/** What reads the answer; undefined for requests that no model answers. */
export function readerOf(
  protocol: Protocol | undefined,
  _response: Response,
  _withholdsUsage: boolean,
): AnswerReader<Uint8Array> | undefined {
  if (protocol === undefined) return undefined;
  return {
    outputBytes: 0,
    reported: undefined,
    isReportFinal: false,
    isComplete: false,
    hasUnreadableUsage: false,
    read: (chunk) => chunk,
    end: () => undefined,
  }; // to be built
}
