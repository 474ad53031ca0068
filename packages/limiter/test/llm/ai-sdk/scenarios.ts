/*
 * What the AI SDK is asked to do, for each of its versions. Each scenario has a limiter of its own
 * and returns what can be seen of it afterwards, as plain data: version 7 runs in another process.
 */
import { isDeepStrictEqual } from "node:util";
import { RateLimitExceeded } from "zae-limiter";
import { limitFetch } from "zae-limiter/openai";
import type { Provider } from "../../../../../examples/local-provider/provider.ts";
import { ObservedLimiter, type Charged } from "../observed-limiter.ts";
import {
  EMBEDDING_MODEL,
  MODEL,
  PROMPT,
  Scenario,
  type LanguageModel,
  type Sdk,
} from "./scenario.ts";

/** Words of an answer that is more than the buffers of a connection and of the SDK hold. */
const LONG = "100000";

/** Waits that the SDK makes between attempts are as short as the provider says. */
const AT_ONCE = JSON.stringify({ "retry-after-ms": "1" });

/** What a scenario saw, besides what was charged. */
type Seen = Readonly<Record<string, unknown>>;

/** The scenarios by name. */
export const SCENARIOS: Readonly<Record<string, (scenario: Scenario) => Promise<Seen>>> = {
  async generateText(scenario) {
    const { text } = await scenario.sdk.ai.generateText(scenario.asked());
    return { text };
  },

  async "generateText without usage"(scenario) {
    const asked = scenario.asked({ "x-local-fault": "no-usage" });
    return { text: (await scenario.sdk.ai.generateText(asked)).text };
  },

  async "generateText with an unreadable usage"(scenario) {
    const usage = { prompt_tokens: -3, completion_tokens: 2, total_tokens: -1 };
    const asked = scenario.asked({ "x-local-usage": JSON.stringify(usage) });
    return { text: (await scenario.sdk.ai.generateText(asked)).text };
  },

  async streamText(scenario) {
    const { textStream } = scenario.sdk.ai.streamText(scenario.asked());
    return { text: await joined(textStream) };
  },

  async "streamText cut off"(scenario) {
    return partsSeen(scenario, scenario.asked({ "x-local-fault": "cut" }));
  },

  async "streamText that ends early"(scenario) {
    return partsSeen(scenario, scenario.asked({ "x-local-fault": "end-early" }));
  },

  async "streamText with an error event"(scenario) {
    return partsSeen(scenario, scenario.asked({ "x-local-fault": "error-event" }));
  },

  "parts of completions": (scenario) => equalParts(scenario, scenario.openai.chat(MODEL)),

  "parts of responses": (scenario) => equalParts(scenario, scenario.openai.responses(MODEL)),

  async generateObject(scenario) {
    const schema = scenario.sdk.ai.jsonSchema<{ city: string }>({
      type: "object",
      properties: { city: { type: "string" } },
    });
    const asked = scenario.asked({ "x-local-answer": '{"city":"Rome"}' });
    const { object } = await scenario.sdk.ai.generateObject({ ...asked, schema });
    const streamed = scenario.sdk.ai.streamObject({ ...asked, schema });
    await joined(streamed.textStream);
    return { object, streamed: await streamed.object };
  },

  async "tool loop of three steps"(scenario) {
    const { ai } = scenario.sdk;
    const tools = scenario.tools(async () => "rain");
    const asked = { ...scenario.asked({ "x-local-tool-calls": "2" }), tools };
    const { steps } = await ai.generateText({ ...asked, stopWhen: ai.stepCountIs(5) });
    return { steps: steps.length };
  },

  async "streamed loop whose tool calls a model"(scenario) {
    const { ai } = scenario.sdk;
    const inner = scenario.asked({ "x-local-answer": "rain" });
    const tools = scenario.tools(async () => (await ai.generateText(inner)).text);
    const asked = { ...scenario.asked({ "x-local-tool-calls": "1" }), tools };
    const { textStream } = ai.streamText({ ...asked, stopWhen: ai.stepCountIs(5) });
    return { text: await joined(textStream) };
  },

  async "aborted before"(scenario) {
    const abortSignal = AbortSignal.abort();
    const asked = { ...scenario.asked(), abortSignal };
    return errorOf(scenario.sdk.ai.generateText(asked));
  },

  async "aborted while it waits for tokens"(scenario) {
    await scenario.observed.use(MODEL, 100);
    const controller = new AbortController();
    const asked = scenario.asked({}, { waitUpToMs: 86_400_000 });
    const answer = errorOf(
      scenario.sdk.ai.generateText({ ...asked, abortSignal: controller.signal }),
    );
    await scenario.observed.clock.advance(0);
    controller.abort();
    return { ...(await answer), requests: scenario.requests };
  },

  async "aborted without an answer"(scenario) {
    const controller = new AbortController();
    const asked = {
      ...scenario.asked({ "x-local-fault": "hang" }),
      abortSignal: controller.signal,
    };
    const answer = errorOf(scenario.sdk.ai.generateText(asked));
    await scenario.requested();
    controller.abort();
    return answer;
  },

  async "aborted while it streams"(scenario) {
    const controller = new AbortController();
    const asked = {
      ...scenario.asked({ "x-local-fault": "slow" }),
      abortSignal: controller.signal,
    };
    const hungUp = scenario.provider.nextHangUp();
    let words = 0;
    try {
      for await (const _ of scenario.sdk.ai.streamText(asked).textStream) {
        words += 1;
        if (words === 3) controller.abort();
      }
    } catch {
      // Some versions throw here, and others end the stream.
    }
    await hungUp;
    return { words };
  },

  async "left by break"(scenario) {
    const asked = scenario.asked({ "x-local-answer": "2000" });
    for await (const _ of scenario.sdk.ai.streamText(asked).textStream) break;
    await scenario.observed.untilSettled();
    return {};
  },

  async "never read"(scenario) {
    scenario.sdk.ai.streamText(scenario.asked({ "x-local-answer": "2000" }));
    await scenario.observed.untilSettled();
    return {};
  },

  async "429, then answered"(scenario) {
    const asked = scenario.asked({ "x-local-fault": "429 1", "x-local-headers": AT_ONCE });
    return { text: (await scenario.sdk.ai.generateText(asked)).text };
  },

  async "500 twice, then answered with a stream"(scenario) {
    const asked = scenario.asked({ "x-local-fault": "500 2", "x-local-headers": AT_ONCE });
    return { text: await joined(scenario.sdk.ai.streamText(asked).textStream) };
  },

  async "400"(scenario) {
    return errorOf(scenario.sdk.ai.generateText(scenario.asked({ "x-local-fault": "400" })));
  },

  async "connection refused"(scenario) {
    const { refusedUrl } = scenario.provider;
    const openai = scenario.sdk.createOpenAI({ baseURL: refusedUrl, apiKey: "local" });
    const asked = { ...scenario.asked(), model: scenario.limited(openai.chat(MODEL)) };
    return errorOf(scenario.sdk.ai.generateText({ ...asked, maxRetries: 0 }));
  },

  async "no answer on a connection"(scenario) {
    const asked = scenario.asked({ "x-local-fault": "no-answer" });
    return errorOf(scenario.sdk.ai.generateText({ ...asked, maxRetries: 0 }));
  },

  async refused(scenario) {
    await scenario.observed.use(MODEL, 100);
    const asked = scenario.asked();
    const generated = await errorOf(scenario.sdk.ai.generateText(asked));
    let streamed: unknown;
    const onError = ({ error }: { error: unknown }): void => void (streamed = error);
    await scenario.sdk.ai.streamText({ ...asked, onError }).consumeStream();
    return { ...generated, streamed: nameOf(streamed), requests: scenario.requests };
  },

  async "refused after an attempt"(scenario) {
    await scenario.observed.use(MODEL, 99);
    const headers = { "x-local-fault": "429 1", "x-local-headers": AT_ONCE };
    const asked = scenario.asked(headers, {
      onSettled: (record) => {
        scenario.observed.records.push(record);
        void scenario.observed.use(MODEL, 1);
      },
    });
    return errorOf(scenario.sdk.ai.generateText(asked));
  },

  async "limitFetch beneath the middleware"(scenario) {
    const openai = scenario.sdk.createOpenAI({
      baseURL: `${scenario.provider.url}/v1`,
      apiKey: "local",
      fetch: limitFetch(scenario.observed.options),
    });
    const model = scenario.limited(openai.chat(MODEL));
    const { textStream } = scenario.sdk.ai.streamText({ ...scenario.asked(), model });
    return { text: await joined(textStream) };
  },

  async "stopped when nothing is left"(scenario) {
    const asked = scenario.asked({ "x-local-answer": LONG }, { overrun: "stop" });
    const hungUp = scenario.provider.nextHangUp();
    const seen = await partsSeen(scenario, asked);
    await hungUp;
    return seen;
  },
};

