/* OpenAI's responses. Usage is in the response that the last event carries. */
import { openaiError } from "./openai-error.ts";
import { argumentPieces, type Answer, type Protocol, type StreamEvent } from "./protocol.ts";

export const RESPONSES: Protocol = {
  provider: "openai",
  whole: (answer) => buildResponse(answer, toStatus(answer)),
  *events(answer) {
    let sequence_number = 0;
    for (const { name, data, isPiece = false } of listEvents(answer)) {
      yield { name: name!, data: { type: name, sequence_number, ...(data as object) }, isPiece };
      sequence_number += 1;
    }
  },
  error: openaiError,
  errorEvent: (message) => ({
    name: "error",
    data: { type: "error", code: "server_error", message, param: null, sequence_number: 0 },
  }),
};

const TEXT_ID = "msg_1";
const CALL_ID = "fc_1";

function* listEvents(answer: Answer): Generator<StreamEvent> {
  const begun = { response: buildResponse(answer, "in_progress") };
  yield { name: "response.created", data: begun };
  yield { name: "response.in_progress", data: begun };
  yield* answer.toolCall === undefined ? textEvents(answer) : callEvents(answer);
  const status = toStatus(answer);
  yield { name: `response.${status}`, data: { response: buildResponse(answer, status) } };
}

function* textEvents(answer: Answer): Generator<StreamEvent> {
  const { text, pieces } = answer;
  const at = { item_id: TEXT_ID, output_index: 0, content_index: 0 };
  yield {
    name: "response.output_item.added",
    data: { output_index: 0, item: { ...textItem(answer), status: "in_progress", content: [] } },
  };
  yield { name: "response.content_part.added", data: { ...at, part: textPart("") } };
  for (const delta of pieces)
    yield {
      name: "response.output_text.delta",
      data: { ...at, delta, logprobs: [] },
      isPiece: true,
    };
  yield { name: "response.output_text.done", data: { ...at, text, logprobs: [] } };
  yield { name: "response.content_part.done", data: { ...at, part: textPart(text) } };
  yield { name: "response.output_item.done", data: { output_index: 0, item: textItem(answer) } };
}

function* callEvents(answer: Answer): Generator<StreamEvent> {
  const item = callItem(answer);
  const at = { item_id: CALL_ID, output_index: 0 };
  yield {
    name: "response.output_item.added",
    data: { output_index: 0, item: { ...item, status: "in_progress", arguments: "" } },
  };
  for (const delta of argumentPieces(answer.toolCall!))
    yield {
      name: "response.function_call_arguments.delta",
      data: { ...at, delta },
      isPiece: true,
    };
  yield {
    name: "response.function_call_arguments.done",
    data: { ...at, name: item.name, arguments: item.arguments },
  };
  yield { name: "response.output_item.done", data: { output_index: 0, item } };
}

function toStatus({ isCutShort }: Answer): "completed" | "incomplete" {
  return isCutShort ? "incomplete" : "completed";
}

function buildResponse(answer: Answer, status: string): object {
  const { request, toolCall, usage, used } = answer;
  const isOver = status !== "in_progress";
  const output = toolCall === undefined ? textItem(answer) : callItem(answer);
  return {
    id: "resp_1",
    object: "response",
    created_at: 0,
    status,
    error: null,
    incomplete_details: status === "incomplete" ? { reason: "max_output_tokens" } : null,
    instructions: null,
    metadata: {},
    model: request.body.model,
    output: isOver ? [output] : [],
    parallel_tool_calls: true,
    temperature: 1,
    tool_choice: "auto",
    tools: [],
    top_p: 1,
    ...(isOver && usage === null ? {} : { usage: isOver ? (usage ?? toUsage(used)) : null }),
  };
}

function textItem({ text }: Answer): object {
  return {
    id: TEXT_ID,
    type: "message",
    status: "completed",
    role: "assistant",
    content: [textPart(text)],
  };
}

function textPart(text: string): object {
  return { type: "output_text", text, annotations: [], logprobs: [] };
}

function callItem({ toolCall }: Answer): { readonly name: string; readonly arguments: string } {
  const { id, name } = toolCall!;
  const call = { id: CALL_ID, type: "function_call", status: "completed", call_id: id };
  return { ...call, name, arguments: JSON.stringify(toolCall!.arguments) };
}

function toUsage({ input, output }: Answer["used"]): object {
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: input + output,
  };
}
