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

/** Builds a client of any version of the AI SDK. */
export function aiSdkClient(
  name: ClientName,
  specificationVersion: "v2" | "v3" | "v4",
  load: () => Promise<Omit<AiSdk, "specificationVersion">>,
): Client {
  const loadSdk = async (): Promise<AiSdk> => ({
    ...(await load()),
    specificationVersion: specificationVersion as "v3",
  });
  return {
    name,
    // `ai` 7 pauses a stream that is not read. Earlier versions read it to its end.
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
      const sdk = await loadSdk();
      if (call.kind !== "embedding") return sdk.ai.generateText(buildRequest(sdk, call));
      const model = getEmbeddingModel(sdk, call);
      return sdk.ai.embed({ model, value: QUESTION, ...buildSettings(call) });
    },
    stream: async (call) => toStream(await loadSdk(), call),
    loop: async (call) => {
      const sdk = await loadSdk();
      const { ai } = sdk;
      const inputSchema = ai.jsonSchema(PARAMETERS);
      const weather = ai.tool({ inputSchema, execute: async () => "rain" });
      const request = {
        ...buildRequest(sdk, call),
        stopWhen: ai.stepCountIs(3),
        tools: { weather },
      };
      if (isStream(call.kind)) await ai.streamText(request).consumeStream();
      else await ai.generateText(request);
    },
  };
}

/** Throws the errors of a stream, which the SDK only passes to a callback. */
function toStream(sdk: AiSdk, call: Call): AsyncIterable<string> {
  let failure: unknown;
  const { textStream } = sdk.ai.streamText({
    ...buildRequest(sdk, call),
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

function buildRequest(sdk: AiSdk, call: Call) {
  const model = buildModel(sdk, call);
  return { model, prompt: QUESTION, maxOutputTokens: MAX_TOKENS, ...buildSettings(call) };
}

function buildSettings({ headers, signal, maxRetries }: Call) {
  return { headers: { ...headers }, abortSignal: signal, maxRetries };
}

function buildModel(sdk: AiSdk, call: Call): Ai.LanguageModel {
  const { kind, model, metered } = call;
  const provider = buildProvider(sdk, call);
  const isResponses = kind === "responses" || kind === "responses stream";
  const { specificationVersion } = sdk;
  return sdk.ai.wrapLanguageModel({
    model: isResponses ? provider.responses(model) : provider.chat(model),
    middleware: [
      limitLanguageModel({ ...metered, specificationVersion }),
      buildTap(call, specificationVersion),
    ],
  });
}

function getEmbeddingModel(sdk: AiSdk, call: Call): Ai.EmbeddingModel {
  const { specificationVersion } = sdk;
  return sdk.ai.wrapEmbeddingModel({
    model: buildProvider(sdk, call).embedding(call.model),
    middleware: limitEmbeddingModel({ ...call.metered, specificationVersion }),
  });
}

function buildProvider({ createOpenAI: create }: AiSdk, { url }: Call) {
  return create({ baseURL: `${url}/v1`, apiKey: "local" });
}

/** Counts the text that reaches the meter, which is the middleware around this one. */
function buildTap(call: Call, specificationVersion: "v3"): Ai.LanguageModelMiddleware {
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