/** Scenarios with embedding models, which `ai` 5 has no middleware for. */
export const EMBEDDING_SCENARIOS: typeof SCENARIOS = {
  async embed(scenario) {
    const model = scenario.embeddingModel();
    const { usage } = await scenario.sdk.ai.embed({ model, value: PROMPT });
    return { usage };
  },

  async embedMany(scenario) {
    const values = [PROMPT, PROMPT, PROMPT];
    const model = scenario.embeddingModel();
    const { embeddings } = await scenario.sdk.ai.embedMany({ model, values });
    return { embeddings: embeddings.length };
  },

  async "embed, 500 once"(scenario) {
    const headers = { "x-local-fault": "500 1", "x-local-headers": AT_ONCE };
    const model = scenario.embeddingModel();
    await scenario.sdk.ai.embed({ model, value: PROMPT, headers });
    return {};
  },
};

/** What was charged for a scenario, and what it saw. */
export type Outcome = Charged & Seen;

/** Runs a scenario with a limiter of its own. */
export async function runScenario(sdk: Sdk, provider: Provider, name: string): Promise<Outcome> {
  const scenario = new Scenario(sdk, provider, await ObservedLimiter.open());
  const run = SCENARIOS[name] ?? EMBEDDING_SCENARIOS[name];
  const seen = await run!(scenario);
  const resource = name in SCENARIOS ? MODEL : EMBEDDING_MODEL;
  return { ...seen, ...(await scenario.observed.charged(resource)) };
}

