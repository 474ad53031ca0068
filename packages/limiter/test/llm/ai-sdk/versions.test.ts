/*
 * The middlewares with all versions of the AI SDK, against a provider on this machine: what each
 * end of a call costs, and what the caller sees. Version 7 runs in a process with a newer Node.
 */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import * as ai6 from "ai";
import * as ai5 from "ai-5";
import { createOpenAI as createOpenAI3 } from "@ai-sdk/openai";
import { createOpenAI as createOpenAI2 } from "ai-sdk-openai-2";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { node24 } from "../../../../../tools/fetched.mjs";
import { startProvider, type Provider } from "../../../../../examples/local-provider/provider.ts";
import { ANSWER } from "../../../../../examples/local-provider/wishes.ts";
import {
  EMBEDDING_SCENARIOS,
  runScenario,
  SCENARIOS,
  type Outcome,
  type Sdk,
} from "./scenarios.ts";

/** Starting a process takes a while on a busy machine. */
const TIMEOUT_MS = 60_000;

/** The question has 8 tokens by the provider, and 6 by our estimate; the answer has 8. */
const ANSWERED = { calls: ["complete reported 8+8"], rpm: 1, tpm: 16 };
const COUNTED = { calls: ["complete counted 6+12"], rpm: 1, tpm: 18 };
const HALF = { textBytes: 23, calls: ["cut counted 6+6"], rpm: 1, tpm: 12 };
const FAILED = "failed estimated 0+0";
const GIVEN_BACK = { calls: [FAILED], rpm: 0, tpm: 0 };
const REFUSED = "our RateLimitExceeded";

const EXPECTED: Readonly<Record<string, object>> = {
  generateText: { text: ANSWER, ...ANSWERED },
  "generateText without usage": { text: ANSWER, ...COUNTED },
  "generateText with an unreadable usage": { text: ANSWER, ...COUNTED },
  streamText: { text: ANSWER, ...ANSWERED },
  "streamText cut off": { error: "AI_APICallError", ...HALF },
  "streamText that ends early": { error: "undefined", ...HALF },
  "streamText with an error event": { error: expect.any(String), ...HALF },
  "parts with and without the limiter": {
    ...{ areEqual: true, areMany: true },
    ...{ calls: ["complete reported 8+1", "complete reported 9+8"], rpm: 2, tpm: 26 },
  },
  generateObject: {
    ...{ object: { city: "Rome" }, streamed: { city: "Rome" } },
    ...{ calls: ["complete reported 8+1", "complete reported 8+1"], rpm: 2, tpm: 18 },
  },
  "tool loop of three steps": {
    steps: 3,
    calls: ["complete reported 8+1", "complete reported 9+1", "complete reported 11+8"],
    ...{ rpm: 3, tpm: 38 },
  },
  "streamed loop whose tool calls a model": {
    text: ANSWER,
    calls: ["complete reported 8+1", "complete reported 8+1", "complete reported 9+8"],
    ...{ rpm: 3, tpm: 35 },
  },
  "aborted before": { error: "AbortError", calls: [], rpm: 0, tpm: 0 },
  "aborted while it waits for tokens": {
    ...{ error: "AbortError", requests: 0 },
    ...{ calls: [], rpm: 100, tpm: 0 },
  },
  "aborted without an answer": {
    error: "AbortError",
    ...{ calls: ["abandoned estimated 6+100"], rpm: 1, tpm: 106 },
  },
  "aborted while it streams": {
    words: 3,
    ...{ calls: ["abandoned counted 6+4"], rpm: 1, tpm: 10 },
  },
  "429, then answered": { text: ANSWER, ...ANSWERED, calls: [FAILED, ...ANSWERED.calls] },
  "500 twice, then answered with a stream": {
    text: ANSWER,
    ...{ ...ANSWERED, calls: [FAILED, FAILED, ...ANSWERED.calls] },
  },
  "400": { error: "AI_APICallError", ...GIVEN_BACK },
  "connection refused": { error: "AI_APICallError", ...GIVEN_BACK },
  "no answer on a connection": {
    error: "AI_APICallError",
    ...{ calls: ["cut estimated 6+100"], rpm: 1, tpm: 106 },
  },
  refused: { error: REFUSED, streamed: REFUSED, requests: 0, calls: [], rpm: 100, tpm: 0 },
  "refused after an attempt": {
    ...{ error: "AI_RetryError", lastError: REFUSED },
    ...{ calls: [FAILED], rpm: 100, tpm: 0 },
  },
  "stopped when nothing is left": {
    ...{ textBytes: 3980, error: REFUSED },
    ...{ calls: ["stopped counted 6+995"], rpm: 1, tpm: 1000 },
  },
  embed: { usage: { tokens: 8 }, calls: ["complete reported 8+0"], rpm: 1, tpm: 8 },
  embedMany: { embeddings: 3, calls: ["complete reported 23+0"], rpm: 1, tpm: 23 },
  "embed, 500 once": { calls: [FAILED, "complete reported 8+0"], rpm: 1, tpm: 8 },
};

/** Versions 5 and 6 read an answer to its end, whether or not anybody listens. */
const READ_ANYWAY = { calls: ["complete reported 8+2000"], rpm: 1, tpm: 2008 };

/** Version 7 reads as much as it has room for. */
const IDLE = {
  calls: [expect.stringMatching(/^abandoned counted 6\+\d{1,2}$/)],
  ...{ rpm: 1, tpm: expect.any(Number) },
};

function expectedOf(name: string, version: "5" | "6" | "7"): object | undefined {
  if (!UNREAD.has(name)) return EXPECTED[name];
  return version === "7" ? IDLE : READ_ANYWAY;
}

const UNREAD: ReadonlySet<string> = new Set(["left by break", "never read"]);

const NAMES = Object.keys(SCENARIOS);

const ALL_NAMES = [...NAMES, ...Object.keys(EMBEDDING_SCENARIOS)];

describe.each([
  ["5", { specificationVersion: "v2", ai: ai5, createOpenAI: createOpenAI2 }, NAMES],
  ["6", { specificationVersion: "v3", ai: ai6, createOpenAI: createOpenAI3 }, ALL_NAMES],
] as const)("version %s", (version, sdk, names) => {
  let provider: Provider;

  beforeAll(async () => {
    provider = await startProvider();
  });
  afterAll(() => provider.stop());

  it.each(names)("%s", async (name) => {
    const outcome = await runScenario(sdk as unknown as Sdk, provider, name);
    expect(outcome).toEqual(expectedOf(name, version));
  });
});

describe("version 7", () => {
  let outcomes: Readonly<Record<string, Outcome>>;

  beforeAll(async () => {
    const script = fileURLToPath(new URL("version-7.ts", import.meta.url));
    const { stdout } = await promisify(execFile)(node24(), ["--no-warnings", script]);
    outcomes = JSON.parse(stdout) as typeof outcomes;
  }, TIMEOUT_MS);

  it.each(ALL_NAMES)("%s", (name) => {
    expect(outcomes[name]).toEqual(expectedOf(name, "7"));
  });
});
