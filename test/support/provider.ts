/*
 * A server on this machine that speaks the protocols of OpenAI (chat completions) and Anthropic
 * (messages), as far as their clients need it: answers in one piece and as a stream, with and
 * without usage. It counts a token for each word of an answer, and for every three bytes of a
 * question.
 *
 * A question says how it is to be answered: `slowly` streams a few words and then nothing until
 * the client hangs up, and `badly` is refused with status 400.
 */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export const ANSWER = "A bucket holds tokens, and refills over time.";
/** How many words of a slow answer are streamed. */
export const SLOW_WORDS = 3;

/** A running provider. */
export interface Provider {
  /** What points the real clients to it. */
  readonly environment: Readonly<Record<string, string>>;
  /** The bodies of all requests. */
  readonly requests: readonly ProviderRequest[];
  /** Resolves when the next client hangs up in the middle of an answer. */
  nextHangUp(): Promise<void>;
  stop(): Promise<void>;
}

export interface ProviderRequest {
  readonly path: string;
  readonly model: string;
  readonly messages: readonly { readonly content: unknown }[];
  readonly stream?: boolean;
  readonly stream_options?: { readonly include_usage?: boolean };
}

interface Usage {
  readonly input: number;
  readonly output: number;
}

/** The tokens of a question to this provider, without those of its answer. */
export function questionTokens(messages: ProviderRequest["messages"]): number {
  const bytes = messages.reduce((sum, { content }) => sum + Buffer.byteLength(String(content)), 0);
  return Math.ceil(bytes / 3);
}

/** The tokens of an answer: its words. */
export function answerTokens(answer: string): number {
  return answer.split(" ").length;
}

export async function startProvider(): Promise<Provider> {
  const requests: ProviderRequest[] = [];
  const waiting: (() => void)[] = [];
  const server = createServer((incoming, response) => {
    const pieces: Buffer[] = [];
    incoming.on("data", (piece: Buffer) => pieces.push(piece));
    incoming.on("end", () => {
      const body = JSON.parse(Buffer.concat(pieces).toString()) as ProviderRequest;
      const request = { ...body, path: incoming.url ?? "" };
      requests.push(request);
      respond(request, response);
    });
    response.on("close", () => {
      if (!response.writableFinished) for (const resolve of waiting.splice(0)) resolve();
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    environment: {
      OPENAI_BASE_URL: `${url}/v1`,
      OPENAI_API_KEY: "local",
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_API_KEY: "local",
    },
    requests,
    nextHangUp: () =>
      new Promise((resolve) => {
        waiting.push(resolve);
      }),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function respond(request: ProviderRequest, response: ServerResponse): void {
  const question = JSON.stringify(request.messages);
  if (question.includes("badly")) {
    sendJson(response, 400, { error: { type: "invalid_request_error", message: "Bad question." } });
    return;
  }
  const usage = { input: questionTokens(request.messages), output: answerTokens(ANSWER) };
  const protocol = request.path.endsWith("/messages") ? ANTHROPIC : OPENAI;
  if (request.stream !== true) {
    sendJson(response, 200, protocol.whole(request, usage));
    return;
  }
  const words = ANSWER.split(/(?<= )/);
  response.writeHead(200, { "content-type": "text/event-stream" });
  if (question.includes("slowly")) {
    response.write(protocol.begin(request, usage));
    for (const word of words.slice(0, SLOW_WORDS)) response.write(protocol.piece(request, word));
    return; // the rest never comes
  }
  response.write(protocol.begin(request, usage));
  for (const word of words) response.write(protocol.piece(request, word));
  response.end(protocol.end(request, usage));
}

/** One provider's messages: an answer in one piece, and the events of a stream. */
interface Protocol {
  whole(request: ProviderRequest, usage: Usage): object;
  begin(request: ProviderRequest, usage: Usage): string;
  piece(request: ProviderRequest, text: string): string;
  end(request: ProviderRequest, usage: Usage): string;
}

const OPENAI: Protocol = {
  whole: ({ model }, usage) => ({
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 0,
    model,
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: ANSWER, refusal: null },
        finish_reason: "stop",
        logprobs: null,
      },
    ],
    usage: openaiUsage(usage),
  }),
  begin: (request) => openaiChunk(request, { role: "assistant", content: "" }),
  piece: (request, content) => openaiChunk(request, { content }),
  end: (request, usage) => {
    const counted = request.stream_options?.include_usage === true;
    const last = counted ? openaiEvent(request, { choices: [], usage: openaiUsage(usage) }) : "";
    return `${openaiChunk(request, {}, "stop")}${last}data: [DONE]\n\n`;
  },
};

function openaiUsage({ input, output }: Usage): object {
  return { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
}

function openaiChunk(
  request: ProviderRequest,
  delta: object,
  finish_reason: string | null = null,
): string {
  return openaiEvent(request, { choices: [{ index: 0, delta, finish_reason, logprobs: null }] });
}

function openaiEvent({ model }: ProviderRequest, fields: object): string {
  const chunk = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 0, model, ...fields };
  return `data: ${JSON.stringify(chunk)}\n\n`;
}

const ANTHROPIC: Protocol = {
  whole: (request, usage) => anthropicMessage(request, usage, ANSWER),
  begin: (request, usage) =>
    anthropicEvent("message_start", {
      message: anthropicMessage(request, { ...usage, output: 1 }),
    }) +
    anthropicEvent("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
  piece: (_request, text) =>
    anthropicEvent("content_block_delta", { index: 0, delta: { type: "text_delta", text } }),
  end: (_request, { output }) =>
    anthropicEvent("content_block_stop", { index: 0 }) +
    anthropicEvent("message_delta", {
      delta: { stop_reason: "end_turn", stop_sequence: null },
      usage: { output_tokens: output },
    }) +
    anthropicEvent("message_stop", {}),
};

function anthropicMessage(
  { model }: ProviderRequest,
  { input, output }: Usage,
  text?: string,
): object {
  return {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model,
    content: text === undefined ? [] : [{ type: "text", text }],
    stop_reason: text === undefined ? null : "end_turn",
    stop_sequence: null,
    usage: { input_tokens: input, output_tokens: output },
  };
}

function anthropicEvent(type: string, fields: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
