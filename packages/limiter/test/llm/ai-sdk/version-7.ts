/*
 * Runs the scenarios with version 7 of the AI SDK, which needs a newer Node than the tests, and
 * prints what became of each: `node version-7.ts`.
 */
import { createOpenAI } from "ai-sdk-openai-4";
import * as ai from "ai-7";
import { startProvider } from "../../../../../examples/local-provider/provider.ts";
import { EMBEDDING_SCENARIOS, runScenario, SCENARIOS } from "./scenarios.ts";
import type { Sdk } from "./scenario.ts";

const sdk = { specificationVersion: "v4", ai, createOpenAI } as unknown as Sdk;
const provider = await startProvider();
const outcomes: Record<string, unknown> = {};
for (const name of [...Object.keys(SCENARIOS), ...Object.keys(EMBEDDING_SCENARIOS)]) {
  try {
    outcomes[name] = await runScenario(sdk, provider, name);
  } catch (error) {
    outcomes[name] = { error: String(error) };
  }
}
await provider.stop();
process.stdout.write(JSON.stringify(outcomes));
