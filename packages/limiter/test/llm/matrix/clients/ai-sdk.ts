import type { createOpenAI } from "@ai-sdk/openai";
import type * as Ai from "ai";
import { limitEmbeddingModel, limitLanguageModel } from "zae-limiter/ai-sdk";
import { isStream } from "../cells.ts";
import { MAX_TOKENS, PARAMETERS, QUESTION, type Call, type Client } from "../client.ts";

/** The parts of one version of the AI SDK. */
export interface AiSdk {
  readonly ai: typeof Ai;
  readonly createOpenAI: typeof createOpenAI;
  readonly specificationVersion: "v2" | "v3" | "v4";
}

/** The AI SDK, of whichever version. */
export function aiSdkClient(name: string, sdk: AiSdk): Client {
  const { ai } = sdk;
  return {
    name,
    kinds: [
      "plain",
      "stream",
      "responses",
      "responses stream",
      // `ai` 5 cannot wrap embedding models.
      ...(sdk.specificationVersion === "v2" ? [] : (["embedding"] as const)),
    ],
    readsAhead: true,
    staysOpen: ({ end }) => end === "left by break" || end === "never read",
    ask: (call) =>
      call.kind === "embedding"
        ? ai.embed({
            model: embeddingModelOf(sdk, call),
            value: QUESTION,
            headers: { ...call.headers },
            abortSignal: call.signal,
            maxRetries: call.maxRetries,
          })
        : ai.generateText(requestOf(sdk, call)),
    stream: async (call) => textOf(sdk, call),
    loop: async (call) => {
      const request = {
        ...requestOf(sdk, call),
        stopWhen: ai.stepCountIs(3),
        tools: {
          weather: ai.tool({
            inputSchema: ai.jsonSchema<{ city?: string }>(PARAMETERS as never),
            execute: async () => "rain",
          }),
        },
      };
      if (isStream(call.kind)) await ai.streamText(request).consumeStream();
      else await ai.generateText(request);
    },
  };
}

/** Streams tell of errors by a callback, and end as if nothing had happened. */
async function* textOf(sdk: AiSdk, call: Call): AsyncGenerator<string> {
  let failure: unknown;
  const { textStream } = sdk.ai.streamText({
    ...requestOf(sdk, call),
    onError: ({ error }) => {
      failure = error;
    },
  });
  yield* textStream;
  call.signal.throwIfAborted();
  if (failure !== undefined) throw failure;
}

function requestOf(sdk: AiSdk, call: Call) {
  return {
    model: modelOf(sdk, call),
    prompt: QUESTION,
    maxOutputTokens: MAX_TOKENS,
    headers: { ...call.headers },
    abortSignal: call.signal,
    maxRetries: call.maxRetries,
  };
}

function modelOf(sdk: AiSdk, call: Call): Ai.LanguageModel {
  const { kind, model, metered } = call;
  const provider = providerOf(sdk, call);
  const isResponses = kind === "responses" || kind === "responses stream";
  // Versions differ in their types only: the middleware is for one of them, and so is the model.
  const specificationVersion = sdk.specificationVersion as "v3";
  return sdk.ai.wrapLanguageModel({
    model: isResponses ? provider.responses(model) : provider.chat(model),
    middleware: [
      limitLanguageModel({ ...metered, specificationVersion }),
      tapOf(call, specificationVersion),
    ],
  });
}

function embeddingModelOf(sdk: AiSdk, call: Call): Ai.EmbeddingModel {
  const specificationVersion = sdk.specificationVersion as "v3";
  return sdk.ai.wrapEmbeddingModel({
    model: providerOf(sdk, call).embedding(call.model),
    middleware: limitEmbeddingModel({ ...call.metered, specificationVersion }),
  });
}

function providerOf({ createOpenAI: create }: AiSdk, { url }: Call) {
  return create({ baseURL: `${url}/v1`, apiKey: "local" });
}

/** Tells the call of the text that comes to the meter, which is the middleware around this one. */
function tapOf(call: Call, specificationVersion: "v3"): Ai.LanguageModelMiddleware {
  return {
    specificationVersion,
    wrapStream: async ({ doStream }) => {
      const { stream, ...rest } = await doStream();
      const reader = stream.getReader();
      const watched: typeof stream = new ReadableStream(
        {
          async pull(controller) {
            const { done, value } = await reader.read();
            if (done) return controller.close();
            if (value.type === "text-delta") call.tap(value.delta);
            controller.enqueue(value);
          },
          cancel: (reason) => reader.cancel(reason),
        },
        { highWaterMark: 0 },
      );
      return { stream: watched, ...rest };
    },
  };
}
