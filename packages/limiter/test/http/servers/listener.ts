import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { limitListener } from "zae-limiter/http";
import { nodeCall, writeAnswer } from "./node-answer.ts";
import { listen, optionsFor, type ServerAdapter } from "./server-adapter.ts";

/** Plain node:http. The innermost listener answers its own errors with 500. */
export const nodeListener: ServerAdapter = {
  name: "node:http",
  start(middlewares, handler) {
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
    return listen(createServer(listener), errors);
  },
};
