// app/api/chat/route.ts: a route handler of Next.js with limits, settled after the response.
import { after } from "next/server";
import { Limit, RateLimiter } from "zae-limiter";
import { giveBackFailures, hashedId, getLease, limitHandler } from "zae-limiter/http";
import { openRepository } from "zae-limiter/open";

// Where functions run on many machines, set for instance LIMITS=dynamodb://eu-west-1/limits.
const repository = await openRepository(process.env.LIMITS ?? "memory:");
await repository.setResourceDefaults("chat", [Limit.perDay("rpm", 3), Limit.perDay("tpm", 2000)]);
const limiter = new RateLimiter({ repository });

export const POST = limitHandler(
  {
    limiter,
    entity: (request) => hashedId("key", request.headers.get("authorization") ?? ""),
    resource: "chat",
    consume: { rpm: 1, tpm: 500 },
    settle: giveBackFailures,
    waitUntil: after, // the platform keeps the function alive until the lease is settled
  },
  async (request) => {
    const { question } = (await request.json()) as { question?: string };
    if (!question) return Response.json({ error: "Send JSON with a question." }, { status: 400 });
    const answer = `You asked: ${question}`; // stands for a model call
    getLease(request)?.settle({ tpm: question.length + answer.length });
    return Response.json({ answer });
  },
);
