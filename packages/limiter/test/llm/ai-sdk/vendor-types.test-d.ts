/* The AI SDK's own types accept the middlewares. Compiled by `tsc -b`; nothing here runs. */
import * as ai6 from "ai";
import * as ai5 from "ai-5";
import * as ai7 from "ai-7";
import { openai as openai3 } from "@ai-sdk/openai";
import { openai as openai2 } from "ai-sdk-openai-2";
import { openai as openai4 } from "ai-sdk-openai-4";
import { expectTypeOf } from "vitest";
import type { RateLimiter } from "zae-limiter";
import { limitEmbeddingModel, limitLanguageModel, type AiSdkCall } from "zae-limiter/ai-sdk";
import { METERING } from "zae-limiter/llm";

declare const limiter: RateLimiter;

const metered = { limiter, entity: "key-1", metering: METERING.openai };

export const models: readonly unknown[] = [
  ai5.wrapLanguageModel({
    model: openai2("gpt-5"),
    middleware: limitLanguageModel({ ...metered, specificationVersion: "v2" }),
  }),
  ai6.wrapLanguageModel({
    model: openai3("gpt-5"),
    middleware: limitLanguageModel({ ...metered, specificationVersion: "v3" }),
  }),
  ai6.wrapEmbeddingModel({
    model: openai3.embedding("text-embedding-3-small"),
    middleware: limitEmbeddingModel({ ...metered, specificationVersion: "v3" }),
  }),
  ai7.wrapLanguageModel({ model: openai4("gpt-5"), middleware: limitLanguageModel(metered) }),
  ai7.wrapEmbeddingModel({
    model: openai4.embedding("text-embedding-3-small"),
    middleware: limitEmbeddingModel(metered),
  }),
  // Among other middlewares.
  ai6.wrapLanguageModel({
    model: openai3("gpt-5"),
    middleware: [
      limitLanguageModel({ ...metered, specificationVersion: "v3" }),
      ai6.extractReasoningMiddleware({ tagName: "think" }),
    ],
  }),
];

// The call that middlewares of each version receive fits the one that `entity` gets.
expectTypeOf<Parameters<ReturnType<typeof openai2>["doGenerate"]>[0]>().toExtend<AiSdkCall>();
expectTypeOf<Parameters<ReturnType<typeof openai3>["doGenerate"]>[0]>().toExtend<AiSdkCall>();
expectTypeOf<Parameters<ReturnType<typeof openai4>["doGenerate"]>[0]>().toExtend<AiSdkCall>();

// Where the middleware is made in place, its version follows from where it goes.
ai6.wrapLanguageModel({ model: openai3("gpt-5"), middleware: limitLanguageModel(metered) });

const forVersion7 = limitLanguageModel(metered);
expectTypeOf(forVersion7.specificationVersion).toEqualTypeOf<"v4">();
// @ts-expect-error A middleware for another version of the AI SDK is a mistake.
ai6.wrapLanguageModel({ model: openai3("gpt-5"), middleware: forVersion7 });

// @ts-expect-error `ai` 5 has no middlewares for embedding models.
limitEmbeddingModel({ ...metered, specificationVersion: "v2" });
