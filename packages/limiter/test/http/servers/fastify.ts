import Fastify, { type FastifyInstance, type FastifyRequest } from "fastify";
import { answerRefusals, limiterPlugin } from "zae-limiter/fastify";
import { getLease } from "zae-limiter/http";
import { writeAnswer } from "./node-answer.ts";
import {
  listen,
  optionsFor,
  type Call,
  type CallOptions,
  type Handler,
  type RunningServer,
  type ServerAdapter,
} from "./server-adapter.ts";
import { http1, type Transport } from "./transport.ts";

export const fastifyServer = fastifyOver(http1);

/** Fastify 5, limited by the plugin. Pieces are written to the raw response. */
export function fastifyOver(transport: Transport): ServerAdapter {
  return {
    name: "Fastify",
    start: (middlewares, handler) => start(transport, middlewares, handler, () => false),
    startAnsweringRefusals: (handler) => start(transport, [], handler, answerRefusals),
  };
}

async function start(
  transport: Transport,
  middlewares: readonly CallOptions[],
  handler: Handler,
  answers: typeof answerRefusals,
): Promise<RunningServer> {
  const errors: unknown[] = [];
  const app: FastifyInstance = Fastify(transport.fastify);
  app.setErrorHandler((error, request, reply) => {
    if (answers(error, request, reply)) return;
    errors.push(error);
    reply.code(500).send();
  });
  for (const options of middlewares) {
    const { respondWith } = options;
    await app.register(limiterPlugin, {
      ...optionsFor(options, fastifyCall),
      ...(respondWith && { respond: respondWith }),
    });
  }
  app.all("*", async (request, reply) => {
    const answer = await handler(fastifyCall(request));
    if (typeof answer.body === "object") {
      reply.hijack();
      return writeAnswer(reply.raw, answer);
    }
    return reply
      .code(answer.status ?? 200)
      .headers(answer.headers ?? {})
      .send(answer.body ?? "");
  });
  await app.ready();
  return listen(app.server, errors);
}

function fastifyCall(request: FastifyRequest): Call {
  return {
    path: request.url,
    header: (name) => request.headers[name] as string | undefined,
    body: async () => String(request.body),
    lease: () => getLease(request),
  };
}
