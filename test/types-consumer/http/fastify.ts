// A server with Fastify. The types of its routes must not be lost behind a limit.
import Fastify, { type FastifyInstance, type FastifyRequest } from "fastify";
import type { RateLimiter } from "zae-limiter";
import { answerRefusals, limiterPlugin, limitRequests } from "zae-limiter/fastify";
import { clientAddress } from "zae-limiter/http";
import { typeOf } from "./same.ts";

/** A server whose routes are limited. */
export async function server(limiter: RateLimiter): Promise<FastifyInstance> {
  const app = Fastify();
  const options = {
    limiter,
    entity: (request: FastifyRequest) => clientAddress(request),
    resource: "web",
    consume: { rpm: 1 },
  };
  await app.register(limiterPlugin, { ...options, hook: "preHandler" });
  await app.register(limiterPlugin, {
    ...options,
    entity: (request) => {
      typeOf(request).is<FastifyRequest>(true);
      typeOf(request.ip).is<string>(true);
      return request.ip;
    },
    settle: ({ request, status }) => {
      typeOf(request.id).is<string>(true);
      return status >= 500 ? "give-back" : undefined;
    },
  });
  const limit = limitRequests({
    limiter,
    entity: (request) => {
      typeOf(request).is<FastifyRequest>(true);
      return request.headers.authorization;
    },
    resource: "web",
    consume: { rpm: 1 },
  });
  app.get<{ Params: { id: string }; Querystring: { page: number } }>(
    "/users/:id",
    { onRequest: limit },
    async (request, reply) => {
      typeOf(request.params.id).is<string>(true);
      typeOf(request.query.page).is<number>(true);
      typeOf(reply.statusCode).is<number>(true);
      return request.params.id;
    },
  );
  app.route<{ Body: { question: string }; Reply: { answer: string } }>({
    method: "POST",
    url: "/questions",
    preHandler: [limit],
    handler: async (request) => {
      typeOf(request.body.question).is<string>(true);
      return { answer: request.body.question };
    },
  });
  app.addHook("preHandler", limit);
  app.setErrorHandler((error, request, reply) => {
    typeOf(answerRefusals(error, request, reply)).is<boolean>(true);
  });
  return app;
}
