/* OpenAI's chat completions. Usage is in an additional last chunk, if the request asks for it. */
import { openaiError } from "./openai-error.ts";
import { argumentPieces, type Answer, type Protocol, type StreamEvent } from "./protocol.ts";

export const CHAT_COMPLETIONS: Protocol = {
  provider: "openai",
  whole: (answer) => ({
    ...frame(answer, "chat.completion"),
    choices: listChoices(answer).map((index) => ({
      index,
      message: { role: "assistant", refusal: null, ...buildMessage(answer) },
      finish_reason: finishReason(answer),
      logprobs: null,
    })),
    ...(answer.usage === null ? {} : { usage: toUsage(answer) }),
  }),
  *events(answer) {
    for (const index of listChoices(answer)) {
      yield chunk(answer, index, { role: "assistant", content: "" });
      for (const delta of listDeltas(answer))
        yield { ...chunk(answer, index, delta), isPiece: true };
      yield chunk(answer, index, {}, finishReason(answer));
    }
    if (isAsked(answer) && answer.usage !== null)
      yield { data: { ...chunkFrame(answer), choices: [], usage: toUsage(answer) } };
    yield { data: "[DONE]" };
  },
  error: openaiError,
  errorEvent: (message) => ({ data: openaiError(500, message) }),
};

function listChoices({ request }: Answer): readonly number[] {
  return [...Array(request.body.n ?? 1).keys()];
}

function buildMessage({ text, toolCall }: Answer): object {
  if (toolCall === undefined) return { content: text };
  const { id, name } = toolCall;
  const called = { name, arguments: JSON.stringify(toolCall.arguments) };
  return { content: null, tool_calls: [{ id, type: "function", function: called }] };
}

function* listDeltas({ pieces, toolCall }: Answer): Generator<object> {
  if (toolCall === undefined) {
    for (const content of pieces) yield { content };
    return;
  }
  const { id, name } = toolCall;
  const [first, second] = argumentPieces(toolCall);
  const called = { name, arguments: first };
  yield { tool_calls: [{ index: 0, id, type: "function", function: called }] };
  yield { tool_calls: [{ index: 0, function: { arguments: second } }] };
}

function finishReason({ toolCall, isCutShort }: Answer): string {
  if (toolCall !== undefined) return "tool_calls";
  return isCutShort ? "length" : "stop";
}

function chunk(
  answer: Answer,
  index: number,
  delta: object,
  finish_reason: string | null = null,
): StreamEvent {
  const choices = [{ index, delta, finish_reason, logprobs: null }];
  return { data: { ...chunkFrame(answer), choices, ...(isAsked(answer) && { usage: null }) } };
}

function isAsked({ request }: Answer): boolean {
  return request.body.stream_options?.include_usage === true;
}

function chunkFrame(answer: Answer): object {
  return frame(answer, "chat.completion.chunk");
}

function frame({ request }: Answer, object: string): object {
  return { id: "chatcmpl-1", object, created: 0, model: request.body.model };
}

function toUsage({ usage, used: { input, output } }: Answer): unknown {
  return usage ?? { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
}
