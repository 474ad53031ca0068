import type { IncomingMessage, ServerResponse } from "node:http";
import { limitListener } from "zae-limiter/http";
import { nodeCall, writeAnswer } from "./node-answer.ts";
import {
  listen,
  optionsFor,
  type CallOptions,
  type Handler,
  type RunningServer,
  type ServerAdapter,
} from "./server-adapter.ts";
import { http1, type Transport } from "./transport.ts";

export const nodeListener = listenerOver(http1, "node:http");

/** A plain listener. The innermost one answers its own errors with 500. */
export function listenerOver(transport: Transport, name = "limitListener"): ServerAdapter {
  return { name, start };

  function start(middlewares: readonly CallOptions[], handler: Handler): Promise<RunningServer> {
    const errors: unknown[] = [];
    let listener = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      try {
        await writeAnswer(response, await handler(nodeCall(request)));
      } catch (error) {
        errors.push(error);
        response.statusCode = 500;
        response.end();
      }
    };
    for (const options of middlewares.toReversed()) {
      const { respondWith } = options;
      const limited = limitListener(
        {
          ...optionsFor(options, nodeCall),
          onError: (error) => errors.push(error),
          ...(respondWith && {
            respond: (refusal, _request, response) => response.end(respondWith(refusal)),
          }),
        },
        listener,
      );
      listener = async (request, response) => limited(request, response);
    }
    return listen(transport.create(listener), errors);
  }
}
