/* What providers answer, in each protocol. */
import type { ServerResponse } from "node:http";

/** Builds an event of a stream. */
export const event = (data: object | string, name?: string): string =>
  `${name === undefined ? "" : `event: ${name}\n`}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`;

const TEXT_OF_EVENTS = ": a comment\r\n\r\n";
export const FINISHED = event({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
/** The last chunk of a stream of chat completions, if the request asks for it. */
export const USAGE_CHUNK = event({
  choices: [],
  usage: { prompt_tokens: 3, completion_tokens: 2 },
});

/** Answers of each protocol, in the pieces in which they are sent. */
export const STREAMS: Readonly<Record<string, readonly string[]>> = {
  "chat/completions": [
    TEXT_OF_EVENTS,
    event({ choices: [{ index: 0, delta: { content: "Grüße 🪣" } }] }),
    FINISHED,
    event("[DONE]"),
  ],
  completions: [
    event({ choices: [{ index: 0, text: "Hi", finish_reason: "stop" }] }),
    event("[DONE]"),
  ],
  responses: [
    event({ type: "response.output_text.delta", delta: "Hi" }, "response.output_text.delta"),
    event(
      {
        type: "response.completed",
        response: { usage: { input_tokens: 3, output_tokens: 2 } },
      },
      "response.completed",
    ),
  ],
  messages: [
    event(
      { type: "message_start", message: { usage: { input_tokens: 3, output_tokens: 1 } } },
      "message_start",
    ),
    event(
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hi" } },
      "content_block_delta",
    ),
    event(
      { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } },
      "message_delta",
    ),
    event({ type: "message_stop" }, "message_stop"),
  ],
};

/** Answers of each protocol in one piece. */
export const BODIES: Readonly<Record<string, object>> = {
  "chat/completions": {
    choices: [{ message: { content: "Hi" } }],
    usage: { prompt_tokens: 3, completion_tokens: 2 },
  },
  completions: { choices: [{ text: "Hi" }], usage: { prompt_tokens: 3, completion_tokens: 2 } },
  responses: { status: "completed", output: [], usage: { input_tokens: 3, output_tokens: 2 } },
  embeddings: { data: [{ embedding: [0.1] }], usage: { prompt_tokens: 3, total_tokens: 3 } },
  messages: {
    content: [{ type: "text", text: "Hi" }],
    stop_reason: "end_turn",
    usage: { input_tokens: 3, output_tokens: 2 },
  },
};

/** Sends an answer in one piece. */
export function answerJson(outgoing: ServerResponse, body: object, status = 200): void {
  outgoing.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

/** Arguments of `fetch` for a request to a model. */
export type Posted = [url: string, init: RequestInit & { readonly body: string }];

export function posted(origin: string, path: string, stream: boolean): Posted {
  const body = JSON.stringify({ model: "gpt-5", ...(stream && { stream }) });
  return [`${origin}/v1/${path}`, { method: "POST", body }];
}
