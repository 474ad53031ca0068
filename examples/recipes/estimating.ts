// Compares estimates with what was really used. In English, a byte is about a quarter of a token.
// The answer has at most `max_completion_tokens`.
import OpenAI from "openai";
import { Limit, RateLimiter } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";

type Messages = OpenAI.ChatCompletionMessageParam[];

const MODEL = "gpt-4.1-mini";
/** What the chat format adds to each message: its role, and where it begins and ends. */
const TOKENS_PER_MESSAGE = 4;

const openai = new OpenAI();
const repository = new MemoryRepository();
await repository.setSystemDefaults([Limit.perMinute("rpm", 60), Limit.perMinute("tpm", 20_000)]);
const limiter = new RateLimiter({ repository });

/** The most that a call will use, more or less. What it does not use is given back. */
function estimateTokens(messages: Messages, maxTokens: number): number {
  const bytes = messages.reduce((sum, { content }) => sum + countBytes(content), 0);
  return Math.ceil(bytes / 4) + messages.length * TOKENS_PER_MESSAGE + maxTokens;
}

function countBytes(content: Messages[number]["content"]): number {
  return Buffer.byteLength(typeof content === "string" ? content : JSON.stringify(content ?? ""));
}

async function ask(entityId: string, messages: Messages, maxTokens: number): Promise<void> {
  const estimate = estimateTokens(messages, maxTokens);
  const request = { entityId, resource: MODEL, consume: { rpm: 1, tpm: estimate } };
  await limiter.acquire(request, async (lease) => {
    const { usage } = await openai.chat.completions.create({
      model: MODEL,
      max_completion_tokens: maxTokens,
      messages,
    });
    lease.settle({ tpm: usage?.total_tokens });
    const real = lease.consumed.tpm ?? 0;
    const rest =
      real > estimate ? `${real - estimate} more taken` : `${estimate - real} given back`;
    console.log(`estimated ${estimate}, used ${real}: ${rest}`);
  });
}

const system = { role: "system", content: "Answer in one sentence." } as const;
await ask("key-ann", [system, { role: "user", content: "What is a token bucket?" }], 50);
await ask("key-ann", [system, { role: "user", content: "什么是令牌桶?" }], 50);
await ask("key-ann", [{ role: "user", content: "What is a lease?" }], 1_000);
