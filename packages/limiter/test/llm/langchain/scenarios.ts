/*
 * Runs a chat model of LangChain with callbacks that limit it, against a provider on this machine,
 * and prints what became of each run, besides those of the matrix: `node scenarios.ts`. LangChain's
 * client of OpenAI needs a newer Node than the tests.
 */
import { randomUUID } from "node:crypto";
import { InMemoryCache } from "@langchain/core/caches";
import { ChatOpenAI, type ChatOpenAIFields } from "@langchain/openai";
import { RateLimitExceeded } from "zae-limiter";
import { limitCallbacks } from "zae-limiter/langchain";
import { startProvider, type Provider } from "../../../../../examples/local-provider/provider.ts";
import { meteredCalls, tell, type MeteredCalls } from "../metered-calls.ts";

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
  readonly calls: MeteredCalls;
  readonly #before: number;

  constructor(provider: Provider, calls: MeteredCalls) {
    this.provider = provider;
    this.calls = calls;
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
    const options = { ...this.calls.options, ...(overrun && { overrun }) };
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
  "stream of responses": (scenario) => stream(scenario.model({}, { useResponsesApi: true })),

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

  async refused(scenario) {
    await scenario.calls.use(MODEL, { rpm: 100 });
    const { error } = await invoke(scenario.model({}, { maxRetries: 2 }));
    const { error: ofStream } = await stream(scenario.model());
    return { error, ofStream, requests: scenario.requests };
  },

  async "stopped when nothing is left"(scenario) {
    await scenario.calls.use(MODEL, { tpm: 9000 });
    const hungUp = scenario.provider.nextHangUp();
    const model = scenario.model({ "x-local-answer": "100000" }, { overrun: "stop" });
    const seen = await stream(model);
    await hungUp;
    return { error: seen["error"], textBytes: Buffer.byteLength(String(seen["text"])) };
  },

  async "answered by a cache"(scenario) {
    const model = scenario.model({}, { cache: new InMemoryCache() });
    await model.invoke(PROMPT);
    return { ...(await invoke(model)), requests: scenario.requests };
  },

  async "one handler, given twice"(scenario) {
    const callbacks = [limitCallbacks(scenario.calls.options)];
    const { text } = await scenario.model({}, { callbacks }).invoke(PROMPT, { callbacks });
    return { text };
  },
};

async function invoke(model: ChatOpenAI): Promise<Seen> {
  try {
    const { text } = await model.invoke(PROMPT);
    return { text };
  } catch (error) {
    return { error: getName(error) };
  }
}

async function stream(model: ChatOpenAI): Promise<Seen> {
  let text = "";
  const reading = async (): Promise<void> => {
    for await (const chunk of await model.stream(PROMPT)) text += chunk.text;
  };
  const error = await catchError(reading());
  return { text, ...(error !== undefined && { error }) };
}

async function catchError(answer: Promise<unknown>): Promise<string | undefined> {
  try {
    await answer;
    return undefined;
  } catch (error) {
    return getName(error);
  }
}

/** A refusal is one of ours by its class, not by its name. */
function getName(error: unknown): string {
  if (error instanceof RateLimitExceeded) return "our RateLimitExceeded";
  return error instanceof Error ? error.name : typeof error;
}

console.error = () => {}; // LangChain prints what callbacks throw
const provider = await startProvider();
const outcomes: Record<string, unknown> = {};
for (const [name, run] of Object.entries(SCENARIOS)) {
  const calls = await meteredCalls();
  try {
    const seen = await run(new Scenario(provider, calls));
    const taken = await calls.taken(MODEL);
    outcomes[name] = { ...seen, ...taken, calls: calls.records.map(tell) };
  } catch (error) {
    outcomes[name] = String(error);
  }
}
await provider.stop();
process.stdout.write(JSON.stringify(outcomes));
