import type { LlmCall } from "../tokens/llm-call.ts";
type AiSdkModel = { readonly modelId: string };
type AiSdkCall = {
  readonly prompt?: unknown;
  readonly values?: readonly unknown[];
  readonly maxOutputTokens?: number | undefined;
};

/** What is known of a call of a language model before it is made. */
export function languageCall(model: AiSdkModel, params: AiSdkCall, stream: boolean): LlmCall {
  const { prompt, maxOutputTokens, tools, responseFormat } = params as AiSdkCall & {
    readonly tools?: unknown;
    readonly responseFormat?: unknown;
  };
  const texts: string[] = [];
  const images = collect([prompt, tools, responseFormat], texts);
  return callOf(model, texts, images, maxOutputTokens, stream);
}

/** What is known of a call of an embedding model before it is made. */
export function embeddingCall(model: AiSdkModel, params: AiSdkCall): LlmCall {
  const texts: string[] = [];
  collect(params.values, texts);
  return callOf(model, texts, 0, 0, false);
}

function callOf(
  model: AiSdkModel,
  texts: readonly string[],
  images: number,
  maxOutputTokens: number | undefined,
  stream: boolean,
): LlmCall {
  const textBytes = texts.reduce((bytes, text) => bytes + Buffer.byteLength(text), 0);
  return {
    model: model.modelId,
    textBytes,
    texts: () => texts,
    images,
    choices: 1,
    maxOutputTokens,
    stream,
  };
}

function collect(value: unknown, texts: string[]): number {
  if (typeof value === "string") texts.push(value);
  if (typeof value !== "object" || value === null) return 0;
  if ((value as { readonly type?: unknown }).type === "file") return 1;
  let images = 0;
  for (const [key, part] of Object.entries(value))
    if (!["role", "type", "providerOptions", "toolCallId"].includes(key))
      images += collect(part, texts);
  return images;
}
