import type { AnswerReader } from "./answer-reader.ts";
import { BodyReader } from "./body-reader.ts";
import { CHAT_PROTOCOL, isUsageChunk } from "./chat-protocol.ts";
import { EMBEDDINGS_PROTOCOL } from "./embeddings-protocol.ts";
import { EventStreamReader } from "./event-stream-reader.ts";
import { MESSAGES_PROTOCOL } from "./messages-protocol.ts";
import { RESPONSES_PROTOCOL } from "./responses-protocol.ts";

const PROTOCOLS = {
  chat: CHAT_PROTOCOL,
  completions: CHAT_PROTOCOL,
  responses: RESPONSES_PROTOCOL,
  messages: MESSAGES_PROTOCOL,
  embeddings: EMBEDDINGS_PROTOCOL,
};

/** The protocol of a request to a model. */
export type ProtocolName = keyof typeof PROTOCOLS;

/** What is known about an answer before its first byte. */
export interface ExpectedAnswer {
  readonly protocol: ProtocolName;
  /** Whether the request asked for a stream. */
  readonly isStream: boolean;
  /** The `content-type` of the answer. */
  readonly contentType: string | null;
  /** Whether a usage that comes in a chunk of its own is left out; only in chat completions. */
  readonly withholdsUsage: boolean;
}

/** Chooses a reader by the content type of the answer, or else by what the request asked for. */
export function buildAnswerReader(expected: ExpectedAnswer): AnswerReader<Uint8Array> {
  const protocol = PROTOCOLS[expected.protocol];
  if (!isEventStream(expected)) return new BodyReader(protocol);
  const isWithheld = expected.withholdsUsage && expected.protocol === "chat";
  return new EventStreamReader(protocol, isWithheld ? isUsageChunk : undefined);
}

function isEventStream({ contentType, isStream }: ExpectedAnswer): boolean {
  if (/^\s*text\/event-stream\b/i.test(contentType ?? "")) return true;
  return isStream && !/^[^;]*\bjson\b/i.test(contentType ?? "");
}
