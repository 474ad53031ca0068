// A chat server: Express, the AI SDK, and limits for each key and for the team above the keys.
import { AsyncLocalStorage } from "node:async_hooks";
import { createOpenAI } from "@ai-sdk/openai";
import { streamText, wrapLanguageModel } from "ai";
import express, { type Express, type Request, type Response } from "express";
import { Limit, RateLimiter, type Repository } from "zae-limiter";
import { limitLanguageModel } from "zae-limiter/ai-sdk";
import { answerRefusals } from "zae-limiter/express";
import { hashedId } from "zae-limiter/http";
import { METERING } from "zae-limiter/llm";

export const MODEL = "gpt-5-mini";
export const TEAM = "team-blue";

/** Stores the limits: every key has its own, and the team has one pool for all of its keys. */
export async function storeLimits(repository: Repository, keys: readonly string[]): Promise<void> {
  await repository.setSystemDefaults([Limit.perMinute("rpm", 20), Limit.perMinute("tpm", 3_000)]);
  await repository.ensureEntity(TEAM);
  await repository.setLimits(TEAM, [Limit.perMinute("rpm", 30), Limit.perMinute("tpm", 4_000)]);
  for (const key of keys)
    await repository.ensureEntity(hashedId("key", key), { parentId: TEAM, cascade: true });
}

/** The server. The key of a request is charged, and the team with it. */
export function chatServer(repository: Repository, keys: readonly string[]): Express {
  const limiter = new RateLimiter({ repository });
  // Model calls happen deep inside the AI SDK; this tells them for whom.
  const caller = new AsyncLocalStorage<string>();
  const model = wrapLanguageModel({
    model: createOpenAI().chat(MODEL), // reads OPENAI_API_KEY and OPENAI_BASE_URL
    middleware: limitLanguageModel({
      limiter,
      entity: () => caller.getStore()!,
      metering: METERING.openai,
      specificationVersion: "v3",
    }),
  });

  const app = express();
  app.post("/chat", express.text({ type: "*/*" }), (request, response, next) => {
    const key = request.header("authorization")?.replace(/^Bearer /i, "") ?? "";
    // A key that was never issued would have limits of its own.
    if (!keys.includes(key)) response.status(401).send("No such key.\n");
    // Secrets never become ids.
    else caller.run(hashedId("key", key), () => chat(request, response)).catch(next);
  });
  app.use(answerRefusals); // 429 with Retry-After
  return app;

  async function chat(request: Request, response: Response): Promise<void> {
    const hangUp = new AbortController();
    response.on("close", () => hangUp.abort());
    const prompt = String(request.body);
    const answer = streamText({ model, prompt, abortSignal: hangUp.signal, onError: () => {} });
    for await (const part of answer.fullStream) {
      if (part.type === "error") throw part.error; // a refusal comes before any text
      if (part.type === "text-delta") response.write(part.text);
    }
    response.end();
  }
}
