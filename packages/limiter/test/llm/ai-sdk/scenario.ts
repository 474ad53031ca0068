import { randomUUID } from "node:crypto";
import type { createOpenAI } from "@ai-sdk/openai";
import { limitEmbeddingModel, limitLanguageModel } from "zae-limiter/ai-sdk";
import type { Provider } from "../../../../../examples/local-provider/provider.ts";
import type { MeteredCalls } from "../metered-calls.ts";

/** A version of the AI SDK and its provider. All have the parts of version 6 that are used here. */
export interface Sdk {
  readonly specificationVersion: "v2" | "v3" | "v4";
  readonly ai: typeof import("ai");
  readonly createOpenAI: typeof createOpenAI;
}

export const MODEL = "gpt-4.1-mini";
export const PROMPT = "What is a token bucket?";

export const EMBEDDING_MODEL = "text-embedding-3-small";

export type LanguageModel = ReturnType<ReturnType<typeof createOpenAI>["chat" | "responses"]>;

type LimitOptions = MeteredCalls["options"];

/** One use of the AI SDK, with its own limiter. */
export class Scenario {
  readonly sdk: Sdk;
  readonly provider: Provider;
  readonly calls: MeteredCalls;
  readonly #before: number;

  constructor(sdk: Sdk, provider: Provider, calls: MeteredCalls) {
    this.sdk = sdk;
    this.provider = provider;
    this.calls = calls;
    this.#before = provider.requests.length;
  }

  get openai(): ReturnType<typeof createOpenAI> {
    return this.sdk.createOpenAI({ baseURL: `${this.provider.url}/v1`, apiKey: "local" });
  }

  /** How many requests reached the provider since the scenario began. */
  get requests(): number {
    return this.provider.requests.length - this.#before;
  }

  /** A model whose calls are limited. */
  limited(
    model: LanguageModel,
    options: Partial<LimitOptions> = {},
  ): ReturnType<Sdk["ai"]["wrapLanguageModel"]> {
    const { ai, specificationVersion } = this.sdk;
    const limit = { ...this.calls.options, ...options, specificationVersion };
    return ai.wrapLanguageModel({
      model,
      middleware: limitLanguageModel(limit as typeof limit & { specificationVersion: "v3" }),
    });
  }

  embeddingModel(): ReturnType<Sdk["ai"]["wrapEmbeddingModel"]> {
    const { ai, specificationVersion } = this.sdk;
    const limit = { ...this.calls.options, specificationVersion };
    return ai.wrapEmbeddingModel({
      model: this.openai.embedding(EMBEDDING_MODEL),
      middleware: limitEmbeddingModel(limit as typeof limit & { specificationVersion: "v3" }),
    });
  }

  /** Builds a question. Its headers tell the provider how to answer. */
  asked(wishes: Readonly<Record<string, string>> = {}, options: Partial<LimitOptions> = {}) {
    const model = this.limited(this.openai.chat(MODEL), options);
    const headers = { "x-local-call": randomUUID(), ...wishes };
    return { model, prompt: PROMPT, headers, onError: () => {} };
  }

  /** Builds a tool that the SDK runs. */
  tools(execute: () => Promise<string>) {
    const { jsonSchema, tool } = this.sdk.ai;
    const inputSchema = jsonSchema<{ city: string }>({
      type: "object",
      properties: { city: { type: "string" } },
    });
    return { weather: tool({ description: "The weather.", inputSchema, execute }) };
  }
}
