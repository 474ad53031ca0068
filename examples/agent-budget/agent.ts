// An agent with a budget in money: a loop of model calls and tools that ends when it is spent.
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, jsonSchema, stepCountIs, tool, wrapLanguageModel } from "ai";
import { Limit, RateLimiter, RateLimitExceeded, type Repository } from "zae-limiter";
import { limitLanguageModel } from "zae-limiter/ai-sdk";
import { simpleEstimator, type Metering, type MeteredRecord } from "zae-limiter/llm";

const MODEL = "gpt-5-mini";
const MAX_STEPS = 100;

/** Millionths of a dollar for a token, which is dollars for a million tokens. */
const PRICES: Metering = {
  usd_micros: { input: 0.25, cachedInput: 0.025, cacheWriteInput: 0.25, output: 2 },
};

/** Stores the budget of a session. Hardly any of it comes back: one millionth in ten years. */
export async function storeBudget(
  repository: Repository,
  session: string,
  usdMicros: number,
): Promise<void> {
  const refill = { refillAmount: 1, refillPeriodSeconds: 10 * 365 * 86_400 };
  const budget = Limit.custom({ name: "usd_micros", capacity: usdMicros, ...refill });
  await repository.setLimits(session, [budget]);
}

/** What an agent did before it came to an end. */
export interface Outcome {
  readonly steps: readonly MeteredRecord[];
  /** Why it stopped; undefined if it finished its work. */
  readonly refusal: RateLimitExceeded | undefined;
  readonly leftUsdMicros: number;
}

/** Lets an agent work until it is done or its budget is spent. */
export async function runAgent(
  repository: Repository,
  session: string,
  task: string,
  headers: Record<string, string> = {},
): Promise<Outcome> {
  const limiter = new RateLimiter({ repository });
  const steps: MeteredRecord[] = [];
  const model = wrapLanguageModel({
    model: createOpenAI().chat(MODEL), // reads OPENAI_API_KEY and OPENAI_BASE_URL
    middleware: limitLanguageModel({
      limiter,
      entity: session,
      metering: PRICES,
      estimator: simpleEstimator({ output: "max" }), // an answer cannot cost more than is taken for it
      onSettled: (record) => steps.push(record),
      specificationVersion: "v3",
    }),
  });
  const search = tool({
    description: "Searches the web.",
    inputSchema: jsonSchema<{ readonly query: string }>({
      type: "object",
      properties: { query: { type: "string" } },
      required: ["query"],
    }),
    execute: ({ query }) => `Nothing was found for "${query}". Try other words.`,
  });

  let refusal: RateLimitExceeded | undefined;
  try {
    const stopWhen = stepCountIs(MAX_STEPS);
    const tools = { search };
    await generateText({ model, prompt: task, tools, stopWhen, maxOutputTokens: 60, headers });
  } catch (error) {
    if (!(error instanceof RateLimitExceeded)) throw error;
    refusal = error; // each step is a call of its own, so the steps before it stay done
  }
  const { usd_micros: leftUsdMicros = 0 } = await limiter.available(session, MODEL);
  return { steps, refusal, leftUsdMicros };
}
