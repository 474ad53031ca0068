// A tRPC server with limits: what a procedure takes is given back if the procedure fails.
import type { AddressInfo } from "node:net";
import { initTRPC, TRPCError } from "@trpc/server";
import { createHTTPServer, type CreateHTTPContextOptions } from "@trpc/server/adapters/standalone";
import { Limit, RateLimiter, RateLimiterUnavailable, RateLimitExceeded } from "zae-limiter";
import { clientAddress, hashedId, rateLimitHeaders, refusalProblem } from "zae-limiter/http";
import { MemoryRepository } from "zae-limiter/memory";

const repository = new MemoryRepository(); // or: await SqliteRepository.open("limits.db")
await repository.setSystemDefaults([Limit.perDay("requests", 3), Limit.perDay("tokens", 1000)]);
const limiter = new RateLimiter({ repository });

function createContext({ req }: CreateHTTPContextOptions) {
  const key = req.headers.authorization;
  return { entityId: key === undefined ? clientAddress(req) : hashedId("key", key) };
}

const t = initTRPC.context<typeof createContext>().create();

const limitedProcedure = t.procedure.use(async ({ ctx, path, next }) => {
  const call = { entityId: ctx.entityId, resource: path, consume: { requests: 1, tokens: 100 } };
  try {
    return await limiter.acquire(call, async (lease) => {
      const result = await next({ ctx: { lease } });
      if (!result.ok) throw result.error; // next() throws nothing, and acquire must see it
      return result;
    });
  } catch (error) {
    throw answerTo(error);
  }
});

const appRouter = t.router({
  ask: limitedProcedure
    .input((question): string => {
      if (typeof question === "string" && question !== "") return question;
      throw new TRPCError({ code: "BAD_REQUEST", message: "Send a question." });
    })
    .mutation(({ input, ctx }) => {
      const answer = `You asked: ${input}`; // stands for a model call
      ctx.lease.settle({ tokens: input.length + answer.length });
      return answer;
    }),
});
export type AppRouter = typeof appRouter;

/** A refusal as tRPC's own error. Its message names no entity, and clients may see it. */
function answerTo(error: unknown): unknown {
  if (error instanceof RateLimitExceeded) {
    const message = refusalProblem(error).detail;
    return new TRPCError({ code: "TOO_MANY_REQUESTS", message, cause: error });
  }
  if (error instanceof RateLimiterUnavailable)
    return new TRPCError({ code: "SERVICE_UNAVAILABLE", message: "Retry later.", cause: error });
  return error;
}

const server = createHTTPServer({
  router: appRouter,
  createContext,
  responseMeta({ errors }) {
    const refusal = errors.map(({ cause }) => cause).find((it) => it instanceof RateLimitExceeded);
    if (refusal === undefined) return {};
    return { headers: rateLimitHeaders(refusal.statuses, { nowMs: Date.now() }) };
  },
});
server.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () =>
  console.log(`Listening on http://127.0.0.1:${(server.address() as AddressInfo).port}`),
);
