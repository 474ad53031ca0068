import { warnOnce } from "../../warnings/warn-once.ts";
import { buildAnswerReader } from "../answers/build-answer-reader.ts";
import type { AnswerReader } from "../answers/answer-reader.ts";
import { toLlmCall } from "../estimating/to-llm-call.ts";
import type { LlmCall } from "../tokens/llm-call.ts";
import type { SentRequest } from "./parse-sent-request.ts";

/** A call whose body cannot be read costs one request. */
const NOTHING_KNOWN = { maxOutputTokens: 0, stream: false } as const;

/** Describes a call by its request. */
export function toCall(sent: SentRequest): LlmCall {
  const { protocol, body, model } = sent;
  if (protocol === undefined) return toLlmCall(undefined, { ...NOTHING_KNOWN, model });
  if (body.json !== undefined)
    return toLlmCall(body.json, {
      model,
      maxOutputTokens: protocol === "embeddings" ? 0 : undefined,
    });
  if (sent.hasBody)
    warnOnce(
      "WARN_LIMITER_BODY_UNREADABLE",
      `The body of a request to ${sent.url.pathname} is not a JSON object in a string or in bytes, so no tokens were reserved for it: ` +
        "only those that the answer reports or holds are charged.",
    );
  return toLlmCall(undefined, { ...NOTHING_KNOWN, model });
}

/** Finds the reader of the answer; undefined for requests that no model answers. */
export function findReader(
  { protocol, body }: SentRequest,
  { headers }: Response,
  withholdsUsage: boolean,
): AnswerReader<Uint8Array> | undefined {
  if (protocol === undefined) return undefined;
  return buildAnswerReader({
    protocol,
    isStream: body.json?.["stream"] === true,
    contentType: headers.get("content-type"),
    withholdsUsage,
  });
}
