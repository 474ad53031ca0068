/*
 * Plays the clients that need a newer Node, and prints the outcomes as JSON: `node child.ts`.
 */
import { startProvider } from "../../../../../examples/local-provider/provider.ts";
import type { Seen } from "./cells.ts";
import type { Client } from "./client.ts";
import { aiSdkClient, type AiSdk } from "./clients/ai-sdk.ts";
import { langChainClient, type LangChain } from "./clients/langchain.ts";
import { openaiClient } from "./clients/openai.ts";
import { playAll } from "./play.ts";

const loadLangChain = (): Promise<LangChain> => import("@langchain/openai");

/** The clients that need Node 22. They are loaded on their first call. */
export const NEWER: readonly Client[] = [
  aiSdkClient("ai 7", "v4", async () => {
    const ai = await import("ai-7");
    const { createOpenAI } = await import("ai-sdk-openai-4");
    return { ai, createOpenAI } as unknown as AiSdk;
  }),
  openaiClient(7, async () => (await import("openai-7")).default as never),
  langChainClient("langchain by fetch", loadLangChain, "fetch"),
  langChainClient("langchain by callbacks", loadLangChain, "callbacks"),
];

if (process.argv[1]?.endsWith("child.ts") === true) {
  const provider = await startProvider();
  const seen: Record<string, readonly Seen[]> = {};
  for (const client of NEWER) seen[client.name] = await playAll(client, provider);
  await provider.stop();
  process.stdout.write(JSON.stringify(seen));
}
