/* Our types beside Fastify's own. Compiled by `tsc -b`; nothing here runs. */
import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from "fastify";
import { expectTypeOf } from "vitest";
import type { RateLimiter } from "zae-limiter";
import { answerRefusals, limiterPlugin, limitRequests } from "zae-limiter/fastify";
import { getLease } from "zae-limiter/http";

declare const app: FastifyInstance;
declare const limiter: RateLimiter;
const common = { limiter, resource: "chat", consume: { rpm: 1 } };

// The options of a plugin know the request, without an annotation.
app.register(limiterPlugin, {
  ...common,
  hook: "preHandler",
  entity: (request) => {
    expectTypeOf(request).toEqualTypeOf<FastifyRequest>();
    return request.ip;
  },
  respond: (refusal, _request, reply) => {
    expectTypeOf(reply).toEqualTypeOf<FastifyReply>();
    return { retry: refusal.retryAfterSeconds };
  },
});
// @ts-expect-error: the limiter is missing
app.register(limiterPlugin, { resource: "chat", consume: { rpm: 1 }, entity: () => "key-1" });
// @ts-expect-error: there is no such hook
app.register(limiterPlugin, { ...common, entity: () => "key-1", hook: "onSend" });

const limit = limitRequests({ ...common, entity: (request) => request.headers.authorization });
expectTypeOf(limit).toExtend<onRequestHookHandler>();

// A route behind the limit keeps the types of its own request, in every hook.
interface Chat {
  Body: { readonly prompt: string };
  Params: { readonly id: string };
}
app.post<Chat>("/chat/:id", { onRequest: limit }, async ({ body, params }) => {
  expectTypeOf(body.prompt).toEqualTypeOf<string>();
  return params.id;
});
app.post<Chat>(
  "/chats/:id",
  { preParsing: [limit], preValidation: [limit], preHandler: [limit] },
  (request, reply) => {
    getLease(request)?.settle({ rpm: request.body.prompt.length });
    reply.send("ok");
  },
);
app.addHook("onRequest", limit);

app.setErrorHandler((error, request, reply) => {
  expectTypeOf(answerRefusals(error, request, reply)).toEqualTypeOf<boolean>();
});
