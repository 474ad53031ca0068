import { warnOnce } from "../../http/identity/warn-once.ts";
import { answerReaderFor } from "../answers/answer-reader-for.ts";
import type { AnswerReader } from "../answers/answer-reader.ts";
import { llmCallOf } from "../estimating/llm-call-of.ts";
import type { LlmCall } from "../tokens/llm-call.ts";
import type { SentRequest } from "./sent-request.ts";

/** What is known of a call whose body cannot be read: it is one request. */
const NOTHING_KNOWN = { maxOutputTokens: 0, stream: false } as const;

/** What is known of a call by the request for it. */
export function callOf(sent: SentRequest): LlmCall {
  const { protocol, body, model } = sent;
  if (protocol === undefined) return llmCallOf(undefined, { ...NOTHING_KNOWN, model });
  if (body.json !== undefined)
    return llmCallOf(body.json, {
      model,
      maxOutputTokens: protocol === "embeddings" ? 0 : undefined,
    });
  if (sent.hasBody)
    warnOnce(
      "WARN_LIMITER_BODY_UNREADABLE",
      `The body of a request to ${sent.url.pathname} is no JSON object in a string or in bytes, so no tokens were reserved for it: ` +
        "only those that the answer reports or holds are charged.",
    );
  return llmCallOf(undefined, { ...NOTHING_KNOWN, model });
}

/** What reads the answer; undefined for requests that no model answers. */
export function readerOf(
  { protocol, body }: SentRequest,
  { headers }: Response,
  withholdsUsage: boolean,
): AnswerReader<Uint8Array> | undefined {
  if (protocol === undefined) return undefined;
  const isChat = protocol === "chat-completions" || protocol === "completions";
  return answerReaderFor({
    protocol: isChat ? "chat" : protocol,
    isStream: body.json?.["stream"] === true,
    contentType: headers.get("content-type"),
    withholdsUsage,
  });
}
