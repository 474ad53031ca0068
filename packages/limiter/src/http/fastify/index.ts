import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from "fastify";
import type { HttpLimitOptions } from "../options.ts";

/** The frame's placeholder: branch `fastify` replaces it. */
export const limiterPlugin: FastifyPluginAsync<
  HttpLimitOptions<FastifyRequest> & {
    readonly hook?: "onRequest" | "preParsing" | "preValidation" | "preHandler";
  }
> = async () => {};

/** The frame's placeholder: branch `fastify` replaces it. */
export function limitRequests(
  _options: HttpLimitOptions<FastifyRequest>,
): (request: FastifyRequest, reply: FastifyReply) => Promise<unknown> {
  return async () => undefined;
}

/** The frame's placeholder: branch `fastify` replaces it. */
export function answerRefusals(
  _error: unknown,
  _request: FastifyRequest,
  _reply: FastifyReply,
): boolean {
  return false;
}
