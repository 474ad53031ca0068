// Limits OpenAI calls by key and by team: the keys of a team share the team's limits.
import OpenAI from "openai";
import { Limit, RateLimiter, RateLimitExceeded } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";

const MODEL = "gpt-4.1-mini";
const MAX_TOKENS = 200;

const openai = new OpenAI(); // reads OPENAI_API_KEY
const repository = new MemoryRepository(); // or: await SqliteRepository.open("limits.db")
const limiter = new RateLimiter({ repository });

// What every key may use in a minute, and what the team may use with all of its keys.
await repository.setSystemDefaults([Limit.perMinute("rpm", 60), Limit.perMinute("tpm", 20_000)]);
await repository.ensureEntity("team-blue");
await repository.setLimits("team-blue", [
  Limit.perMinute("rpm", 100),
  Limit.perMinute("tpm", 50_000),
]);
await repository.ensureEntity("key-ann", { parentId: "team-blue", cascade: true });
await repository.ensureEntity("key-bob", { parentId: "team-blue", cascade: true });

async function ask(key: string, question: string): Promise<string> {
  const estimate = Math.ceil(Buffer.byteLength(question) / 4) + MAX_TOKENS;
  const request = { entityId: key, resource: MODEL, consume: { rpm: 1, tpm: estimate } };
  return limiter.acquire(request, async (lease) => {
    const completion = await openai.chat.completions.create({
      model: MODEL,
      max_completion_tokens: MAX_TOKENS,
      messages: [{ role: "user", content: question }],
    });
    lease.settle({ tpm: completion.usage?.total_tokens });
    return completion.choices[0]?.message.content ?? "";
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
  console.log(`${entityId}  requests: ${requests}  tokens: ${total.tpm}`);
}
