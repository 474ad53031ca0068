import * as ai6 from "ai";
import * as ai5 from "ai-5";
import { createOpenAI as createOpenAI3 } from "@ai-sdk/openai";
import { createOpenAI as createOpenAI2 } from "ai-sdk-openai-2";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startProvider, type Provider } from "../../../../../examples/local-provider/provider.ts";
import { EMBEDDING_SCENARIOS, runScenario, SCENARIOS, type Sdk } from "./scenarios.ts";
let provider: Provider;
beforeAll(async () => {
  provider = await startProvider();
});
afterAll(() => provider.stop());
const sdks = {
  v2: { ai: ai5, createOpenAI: createOpenAI2 },
  v3: { ai: ai6, createOpenAI: createOpenAI3 },
};
for (const v of ["v2", "v3"] as const)
  for (const name of [
    ...Object.keys(SCENARIOS),
    ...(v === "v2" ? [] : Object.keys(EMBEDDING_SCENARIOS)),
  ])
    it(`${v} ${name}`, async () => {
      const outcome = await runScenario(
        { specificationVersion: v, ...sdks[v] } as unknown as Sdk,
        provider,
        name,
      );
      console.log(v, name, JSON.stringify(outcome));
      expect(1).toBe(1);
    });
