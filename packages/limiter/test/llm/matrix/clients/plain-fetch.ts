import { limitFetch } from "zae-limiter/openai";
import {
  conversation,
  MAX_TOKENS,
  PARAMETERS,
  QUESTION,
  tap,
  type Call,
  type Client,
} from "../client.ts";

const PATHS = {
  plain: "/v1/chat/completions",
  stream: "/v1/chat/completions",
  responses: "/v1/responses",
  "responses stream": "/v1/responses",
  embedding: "/v1/embeddings",
};

/** `fetch` itself, as used without a client. */
export const plainFetch: Client = {
  name: "fetch",
  openEnds: ["never read"],
  silentEnds: ["ended early", "error event"],
  send,
  ask: async (call) => (await send(call)).json(),
  stream: async (call) => toText(await send(call)),
};

async function send(call: Call): Promise<Response> {
  const limited = limitFetch(call.metered, tap(call));
  for (let attempt = 0; ; attempt += 1) {
    const response = await limited(call.url + PATHS[call.kind], {
      method: "POST",
      headers: { ...call.headers, "content-type": "application/json" },
      body: JSON.stringify(buildBody(call)),
      signal: call.signal,
    });
    if (response.ok) return response;
    await response.text();
    if (attempt === call.maxRetries) throw new Error(`status ${response.status}`);
  }
}

function buildBody({ kind, model, toolResults }: Call): object {
  const stream = kind === "stream" || kind === "responses stream";
  if (kind === "embedding") return { model, input: QUESTION };
  const tool = { name: "weather", parameters: PARAMETERS };
  if (kind === "plain" || kind === "stream")
    return {
      model,
      stream,
      max_completion_tokens: MAX_TOKENS,
      messages: conversation<object>(toolResults, { role: "user", content: QUESTION }, (id) => [
        { role: "assistant", tool_calls: [{ id, type: "function", function: { ...tool } }] },
        { role: "tool", tool_call_id: id, content: "rain" },
      ]),
      ...(toolResults !== undefined && { tools: [{ type: "function", function: tool }] }),
    };
  return {
    model,
    stream,
    max_output_tokens: MAX_TOKENS,
    input: conversation<object>(toolResults, { role: "user", content: QUESTION }, (call_id) => [
      { type: "function_call", call_id, name: "weather", arguments: "{}" },
      { type: "function_call_output", call_id, output: "rain" },
    ]),
    ...(toolResults !== undefined && { tools: [{ type: "function", ...tool }] }),
  };
}

async function* toText(response: Response): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  for await (const chunk of response.body!)
    for (const [, text] of decoder
      .decode(chunk, { stream: true })
      .matchAll(/"(?:content|delta)":"([^"]*)"/g))
      yield text!;
}
