// A Hono server that streams answers from OpenAI: limits by key and by team, 429 with Retry-After,
// what is left in the headers, and clients that hang up pay for what they got.
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { streamText } from "hono/streaming";
import OpenAI from "openai";
import { Limit, RateLimiter, RateLimiterUnavailable, RateLimitExceeded } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";

const MODEL = "gpt-4.1-mini";
const MAX_TOKENS = 200;
const KEYS = ["key-ann", "key-bob"];

const openai = new OpenAI();
const repository = new MemoryRepository(); // or: await SqliteRepository.open("limits.db")
await repository.setSystemDefaults([Limit.perMinute("rpm", 20), Limit.perMinute("tpm", 20_000)]);
await repository.ensureEntity("team-blue");
await repository.setLimits("team-blue", [
  Limit.perMinute("rpm", 30),
  Limit.perMinute("tpm", 30_000),
]);
for (const key of KEYS)
  await repository.ensureEntity(key, { parentId: "team-blue", cascade: true });
const limiter = new RateLimiter({ repository });

const tokensIn = (text: string): number => Math.ceil(Buffer.byteLength(text) / 4);
const app = new Hono();

app.post("/chat", async (context) => {
  const entityId = context.req.header("authorization")?.replace("Bearer ", "") ?? "";
  if (!KEYS.includes(entityId)) return context.json({ error: "Unknown key." }, 401);
  const { question } = await context.req.json<{ question?: string }>();
  if (!question) return context.json({ error: "Send JSON with a question." }, 400);
  const consume = { rpm: 1, tpm: tokensIn(question) + MAX_TOKENS };
  const lease = await limiter.acquire({ entityId, resource: MODEL, consume });
  const chunks = await openai.chat.completions
    .create({
      model: MODEL,
      max_completion_tokens: MAX_TOKENS,
      messages: [{ role: "user", content: question }],
      stream: true,
      stream_options: { include_usage: true },
    })
    .catch(async (error: unknown) => {
      await lease.rollback();
      throw error;
    });

  // What is left, of the key or of its team, whichever is less. Costs no request.
  const left: Record<string, number> = {};
  for (const { limitName, available } of await lease.statuses())
    left[limitName] = Math.min(left[limitName] ?? available, available);
  for (const [limitName, available] of Object.entries(left))
    context.header(`x-ratelimit-remaining-${limitName}`, String(available));

  return streamText(context, async (output) => {
    output.onAbort(() => chunks.controller.abort()); // the client hung up: stop the provider too
    let answer = "";
    let used: number | undefined;
    try {
      for await (const chunk of chunks) {
        const text = chunk.choices[0]?.delta.content ?? "";
        answer += text;
        used = chunk.usage?.total_tokens ?? used;
        await output.write(text);
      }
    } finally {
      lease.settle({ tpm: used ?? tokensIn(question) + tokensIn(answer) });
      console.log(`${entityId}: estimated ${consume.tpm} tokens, settled ${lease.consumed.tpm}`);
      await lease.commit();
    }
  });
});

app.onError((error, context) => {
  if (error instanceof RateLimitExceeded) {
    if (error.retryAfterHeader !== undefined) context.header("Retry-After", error.retryAfterHeader);
    return context.json(error.toJSON(), 429);
  }
  if (error instanceof RateLimiterUnavailable)
    return context.json({ error: "The rate limiter is unavailable." }, 503);
  console.error(error);
  return context.json({ error: "The call failed." }, 502);
});

serve({ fetch: app.fetch, hostname: "127.0.0.1", port: Number(process.env.PORT ?? 3000) }, (info) =>
  console.log(`Listening on http://127.0.0.1:${info.port}`),
);
