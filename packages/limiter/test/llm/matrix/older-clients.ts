import Anthropic from "@anthropic-ai/sdk";
import { createOpenAI } from "@ai-sdk/openai";
import * as ai from "ai";
import * as ai5 from "ai-5";
import { createOpenAI as createOpenAi2 } from "ai-sdk-openai-2";
import Anthropic0 from "anthropic-sdk-0";
import OpenAI from "openai";
import type { Client } from "./client.ts";
import { aiSdkClient } from "./clients/ai-sdk.ts";
import { anthropicClient } from "./clients/anthropic.ts";
import { openaiClient } from "./clients/openai.ts";

/** The clients that run under every Node that is supported. */
export const OLDER: readonly Client[] = [
  aiSdkClient("ai 5", "v2", async () => ({ ai: ai5, createOpenAI: createOpenAi2 }) as never),
  aiSdkClient("ai 6", "v3", async () => ({ ai, createOpenAI })),
  openaiClient(6, async () => OpenAI),
  anthropicClient("anthropic 0 by fetch", async () => Anthropic0 as never, "fetch"),
  anthropicClient("anthropic 1 by fetch", async () => Anthropic, "fetch"),
  anthropicClient("anthropic 1 by middleware", async () => Anthropic, "middleware"),
];
