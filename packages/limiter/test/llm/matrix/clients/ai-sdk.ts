import type { createOpenAI } from "@ai-sdk/openai";
import type * as Ai from "ai";
import { limitEmbeddingModel, limitLanguageModel } from "zae-limiter/ai-sdk";
import { isStream, type ClientName } from "../cells.ts";
import { MAX_TOKENS, PARAMETERS, QUESTION, type Call, type Client } from "../client.ts";

/** The parts of one version of the AI SDK. */
export interface AiSdk {
  readonly ai: typeof Ai;
  readonly createOpenAI: typeof createOpenAI;
  /** Versions differ in their types only: a middleware and its model are for the same one. */
  readonly specificationVersion: "v3";
}

/** The AI SDK, of whichever version. */
export function aiSdkClient(
  name: ClientName,
  specificationVersion: "v2" | "v3" | "v4",
  load: () => Promise<Omit<AiSdk, "specificationVersion">>,
): Client {
  const sdkOf = async (): Promise<AiSdk> => ({
    ...(await load()),
    specificationVersion: specificationVersion as "v3",
  });
  return {
    name,
    // `ai` 7 holds a stream that nobody reads; those before read it to its end.
    ...(specificationVersion === "v4"
      ? { readsAhead: true, openEnds: ["left by break", "never read"] }
      : { readsOn: true }),
    silentEnds: [
      "ended early",
      ...(specificationVersion === "v2" ? ["responses stream, error event"] : []),
    ],
    // `ai` 5 cannot read the last event then.
    ...(specificationVersion === "v2" && {
      otherEnds: { "responses stream, no usage": ["cut"] },
    }),
    ask: async (call) => {
      const sdk = await sdkOf();
      if (call.kind !== "embedding") return sdk.ai.generateText(requestOf(sdk, call));
      const model = embeddingModelOf(sdk, call);
      return sdk.ai.embed({ model, value: QUESTION, ...settingsOf(call) });
    },
    stream: async (call) => streamOf(await sdkOf(), call),
    loop: async (call) => {
      const sdk = await sdkOf();
      const { ai } = sdk;
      const inputSchema = ai.jsonSchema(PARAMETERS);
      const weather = ai.tool({ inputSchema, execute: async () => "rain" });
      const request = {
        ...requestOf(sdk, call),
        stopWhen: ai.stepCountIs(3),
        tools: { weather },
      };
      if (isStream(call.kind)) await ai.streamText(request).consumeStream();
      else await ai.generateText(request);
    },
  };
}

/** Streams tell of errors by a callback, and end as if nothing had happened. */
function streamOf(sdk: AiSdk, call: Call): AsyncIterable<string> {
  let failure: unknown;
  const { textStream } = sdk.ai.streamText({
    ...requestOf(sdk, call),
    onError: ({ error }) => {
      failure = error;
    },
  });
  return (async function* () {
    yield* textStream;
    call.signal.throwIfAborted();
    if (failure !== undefined) throw failure;
  })();
}

function requestOf(sdk: AiSdk, call: Call) {
  const model = modelOf(sdk, call);
  return { model, prompt: QUESTION, maxOutputTokens: MAX_TOKENS, ...settingsOf(call) };
}

function settingsOf({ headers, signal, maxRetries }: Call) {
  return { headers: { ...headers }, abortSignal: signal, maxRetries };
}

function modelOf(sdk: AiSdk, call: Call): Ai.LanguageModel {
  const { kind, model, metered } = call;
  const provider = providerOf(sdk, call);
  const isResponses = kind === "responses" || kind === "responses stream";
  const { specificationVersion } = sdk;
  return sdk.ai.wrapLanguageModel({
    model: isResponses ? provider.responses(model) : provider.chat(model),
    middleware: [
      limitLanguageModel({ ...metered, specificationVersion }),
      tapOf(call, specificationVersion),
    ],
  });
}

function embeddingModelOf(sdk: AiSdk, call: Call): Ai.EmbeddingModel {
  const { specificationVersion } = sdk;
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
