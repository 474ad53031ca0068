import type OpenAI from "openai";
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

/** Builds OpenAI's client, of any version. */
export function openaiClient(version: 6 | 7, load: () => Promise<typeof OpenAI>): Client {
  const buildClient = async (call: Call): Promise<OpenAI> =>
    new (await load())({
      apiKey: "local",
      baseURL: `${call.url}/v1`,
      defaultHeaders: call.headers,
      maxRetries: call.maxRetries,
      fetch: limitFetch(call.metered, tap(call)),
    });
  return {
    name: `openai ${version}`,
    openEnds: ["never read"],
    silentEnds: [
      "ended early",
      "stream, aborted during",
      "responses stream, aborted during",
      ...(version === 6 ? ["responses stream, error event"] : []),
    ],
    ask: async (call) => {
      const { model, signal } = call;
      const client = await buildClient(call);
      if (call.kind === "embedding")
        return client.embeddings.create({ model, input: QUESTION }, { signal });
      if (call.kind === "responses") return client.responses.create(toResponse(call), { signal });
      return client.chat.completions.create(buildCompletion(call), { signal });
    },
    stream: async (call) => {
      const { signal } = call;
      const client = await buildClient(call);
      if (call.kind === "responses stream")
        return textOfResponse(
          await client.responses.create({ ...toResponse(call), stream: true }, { signal }),
        );
      return textOfCompletion(
        await client.chat.completions.create(
          { ...buildCompletion(call), stream: true },
          { signal },
        ),
      );
    },
  };
}

function buildCompletion({
  model,
  toolResults,
}: Call): OpenAI.ChatCompletionCreateParamsNonStreaming {
  const called = { name: "weather", arguments: "{}" };
  const tool = { name: "weather", parameters: PARAMETERS };
  return {
    model,
    max_completion_tokens: MAX_TOKENS,
    messages: conversation<OpenAI.ChatCompletionMessageParam>(
      toolResults,
      { role: "user", content: QUESTION },
      (id) => [
        { role: "assistant", tool_calls: [{ id, type: "function", function: called }] },
        { role: "tool", tool_call_id: id, content: "rain" },
      ],
    ),
    ...(toolResults !== undefined && { tools: [{ type: "function", function: tool }] }),
  };
}

function toResponse({
  model,
  toolResults,
}: Call): OpenAI.Responses.ResponseCreateParamsNonStreaming {
  return {
    model,
    max_output_tokens: MAX_TOKENS,
    input: conversation<OpenAI.Responses.ResponseInputItem>(
      toolResults,
      { role: "user", content: QUESTION },
      (call_id) => [
        { type: "function_call", call_id, name: "weather", arguments: "{}" },
        { type: "function_call_output", call_id, output: "rain" },
      ],
    ),
    ...(toolResults !== undefined && {
      tools: [{ type: "function", name: "weather", parameters: PARAMETERS, strict: false }],
    }),
  };
}

async function* textOfCompletion(
  stream: AsyncIterable<OpenAI.ChatCompletionChunk>,
): AsyncGenerator<string> {
  // A chunk without choices would throw: callers who did not ask for the usage must not get it.
  for await (const { choices } of stream) yield choices[0]!.delta.content ?? "";
}

async function* textOfResponse(
  stream: AsyncIterable<OpenAI.Responses.ResponseStreamEvent>,
): AsyncGenerator<string> {
  for await (const event of stream)
    if (event.type === "response.output_text.delta") yield event.delta;
}
