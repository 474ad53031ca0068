/*
 * Scenarios for each version of the AI SDK, besides those that every client plays in the matrix.
 * Each has its own limiter and returns its outcome as plain data, because version 7 runs in another
 * process.
 */
import { isDeepStrictEqual } from "node:util";
import { RateLimitExceeded } from "zae-limiter";
import { limitFetch } from "zae-limiter/openai";
import type { Provider } from "../../../../../examples/local-provider/provider.ts";
import { meteredCalls, summarize } from "../metered-calls.ts";
import {
  EMBEDDING_MODEL,
  MODEL,
  PROMPT,
  Scenario,
  type LanguageModel,
  type Sdk,
} from "./scenario.ts";

/** The SDK waits between attempts for as long as the provider asks. */
const AT_ONCE = JSON.stringify({ "retry-after-ms": "1" });

/** The outcome of a scenario, besides the charge. */
type Seen = Readonly<Record<string, unknown>>;

/** The scenarios by name. */
export const SCENARIOS: Readonly<Record<string, (scenario: Scenario) => Promise<Seen>>> = {
  async "generateText with a usage without numbers"(scenario) {
    const asked = scenario.asked({ "x-local-usage": "{}" });
    return { text: (await scenario.sdk.ai.generateText(asked)).text };
  },

  "parts of completions": (scenario) => equalParts(scenario, scenario.openai.chat(MODEL)),

  "parts of responses": (scenario) => equalParts(scenario, scenario.openai.responses(MODEL)),

  async "streamed loop whose tool calls a model"(scenario) {
    const { ai } = scenario.sdk;
    const inner = scenario.asked({ "x-local-answer": "rain" });
    const tools = scenario.tools(async () => (await ai.generateText(inner)).text);
    const asked = { ...scenario.asked({ "x-local-tool-calls": "1" }), tools };
    const { textStream } = ai.streamText({ ...asked, stopWhen: ai.stepCountIs(5) });
    return { text: await join(textStream) };
  },

  async refused(scenario) {
    await scenario.calls.use(MODEL, { rpm: 100 });
    const asked = scenario.asked();
    const generated = await catchError(scenario.sdk.ai.generateText(asked));
    let streamed: unknown;
    const onError = ({ error }: { error: unknown }): void => void (streamed = error);
    await scenario.sdk.ai.streamText({ ...asked, onError }).consumeStream();
    return { ...generated, streamed: getName(streamed), requests: scenario.requests };
  },

  async "refused after an attempt"(scenario) {
    await scenario.calls.use(MODEL, { rpm: 99 });
    const headers = { "x-local-fault": "429 1", "x-local-headers": AT_ONCE };
    const asked = scenario.asked(headers, {
      onSettled: (record) => {
        scenario.calls.records.push(record);
        void scenario.calls.use(MODEL, { rpm: 1 });
      },
    });
    return catchError(scenario.sdk.ai.generateText(asked));
  },

  async "limitFetch beneath the middleware"(scenario) {
    const openai = scenario.sdk.createOpenAI({
      baseURL: `${scenario.provider.url}/v1`,
      apiKey: "local",
      fetch: limitFetch(scenario.calls.options),
    });
    const model = scenario.limited(openai.chat(MODEL));
    const { textStream } = scenario.sdk.ai.streamText({ ...scenario.asked(), model });
    return { text: await join(textStream) };
  },
};

/** Scenarios with embedding models, which `ai` 5 has no middleware for. */
export const EMBEDDING_SCENARIOS: typeof SCENARIOS = {
  async embedMany(scenario) {
    const values = [PROMPT, PROMPT, PROMPT];
    const model = scenario.embeddingModel();
    const { embeddings } = await scenario.sdk.ai.embedMany({ model, values });
    return { embeddings: embeddings.length };
  },
};

/** Runs a scenario. Returns the charge, how its calls ended, and its outcome. */
export async function runScenario(sdk: Sdk, provider: Provider, name: string): Promise<Seen> {
  const calls = await meteredCalls();
  const run = SCENARIOS[name] ?? EMBEDDING_SCENARIOS[name];
  const seen = await run!(new Scenario(sdk, provider, calls));
  const taken = await calls.taken(name in SCENARIOS ? MODEL : EMBEDDING_MODEL);
  return { ...seen, ...taken, calls: calls.records.map(summarize) };
}

async function join(stream: AsyncIterable<string>): Promise<string> {
  let text = "";
  for await (const piece of stream) text += piece;
  return text;
}

/** Whether a model answers with the same parts, with and without the limiter. */
async function equalParts(scenario: Scenario, model: LanguageModel): Promise<Seen> {
  const { streamText, stepCountIs } = scenario.sdk.ai;
  const tools = scenario.tools(async () => "rain");
  const asked = { ...scenario.asked({ "x-local-tool-calls": "1" }), tools };
  const parts = async (each: LanguageModel): Promise<unknown[]> =>
    listParts(streamText({ ...asked, stopWhen: stepCountIs(2), model: each }).fullStream);
  const limited = await parts(scenario.limited(model));
  const plain = await parts(model);
  return { areEqual: isDeepStrictEqual(limited, plain), areMany: plain.length > 20 };
}

/** Parts of a stream, without what differs each time. */
async function listParts(stream: AsyncIterable<unknown>): Promise<unknown[]> {
  const parts: unknown[] = [];
  for await (const part of stream) {
    const text = JSON.stringify(part, (key, value: unknown) =>
      VARYING.has(key) ? undefined : value,
    );
    parts.push(JSON.parse(text));
  }
  return parts;
}

/** Names of values that differ in each run. */
const VARYING: ReadonlySet<string> = new Set(
  "id timestamp date headers request messageId callId performance".split(" "),
);

async function catchError(answer: PromiseLike<unknown>): Promise<Seen> {
  try {
    await answer;
    return { error: undefined };
  } catch (error) {
    const { lastError } = Object(error) as { readonly lastError?: unknown };
    return {
      error: getName(error),
      ...(lastError !== undefined && { lastError: getName(lastError) }),
    };
  }
}

/** A refusal is one of ours by its class, not by its name. */
function getName(error: unknown): string | undefined {
  if (error instanceof RateLimitExceeded) return "our RateLimitExceeded";
  return error instanceof Error ? error.name : typeof error;
}
