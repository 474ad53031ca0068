import { createServer } from "node:http";
import express, { type ErrorRequestHandler, type RequestHandler } from "express";
import express4 from "express-4";
import { answerRefusals, limitRequests } from "zae-limiter/express";
import { nodeCall, writeAnswer } from "./node-answer.ts";
import {
  listen,
  optionsFor,
  type CallOptions,
  type Handler,
  type RunningServer,
  type ServerAdapter,
} from "./server-adapter.ts";

export const express5Server = buildAdapter("Express 5", express);
export const express4Server = buildAdapter("Express 4", express4);

function buildAdapter(name: string, create: typeof express): ServerAdapter {
  function start(
    handlers: readonly RequestHandler[],
    onError: readonly ErrorRequestHandler[],
    handler: Handler,
  ): Promise<RunningServer> {
    const errors: unknown[] = [];
    const app = create();
    for (const each of handlers) app.use(each);
    app.use((request, response, next) => {
      // Express 4 ignores promises.
      Promise.resolve(nodeCall(request))
        .then(handler)
        .then((answer) => writeAnswer(response, answer))
        .catch(next);
    });
    for (const each of onError) app.use(each);
    app.use(((error, _request, response, next) => {
      errors.push(error);
      if (response.headersSent) next(error);
      else response.status(500).end();
    }) satisfies ErrorRequestHandler);
    app.set("env", "test");
    return listen(createServer(app), errors);
  }
  return {
    name,
    start: (middlewares, handler) => start(middlewares.map(middleware), [], handler),
    startAnsweringRefusals: (handler) => start([], [answerRefusals], handler),
  };
}

function middleware(options: CallOptions): RequestHandler {
  const { respondWith } = options;
  return limitRequests({
    ...optionsFor(options, nodeCall),
    ...(respondWith && {
      respond: (refusal, _request, response) => response.send(respondWith(refusal)),
    }),
  });
}
