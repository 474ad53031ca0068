/*
 * Runs a chat model of LangChain with callbacks that limit it, against a provider on this machine,
 * and prints what became of each run: `node scenarios.ts`. LangChain's client of OpenAI needs a
 * newer Node than the tests.
 */
import { randomUUID } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { InMemoryCache } from "@langchain/core/caches";
import { ChatOpenAI, type ChatOpenAIFields } from "@langchain/openai";
import { RateLimitExceeded } from "zae-limiter";
import { limitCallbacks } from "zae-limiter/langchain";
import { startProvider, type Provider } from "../../../../../examples/local-provider/provider.ts";
import { ObservedLimiter } from "../observed-limiter.ts";

const [MODEL, PROMPT] = ["gpt-4.1-mini", "What is a token bucket?"];

const TOOLS = [
  {
    type: "function" as const,
    function: {
      name: "weather",
      parameters: { type: "object", properties: { city: { type: "string" } } },
    },
  },
];

/** What a scenario saw, besides what was charged. */
type Seen = Readonly<Record<string, unknown>>;

class Scenario {
  readonly provider: Provider;
  readonly observed: ObservedLimiter;
  readonly #before: number;

  constructor(provider: Provider, observed: ObservedLimiter) {
    this.provider = provider;
    this.observed = observed;
    this.#before = provider.requests.length;
  }

  /** How many requests reached the provider since the scenario began. */
  get requests(): number {
    return this.provider.requests.length - this.#before;
  }

  /** A model whose calls are limited, and whose answers the provider is told by headers. */
  model(
    wishes: Readonly<Record<string, string>> = {},
    { overrun, ...fields }: ChatOpenAIFields & { readonly overrun?: "stop" } = {},
  ): ChatOpenAI {
    const options = { ...this.observed.options, ...(overrun && { overrun }) };
    return new ChatOpenAI({
      model: MODEL,
      apiKey: "local",
      maxRetries: 0,
      configuration: {
        baseURL: `${this.provider.url}/v1`,
        defaultHeaders: { "x-local-call": randomUUID(), ...wishes },
      },
      callbacks: [limitCallbacks(options)],
      ...fields,
    });
  }
}

