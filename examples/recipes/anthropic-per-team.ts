// Limits Anthropic calls by key and by team, with separate limits for input and output tokens.
import Anthropic from "@anthropic-ai/sdk";
import { Limit, RateLimiter, RateLimitExceeded } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";

const MODEL = "claude-haiku-4-5";
const MAX_TOKENS = 200;

const anthropic = new Anthropic(); // reads ANTHROPIC_API_KEY
const repository = new MemoryRepository(); // or: await SqliteRepository.open("limits.db")
const limiter = new RateLimiter({ repository });

// Requests, input tokens and output tokens per minute: of every key, and of the whole team.
const limits = (rpm: number, itpm: number, otpm: number): Limit[] => [
  Limit.perMinute("rpm", rpm),
  Limit.perMinute("itpm", itpm),
  Limit.perMinute("otpm", otpm),
];
await repository.setSystemDefaults(limits(50, 20_000, 4_000));
await repository.ensureEntity("team-blue");
await repository.setLimits("team-blue", limits(100, 50_000, 10_000));
await repository.ensureEntity("key-ann", { parentId: "team-blue", cascade: true });
await repository.ensureEntity("key-bob", { parentId: "team-blue", cascade: true });

async function ask(key: string, question: string): Promise<string> {
  const estimate = { itpm: Math.ceil(Buffer.byteLength(question) / 4), otpm: MAX_TOKENS };
  const request = { entityId: key, resource: MODEL, consume: { rpm: 1, ...estimate } };
  return limiter.acquire(request, async (lease) => {
    const message = await anthropic.messages.create({
      model: MODEL,
      max_tokens: MAX_TOKENS,
      messages: [{ role: "user", content: question }],
    });
    const { input_tokens, output_tokens, cache_creation_input_tokens } = message.usage;
    lease.settle({ itpm: input_tokens + (cache_creation_input_tokens ?? 0), otpm: output_tokens });
    return message.content.map((block) => (block.type === "text" ? block.text : "")).join("");
  });
}

try {
  console.log(await ask("key-ann", "What is a token bucket?"));
  console.log(await ask("key-bob", "What is a lease?"));
} catch (error) {
  if (!(error instanceof RateLimitExceeded)) throw error;
  console.log(`Retry in ${error.retryAfterHeader} s: ${error.message}`);
}

for (const entityId of ["key-ann", "key-bob", "team-blue"]) {
  const { requests, total } = await repository.getUsageSummary({ entityId });
  console.log(`${entityId}  requests: ${requests}  input: ${total.itpm}  output: ${total.otpm}`);
}
