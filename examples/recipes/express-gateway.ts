// An Express server in front of OpenAI: 429 with Retry-After for a call that does not fit.
import { createHash } from "node:crypto";
import type { AddressInfo } from "node:net";
import express, { type ErrorRequestHandler } from "express";
import OpenAI from "openai";
import { Limit, RateLimiter, RateLimiterUnavailable, RateLimitExceeded } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";

const MODEL = "gpt-4.1-mini";
const MAX_TOKENS = 200;

const openai = new OpenAI();
const repository = new MemoryRepository(); // or: await SqliteRepository.open("limits.db")
await repository.setSystemDefaults([Limit.perMinute("rpm", 20), Limit.perMinute("tpm", 20_000)]);
const limiter = new RateLimiter({ repository });

const app = express();
app.use(express.json());

app.post("/chat", async (request, response) => {
  const { question } = (request.body ?? {}) as { question?: string };
  if (!question) {
    response.status(400).json({ error: "Send JSON with a question." });
    return;
  }
  const estimate = Math.ceil(Buffer.byteLength(question) / 4) + MAX_TOKENS;
  const entityId = entityOf(request.get("authorization") ?? request.ip ?? "");
  const answer = await limiter.acquire(
    { entityId, resource: MODEL, consume: { rpm: 1, tpm: estimate } },
    async (lease) => {
      const completion = await openai.chat.completions.create({
        model: MODEL,
        max_completion_tokens: MAX_TOKENS,
        messages: [{ role: "user", content: question }],
      });
      lease.settle({ tpm: completion.usage?.total_tokens });
      return completion.choices[0]?.message.content;
    },
  );
  response.json({ answer });
});

const onError: ErrorRequestHandler = (error, _request, response, next) => {
  if (error instanceof RateLimitExceeded) {
    if (error.retryAfterHeader !== undefined) response.set("Retry-After", error.retryAfterHeader);
    response.status(429).json(error.toJSON());
  } else if (error instanceof RateLimiterUnavailable) {
    response.status(503).json({ error: "The rate limiter is unavailable." });
  } else next(error);
};
app.use(onError);

/** Ids hold only letters, digits and _ . - : @, and a key is a secret: a hash solves both. */
function entityOf(credential: string): string {
  return createHash("sha256").update(credential).digest("hex");
}

const server = app.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => {
  console.log(`Listening on http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