const SCENARIOS: Readonly<Record<string, (scenario: Scenario) => Promise<Seen>>> = {
  invoke: (scenario) => invoked(scenario.model()),

  "invoke without usage": (scenario) => invoked(scenario.model({ "x-local-fault": "no-usage" })),

  stream: (scenario) => streamed(scenario.model()),

  "stream without usage": (scenario) => streamed(scenario.model({ "x-local-fault": "no-usage" })),

  "stream of responses": (scenario) => streamed(scenario.model({}, { useResponsesApi: true })),

  async "calls of tools without usage"(scenario) {
    const wishes = { "x-local-tool-calls": "1", "x-local-fault": "no-usage" };
    const model = scenario.model(wishes).bindTools(TOOLS);
    const { tool_calls } = await model.invoke(PROMPT);
    for await (const _ of await model.stream(PROMPT));
    return { toolCalls: tool_calls?.length };
  },

  async batch(scenario) {
    const answers = await scenario.model().batch([PROMPT, PROMPT]);
    return { answers: answers.length };
  },

  async "500, then answered"(scenario) {
    const wishes = { "x-local-fault": "500 1" };
    const seen = await invoked(scenario.model(wishes, { maxRetries: 1 }));
    return { ...seen, requests: scenario.requests };
  },

  "429": (scenario) => invoked(scenario.model({ "x-local-fault": "429" })),

  "connection refused"(scenario) {
    const configuration = { baseURL: scenario.provider.refusedUrl };
    return invoked(scenario.model({}, { configuration }));
  },

  "no answer on a connection": (scenario) =>
    invoked(scenario.model({ "x-local-fault": "no-answer" })),

  "stream cut off": (scenario) => streamed(scenario.model({ "x-local-fault": "cut" })),

  "stream with an error event": (scenario) =>
    streamed(scenario.model({ "x-local-fault": "error-event" })),

  "aborted before": (scenario) => invoked(scenario.model(), AbortSignal.abort()),

  async "aborted without an answer"(scenario) {
    const controller = new AbortController();
    const seen = invoked(scenario.model({ "x-local-fault": "hang" }), controller.signal);
    while (scenario.requests === 0) await setImmediate();
    controller.abort();
    await scenario.observed.settled(1);
    return seen;
  },

  async "aborted while it streams"(scenario) {
    const controller = new AbortController();
    const options = { signal: controller.signal };
    const model = scenario.model({ "x-local-fault": "slow" });
    const reading = async (): Promise<void> => {
      let words = 0;
      for await (const { text } of await model.stream(PROMPT, options))
        if (text !== "" && (words += 1) === 3) controller.abort();
    };
    const error = await errorOf(reading());
    await scenario.observed.settled(1);
    return { error };
  },

  async "left by break"(scenario) {
    let words = 0;
    for await (const { text } of await scenario.model({ "x-local-answer": "2000" }).stream(PROMPT))
      if (text !== "" && (words += 1) === 5) break;
    await scenario.observed.untilSettled();
    return {};
  },

  async "never read"(scenario) {
    await scenario.model({ "x-local-answer": "2000" }).stream(PROMPT);
    await scenario.observed.untilSettled();
    return {};
  },

  async refused(scenario) {
    await scenario.observed.use(MODEL, 100);
    const { error } = await invoked(scenario.model({}, { maxRetries: 2 }));
    const { error: ofStream } = await streamed(scenario.model());
    return { error, ofStream, requests: scenario.requests };
  },

  async "stopped when nothing is left"(scenario) {
    const hungUp = scenario.provider.nextHangUp();
    const model = scenario.model({ "x-local-answer": "100000" }, { overrun: "stop" });
    const seen = await streamed(model);
    await hungUp;
    return { error: seen["error"], textBytes: Buffer.byteLength(String(seen["text"])) };
  },

  async "answered by a cache"(scenario) {
    const model = scenario.model({}, { cache: new InMemoryCache() });
    await model.invoke(PROMPT);
    return { ...(await invoked(model)), requests: scenario.requests };
  },

  async "one handler, given twice"(scenario) {
    const callbacks = [limitCallbacks(scenario.observed.options)];
    const { text } = await scenario.model({}, { callbacks }).invoke(PROMPT, { callbacks });
    return { text };
  },
};

async function invoked(model: ChatOpenAI, signal?: AbortSignal): Promise<Seen> {
  try {
    const { text } = await model.invoke(PROMPT, signal && { signal });
    return { text };
  } catch (error) {
    return { error: nameOf(error) };
  }
}

async function streamed(model: ChatOpenAI): Promise<Seen> {
  let text = "";
  const reading = async (): Promise<void> => {
    for await (const chunk of await model.stream(PROMPT)) text += chunk.text;
  };
  const error = await errorOf(reading());
  return { text, ...(error !== undefined && { error }) };
}

async function errorOf(answer: Promise<unknown>): Promise<string | undefined> {
  try {
    await answer;
    return undefined;
  } catch (error) {
    return nameOf(error);
  }
}

/** A refusal is one of ours by its class, not by its name. */
function nameOf(error: unknown): string {
  if (error instanceof RateLimitExceeded) return "our RateLimitExceeded";
  return error instanceof Error ? error.name : typeof error;
}

console.error = () => {}; // LangChain prints what callbacks throw
const provider = await startProvider();
const outcomes: Record<string, unknown> = {};
for (const [name, run] of Object.entries(SCENARIOS)) {
  const scenario = new Scenario(provider, await ObservedLimiter.open());
  try {
    const seen = await run(scenario);
    outcomes[name] = { ...seen, ...(await scenario.observed.charged(MODEL)) };
  } catch (error) {
    outcomes[name] = String(error);
  }
}
await provider.stop();
process.stdout.write(JSON.stringify(outcomes));
