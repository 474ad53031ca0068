/* Anthropic's messages. A stream reports the input at its start, and the output at its end. */
import {
  argumentPieces,
  errorType,
  type Answer,
  type Protocol,
  type StreamEvent,
} from "./protocol.ts";

export const MESSAGES: Protocol = {
  provider: "anthropic",
  whole: (answer) => ({
    ...buildMessage(answer),
    content: [{ ...block(answer), ...toContent(answer) }],
    stop_reason: stopReason(answer),
    ...toUsage(answer, answer.used),
  }),
  *events(answer) {
    const message = { ...buildMessage(answer), ...toUsage(answer, { ...answer.used, output: 1 }) };
    yield event("message_start", { message });
    yield event("content_block_start", { index: 0, content_block: block(answer) });
    for (const delta of listDeltas(answer))
      yield { ...event("content_block_delta", { index: 0, delta }), isPiece: true };
    yield event("content_block_stop", { index: 0 });
    const { output } = answer.used;
    yield event("message_delta", {
      delta: { stop_reason: stopReason(answer), stop_sequence: null },
      ...(answer.usage === null ? {} : { usage: answer.usage ?? { output_tokens: output } }),
    });
    yield event("message_stop", {});
  },
  error: anthropicError,
  errorEvent: (message) => ({ name: "error", data: anthropicError(529, message) }),
};

function event(name: string, fields: object): StreamEvent {
  return { name, data: { type: name, ...fields } };
}

function buildMessage({ request }: Answer): object {
  return {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: request.body.model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
  };
}

function block({ toolCall }: Answer): object {
  if (toolCall === undefined) return { type: "text", text: "" };
  return { type: "tool_use", id: toolCall.id, name: toolCall.name, input: {} };
}

function toContent({ text, toolCall }: Answer): object {
  return toolCall === undefined ? { text } : { input: toolCall.arguments };
}

function* listDeltas({ pieces, toolCall }: Answer): Generator<object> {
  if (toolCall === undefined) for (const text of pieces) yield { type: "text_delta", text };
  else
    for (const partial_json of argumentPieces(toolCall))
      yield { type: "input_json_delta", partial_json };
}

function stopReason({ toolCall, isCutShort }: Answer): string {
  if (toolCall !== undefined) return "tool_use";
  return isCutShort ? "max_tokens" : "end_turn";
}

function toUsage({ usage }: Answer, { input, output }: Answer["used"]): object {
  if (usage === null) return {};
  return { usage: usage ?? { input_tokens: input, output_tokens: output } };
}

function anthropicError(status: number, message: string): object {
  return { type: "error", error: { type: errorType(status), message }, request_id: "req_local" };
}
