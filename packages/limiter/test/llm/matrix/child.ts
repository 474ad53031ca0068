/*
 * Plays the clients that need a newer Node, and prints what was seen as JSON.
 * Usage: node child.js PROVIDER.js CLIENT
 */
import type { Client } from "./client.ts";
import { aiSdkClient, type AiSdk } from "./clients/ai-sdk.ts";
import { langChainClient, type LangChain } from "./clients/langchain.ts";
import { openaiClient } from "./clients/openai.ts";
import { playAll, type Provider } from "./play.ts";

/** The clients that need Node 22. */
export const NEWER = {
  "ai 7": async (): Promise<Client> => {
    const ai = (await import("ai-7")) as unknown as AiSdk["ai"];
    const { createOpenAI } = (await import("ai-sdk-openai-4")) as unknown as AiSdk;
    return aiSdkClient("ai 7", { ai, createOpenAI, specificationVersion: "v4" });
  },
  "openai 7": async () => openaiClient("openai 7", (await import("openai-7")).default as never),
  "langchain by fetch": async () =>
    langChainClient(
      "langchain by fetch",
      (await import("@langchain/openai")) as LangChain,
      "fetch",
    ),
  "langchain by callbacks": async () =>
    langChainClient(
      "langchain by callbacks",
      (await import("@langchain/openai")) as LangChain,
      "callbacks",
    ),
};

if (process.argv[1]?.endsWith("child.js")) await main();

async function main(): Promise<void> {
  const [, , providerPath, name] = process.argv;
  const { startProvider } = (await import(providerPath!)) as {
    startProvider(): Promise<Provider & { stop(): Promise<void> }>;
  };
  const provider = await startProvider();
  const client = await NEWER[name as keyof typeof NEWER]();
  const seen = await playAll(client, provider);
  await provider.stop();
  process.stdout.write(JSON.stringify(seen));
  process.exit(0);
}
