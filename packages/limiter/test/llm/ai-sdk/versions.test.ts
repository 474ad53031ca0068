/*
 * The middlewares with all versions of the AI SDK, against a provider on this machine. The matrix
 * shows what each end of a call costs. Version 7 runs in a process with a newer Node.
 */
import * as ai6 from "ai";
import * as ai5 from "ai-5";
import { createOpenAI as createOpenAI3 } from "@ai-sdk/openai";
import { createOpenAI as createOpenAI2 } from "ai-sdk-openai-2";
import { afterAll, beforeAll, describe, expect, it, vi, type MockInstance } from "vitest";
import { startProvider, type Provider } from "../../../../../examples/local-provider/provider.ts";
import { forgetWarnings } from "../../../src/warnings/warn-once.ts";
import { ANSWER } from "../../../../../examples/local-provider/wishes.ts";
import { isSkipped, runNewer, TIMEOUT_MS } from "../newer-node.ts";
import { EMBEDDING_SCENARIOS, runScenario, SCENARIOS } from "./scenarios.ts";
import type { Sdk } from "./scenario.ts";

/** The question has 8 tokens by the provider, and 6 by our estimate; the answer has 8. */
const ANSWERED = "complete reported 8+8";
const SHORT = "complete reported 8+1";
const REFUSED = "our RateLimitExceeded";

const SAME_PARTS = {
  areEqual: true,
  areMany: true,
  rpm: 2,
  tpm: 26,
  calls: [SHORT, "complete reported 9+8"],
};

const EXPECTED: Readonly<Record<string, object>> = {
  "generateText with a usage without numbers": {
    text: ANSWER,
    rpm: 1,
    tpm: 18,
    calls: ["complete counted 6+12"],
  },
  "parts of completions": SAME_PARTS,
  "parts of responses": SAME_PARTS,
  "streamed loop whose tool calls a model": {
    text: ANSWER,
    rpm: 3,
    tpm: 35,
    calls: [SHORT, SHORT, "complete reported 9+8"],
  },
  refused: { error: REFUSED, streamed: REFUSED, requests: 0, rpm: 100, calls: [] },
  "refused after an attempt": {
    error: "AI_RetryError",
    lastError: REFUSED,
    rpm: 100,
    calls: ["failed estimated 0+0"],
  },
  "limitFetch beneath the middleware": { text: ANSWER, rpm: 1, tpm: 16, calls: [ANSWERED] },
  embedMany: { embeddings: 3, rpm: 1, tpm: 23, calls: ["complete reported 23+0"] },
};

const NAMES = Object.keys(SCENARIOS);

const ALL_NAMES = [...NAMES, ...Object.keys(EMBEDDING_SCENARIOS)];

describe.each([
  ["5", { specificationVersion: "v2", ai: ai5, createOpenAI: createOpenAI2 }, NAMES, []],
  [
    "6",
    { specificationVersion: "v3", ai: ai6, createOpenAI: createOpenAI3 },
    ALL_NAMES,
    ["WARN_LIMITER_USAGE_UNREADABLE"],
  ],
] as const)("version %s", (_version, sdk, names, unreadable) => {
  let provider: Provider;
  let warned: MockInstance<typeof process.emitWarning>;

  beforeAll(async () => {
    forgetWarnings();
    warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    provider = await startProvider();
  });
  afterAll(async () => {
    forgetWarnings();
    warned.mockRestore();
    await provider.stop();
  });

  it.each(names)("%s", async (name) => {
    const outcome = await runScenario(sdk as unknown as Sdk, provider, name);
    expect(outcome).toEqual(EXPECTED[name]);
  });

  it("warned once of each: a call with two meters, and a usage that cannot be read", () => {
    const codes = warned.mock.calls.map(([, options]) => Object(options).code as unknown);
    expect(codes).toEqual([...unreadable, "WARN_LIMITER_METERED_TWICE"]);
  });
});

describe.skipIf(isSkipped)("version 7", () => {
  let outcomes: Readonly<Record<string, unknown>>;

  beforeAll(async () => {
    ({ printed: outcomes } = await runNewer(new URL("version-7.ts", import.meta.url)));
  }, TIMEOUT_MS);

  it.each(ALL_NAMES)("%s", (name) => {
    expect(outcomes[name]).toEqual(EXPECTED[name]);
  });
});
