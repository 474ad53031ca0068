import type { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import { limitCallbacks } from "zae-limiter/langchain";
import { limitFetch } from "zae-limiter/openai";
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

/** Builds LangChain's models of OpenAI, with one of the two holds. */
export function langChainClient(
  name: ClientName,
  load: () => Promise<LangChain>,
  hold: "fetch" | "callbacks",
): Client {
  const listFields = (call: Call) => ({
    apiKey: "local",
    model: call.model,
    maxRetries: call.maxRetries,
    configuration: {
      baseURL: `${call.url}/v1`,
      defaultHeaders: { ...call.headers },
      ...(hold === "fetch" && { fetch: limitFetch(call.metered, tap(call)) }),
    },
    ...(hold === "callbacks" && {
      callbacks: [
        limitCallbacks(call.metered),
        { handleLLMNewToken: (token: string) => call.tap(token) },
      ],
    }),
  });
  const buildModel = async (call: Call) => {
    const { ChatOpenAI: Chat } = await load();
    const model = new Chat({ ...listFields(call), maxTokens: MAX_TOKENS });
    const tool = { name: "weather", parameters: PARAMETERS };
    return call.toolResults === undefined
      ? model
      : model.bindTools([{ type: "function", function: tool }]);
  };
  return {
    name,
    readsAhead: true,
    // There is no callback for a stream that was left.
    ...(hold === "callbacks"
      ? {
          seesRunsOnly: true,
          openEnds: ["left by break", "never read"],
          otherEnds: { "stream, ended early": ["complete"] },
        }
      : { openEnds: ["never read"] }),
    silentEnds: ["ended early"],
    ask: async (call) => {
      if (call.kind !== "embedding")
        return (await buildModel(call)).invoke(buildMessages(call), { signal: call.signal });
      const { OpenAIEmbeddings: Embeddings } = await load();
      return new Embeddings(listFields(call)).embedQuery(QUESTION);
    },
    stream: async (call) => {
      const model = await buildModel(call);
      return toText(await model.stream(buildMessages(call), { signal: call.signal }));
    },
  };
}

export interface LangChain {
  readonly ChatOpenAI: typeof ChatOpenAI;
  readonly OpenAIEmbeddings: typeof OpenAIEmbeddings;
}

type Message = Parameters<ChatOpenAI["invoke"]>[0] extends infer Input
  ? Extract<Input, readonly unknown[]>[number]
  : never;

function buildMessages({ toolResults }: Call): Message[] {
  return conversation<Message>(toolResults, { role: "user", content: QUESTION }, (id) => [
    {
      role: "assistant",
      content: "",
      tool_calls: [{ id, name: "weather", args: {}, type: "tool_call" }],
    },
    { role: "tool", tool_call_id: id, content: "rain" },
  ]);
}

async function* toText(
  stream: AsyncIterable<{ readonly content: unknown }>,
): AsyncGenerator<string> {
  for await (const { content } of stream) if (typeof content === "string") yield content;
}
