// An Express server in front of OpenAI: limits by key, 429 with Retry-After, and the real cost.
import type { AddressInfo } from "node:net";
import express, { type RequestHandler } from "express";
import OpenAI from "openai";
import { Limit, RateLimiter } from "zae-limiter";
import { limitRequests } from "zae-limiter/express";
import { clientAddress, giveBackFailures, hashedId, getLease } from "zae-limiter/http";
import { MemoryRepository } from "zae-limiter/memory";

const MODEL = "gpt-4.1-mini";
const MAX_TOKENS = 200;

const openai = new OpenAI();
const repository = new MemoryRepository(); // or: await SqliteRepository.open("limits.db")
await repository.setSystemDefaults([Limit.perMinute("rpm", 20), Limit.perMinute("tpm", 20_000)]);
const limiter = new RateLimiter({ repository });

const needsQuestion: RequestHandler = (request, response, next) => {
  if (request.body?.question) next();
  else response.status(400).json({ error: "Send JSON with a question." });
};

const limit = limitRequests({
  limiter,
  entity: (request) => {
    const key = request.get("authorization");
    return key === undefined ? clientAddress(request) : hashedId("key", key);
  },
  resource: MODEL,
  consume: ({ body }) => ({
    rpm: 1,
    tpm: Math.ceil(Buffer.byteLength(body.question) / 4) + MAX_TOKENS,
  }),
  settle: giveBackFailures,
  headers: { style: ["ietf", "openai"] },
});

const app = express();
app.post("/chat", express.json(), needsQuestion, limit, async (request, response) => {
  const completion = await openai.chat.completions.create({
    model: MODEL,
    max_completion_tokens: MAX_TOKENS,
    messages: [{ role: "user", content: request.body.question }],
  });
  getLease(request)?.settle({ tpm: completion.usage?.total_tokens });
  response.json({ answer: completion.choices[0]?.message.content });
});

const server = app.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => {
  console.log(`Listening on http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
