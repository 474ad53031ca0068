import type Anthropic from "@anthropic-ai/sdk";
import { limitFetch, limitMiddleware } from "zae-limiter/anthropic";
import type { ClientName } from "../cells.ts";
import {
  conversation,
  MAX_TOKENS,
  PARAMETERS,
  QUESTION,
  tap,
  type Call,
  type Client,
} from "../client.ts";

/** Builds Anthropic's client, of any version, with one of the two holds. */
export function anthropicClient(
  name: ClientName,
  load: () => Promise<typeof Anthropic>,
  hold: "fetch" | "middleware",
): Client {
  const buildClient = async (call: Call): Promise<Anthropic> =>
    new (await load())({
      apiKey: "local",
      baseURL: call.url,
      defaultHeaders: call.headers,
      maxRetries: call.maxRetries,
      ...(hold === "fetch"
        ? { fetch: limitFetch(call.metered, tap(call)) }
        : { fetch: tap(call), middleware: [limitMiddleware(call.metered)] }),
    });
  return {
    name,
    openEnds: ["never read"],
    reportsInputFirst: true,
    silentEnds: ["ended early", "stream, aborted during"],
    ask: async (call) => {
      const { messages } = await buildClient(call);
      return messages.create(buildMessage(call), { signal: call.signal });
    },
    stream: async (call) => {
      const { messages } = await buildClient(call);
      const request = { ...buildMessage(call), stream: true } as const;
      return toText(await messages.create(request, { signal: call.signal }));
    },
  };
}

function buildMessage({ model, toolResults }: Call): Anthropic.MessageCreateParamsNonStreaming {
  return {
    model,
    max_tokens: MAX_TOKENS,
    messages: conversation<Anthropic.MessageParam>(
      toolResults,
      { role: "user", content: QUESTION },
      (id) => [
        { role: "assistant", content: [{ type: "tool_use", id, name: "weather", input: {} }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: "rain" }] },
      ],
    ),
    ...(toolResults !== undefined && { tools: [{ name: "weather", input_schema: PARAMETERS }] }),
  };
}

async function* toText(
  stream: AsyncIterable<Anthropic.RawMessageStreamEvent>,
): AsyncGenerator<string> {
  for await (const event of stream)
    if (event.type === "content_block_delta" && event.delta.type === "text_delta")
      yield event.delta.text;
}
