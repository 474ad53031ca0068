// The clients that run under every Node that is supported.
import Anthropic from "@anthropic-ai/sdk";
import { createOpenAI } from "@ai-sdk/openai";
import * as ai from "ai";
import * as ai5 from "ai-5";
import { createOpenAI as createOpenAi2 } from "ai-sdk-openai-2";
import Anthropic0 from "anthropic-sdk-0";
import OpenAI from "openai";
import { afterAll, beforeAll } from "vitest";
import { startProvider, type Provider } from "../../../../../examples/local-provider/provider.ts";
import { aiSdkClient, type AiSdk } from "./clients/ai-sdk.ts";
import { anthropicClient } from "./clients/anthropic.ts";
import { openaiClient } from "./clients/openai.ts";
import { describeMatrix } from "./describe-matrix.ts";
import { playAll } from "./play.ts";

let provider: Provider;
beforeAll(async () => {
  provider = await startProvider();
});
afterAll(() => provider.stop());

const five = { ai: ai5, createOpenAI: createOpenAi2, specificationVersion: "v2" };

for (const client of [
  aiSdkClient("ai 5", five as unknown as AiSdk),
  aiSdkClient("ai 6", { ai, createOpenAI, specificationVersion: "v3" }),
  openaiClient("openai 6", OpenAI),
  anthropicClient("anthropic 0 by fetch", Anthropic0 as unknown as typeof Anthropic, "fetch"),
  anthropicClient("anthropic 1 by fetch", Anthropic, "fetch"),
  anthropicClient("anthropic 1 by middleware", Anthropic, "middleware"),
])
  describeMatrix(client, () => playAll(client, provider));