async function joined(stream: AsyncIterable<string>): Promise<string> {
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
    partsOf(streamText({ ...asked, stopWhen: stepCountIs(2), model: each }).fullStream);
  const limited = await parts(scenario.limited(model));
  const plain = await parts(model);
  return { areEqual: isDeepStrictEqual(limited, plain), areMany: plain.length > 20 };
}

/** Parts of a stream, without what differs each time. */
async function partsOf(stream: AsyncIterable<unknown>): Promise<unknown[]> {
  const parts: unknown[] = [];
  for await (const part of stream) {
    const text = JSON.stringify(part, (key, value: unknown) =>
      VARYING.has(key) ? undefined : value,
    );
    parts.push(JSON.parse(text));
  }
  return parts;
}

/** Names of what the SDK and the provider make anew each time, or measure. */
const VARYING: ReadonlySet<string> = new Set(
  "id timestamp date headers request messageId callId performance".split(" "),
);

/** What a stream was seen to be: the bytes of its text, and the last error. */
async function partsSeen(scenario: Scenario, asked: ReturnType<Scenario["asked"]>): Promise<Seen> {
  let textBytes = 0;
  let error: unknown;
  try {
    for await (const part of scenario.sdk.ai.streamText(asked).fullStream) {
      if (part.type === "text-delta") textBytes += Buffer.byteLength(part.text);
      if (part.type === "error") ({ error } = part);
    }
  } catch (thrown) {
    error = thrown;
  }
  return { textBytes, error: nameOf(error) };
}

async function errorOf(answer: PromiseLike<unknown>): Promise<Seen> {
  try {
    await answer;
    return { error: undefined };
  } catch (error) {
    const { lastError } = Object(error) as { readonly lastError?: unknown };
    return {
      error: nameOf(error),
      ...(lastError !== undefined && { lastError: nameOf(lastError) }),
    };
  }
}

/** A refusal is one of ours by its class, not by its name. */
function nameOf(error: unknown): string | undefined {
  if (error instanceof RateLimitExceeded) return "our RateLimitExceeded";
  return error instanceof Error ? error.name : typeof error;
}
