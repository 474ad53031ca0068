/*
 * The middlewares with all versions of the AI SDK, against a provider on this machine: what each
 * end of a call costs, and what the caller sees. Version 7 runs in a process with a newer Node.
 */
import * as ai6 from "ai";
import * as ai5 from "ai-5";
import { createOpenAI as createOpenAI3 } from "@ai-sdk/openai";
import { createOpenAI as createOpenAI2 } from "ai-sdk-openai-2";
import { afterAll, beforeAll, describe, expect, it, vi, type MockInstance } from "vitest";
import { startProvider, type Provider } from "../../../../../examples/local-provider/provider.ts";
import { forgetWarnings } from "../../../src/http/identity/warn-once.ts";
import { ANSWER } from "../../../../../examples/local-provider/wishes.ts";
import { outcomesOf, TIMEOUT_MS } from "../newer-node.ts";
import { charged } from "../observed-limiter.ts";
import { EMBEDDING_SCENARIOS, runScenario, SCENARIOS } from "./scenarios.ts";
import type { Sdk } from "./scenario.ts";

/** The question has 8 tokens by the provider, and 6 by our estimate; the answer has 8. */
const ANSWERED = { ...charged(1, 16, "complete reported 8+8") };
const COUNTED = { ...charged(1, 18, "complete counted 6+12") };
const HALF = { textBytes: 23, ...charged(1, 12, "cut counted 6+6") };
const FAILED = "failed estimated 0+0";
const GIVEN_BACK = { ...charged(0, 0, FAILED) };
const REFUSED = "our RateLimitExceeded";

const SAME_PARTS = {
  ...charged(2, 26, "complete reported 8+1", "complete reported 9+8"),
  areEqual: true,
  areMany: true,
};

const EXPECTED: Readonly<Record<string, object>> = {
  generateText: { text: ANSWER, ...ANSWERED },
  "generateText without usage": { text: ANSWER, ...COUNTED },
  "generateText with an unreadable usage": { text: ANSWER, ...COUNTED },
  streamText: { text: ANSWER, ...ANSWERED },
  "streamText cut off": { error: "AI_APICallError", ...HALF },
  "streamText that ends early": { error: "undefined", ...HALF },
  "streamText with an error event": { error: expect.any(String), ...HALF },
  "parts of completions": SAME_PARTS,
  "parts of responses": SAME_PARTS,
  generateObject: {
    object: { city: "Rome" },
    streamed: { city: "Rome" },
    ...charged(2, 18, "complete reported 8+1", "complete reported 8+1"),
  },
  "tool loop of three steps": {
    steps: 3,
    ...charged(3, 38, "complete reported 8+1", "complete reported 9+1", "complete reported 11+8"),
  },
  "streamed loop whose tool calls a model": {
    text: ANSWER,
    ...charged(3, 35, "complete reported 8+1", "complete reported 8+1", "complete reported 9+8"),
  },
  "aborted before": { error: "AbortError", ...charged(0, 0) },
  "aborted while it waits for tokens": {
    error: "AbortError",
    requests: 0,
    ...charged(100, 0),
  },
  "aborted without an answer": {
    error: "AbortError",
    ...charged(1, 106, "abandoned estimated 6+100"),
  },
  "aborted while it streams": {
    words: 3,
    ...charged(1, 10, "abandoned counted 6+4"),
  },
  "429, then answered": { text: ANSWER, ...ANSWERED, calls: [FAILED, ...ANSWERED.calls] },
  "500 twice, then answered with a stream": {
    text: ANSWER,
    ...ANSWERED,
    calls: [FAILED, FAILED, ...ANSWERED.calls],
  },
  "400": { error: "AI_APICallError", ...GIVEN_BACK },
  "connection refused": { error: "AI_APICallError", ...GIVEN_BACK },
  "no answer on a connection": {
    error: "AI_APICallError",
    ...charged(1, 106, "cut estimated 6+100"),
  },
  refused: { error: REFUSED, streamed: REFUSED, requests: 0, ...charged(100, 0) },
  "refused after an attempt": {
    error: "AI_RetryError",
    lastError: REFUSED,
    ...charged(100, 0, FAILED),
  },
  "limitFetch beneath the middleware": { text: ANSWER, ...ANSWERED },
  "stopped when nothing is left": {
    textBytes: 3980,
    error: REFUSED,
    ...charged(1, 1000, "stopped counted 6+995"),
  },
  embed: { usage: { tokens: 8 }, ...charged(1, 8, "complete reported 8+0") },
  embedMany: { embeddings: 3, ...charged(1, 23, "complete reported 23+0") },
  "embed, 500 once": { ...charged(1, 8, FAILED, "complete reported 8+0") },
};

/** Versions 5 and 6 read an answer to its end, whether or not anybody listens. */
const READ_ANYWAY = { ...charged(1, 2008, "complete reported 8+2000") };

/** Version 7 reads as much as it has room for. */
const IDLE = {
  calls: [expect.stringMatching(/^abandoned counted 6\+\d{1,2}$/)],
  rpm: 1,
  tpm: expect.any(Number),
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
    expect(outcome).toEqual(expectedOf(name, version));
  });

  it("warned once of the usage that cannot be read, and of the call with two meters", () => {
    expect(warned.mock.calls).toEqual([
      [expect.anything(), { code: "WARN_LIMITER_USAGE_UNREADABLE" }],
      [expect.anything(), { code: "WARN_LIMITER_METERED_TWICE" }],
    ]);
  });
});

describe("version 7", () => {
  let outcomes: Readonly<Record<string, unknown>>;

  beforeAll(async () => {
    outcomes = await outcomesOf(new URL("version-7.ts", import.meta.url));
  }, TIMEOUT_MS);

  it.each(ALL_NAMES)("%s", (name) => {
    expect(outcomes[name]).toEqual(expectedOf(name, "7"));
  });
});
