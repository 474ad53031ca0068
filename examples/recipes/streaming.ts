// Streams an answer. However the stream ends, what was used is settled: by the provider's count if
// it arrived, and otherwise by what was read until the reader went away.
import OpenAI from "openai";
import { Limit, RateLimiter } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";

const MODEL = "gpt-4.1-mini";
const MAX_TOKENS = 200;

const openai = new OpenAI();
const limiter = new RateLimiter({
  repository: new MemoryRepository(),
  defaults: [Limit.perMinute("rpm", 60), Limit.perMinute("tpm", 20_000)],
});

const tokensIn = (text: string): number => Math.ceil(Buffer.byteLength(text) / 4);

async function* stream(key: string, question: string): AsyncGenerator<string> {
  const estimate = tokensIn(question) + MAX_TOKENS;
  const request = { entityId: key, resource: MODEL, consume: { rpm: 1, tpm: estimate } };
  const lease = await limiter.acquire(request); // no callback: the stream outlives any function
  const chunks = await openai.chat.completions
    .create({
      model: MODEL,
      max_completion_tokens: MAX_TOKENS,
      messages: [{ role: "user", content: question }],
      stream: true,
      stream_options: { include_usage: true }, // without it, no chunk has a usage
    })
    .catch(async (error: unknown) => {
      await lease.rollback(); // the provider did nothing
      throw error;
    });

  let answer = "";
  let used: number | undefined;
  try {
    for await (const chunk of chunks) {
      const text = chunk.choices[0]?.delta.content ?? "";
      answer += text;
      used = chunk.usage?.total_tokens ?? used; // in the last chunk only
      if (text !== "") yield text;
    }
  } finally {
    // Also runs when the reader stops early. The client then aborts the request by itself.
    lease.settle({ tpm: used ?? tokensIn(question) + tokensIn(answer) });
    console.log(`\nEstimated ${estimate} tokens, settled ${lease.consumed.tpm}.`);
    await lease.commit();
  }
}

for await (const text of stream("key-ann", "What is a token bucket?")) process.stdout.write(text);

// A reader that goes away in the middle.
let pieces = 0;
for await (const text of stream("key-ann", "Write slowly about leases.")) {
  process.stdout.write(text);
  pieces += 1;
  if (pieces === 3) break;
}
