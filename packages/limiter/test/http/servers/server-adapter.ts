/*
 * What the scenarios need from a framework. Options and handlers are written once, for the `Call`
 * that each adapter makes of its framework's request.
 */
import type { ServerResponse } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import type { Lease, RateLimitExceeded } from "zae-limiter";
import type { HttpLimitOptions } from "zae-limiter/http";
import { listeningOn } from "../../support/listening.ts";

/** A request, as the scenarios see it. */
export interface Call {
  readonly path: string;
  header(name: string): string | undefined;
  /** Its body as a text. */
  body(): Promise<string>;
  /** The result of `getLease` for the framework's request. */
  lease(): Lease | undefined;
}

/** The response of a handler: a text, or pieces that are sent one by one. */
export interface Answer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | AsyncIterable<string>;
}

export type Handler = (call: Call) => Answer | Promise<Answer>;

/** The options of one middleware. `respondWith` is the body of the framework's own `respond`. */
export type CallOptions = HttpLimitOptions<Call> & {
  readonly respondWith?: (refusal: RateLimitExceeded) => string;
};

export interface RunningServer {
  readonly port: number;
  readonly url: string;
  /** Every stream of HTTP/2 that a client opened. */
  readonly http2Streams: readonly ServerHttp2Stream[];
  /** The response of Node to every request. */
  readonly responses: readonly { destroy(): void }[];
  /** Errors that reached the framework's error handling, which answered 500. */
  readonly errors: readonly unknown[];
  close(): Promise<void>;
}

export interface ServerAdapter {
  readonly name: string;
  /** Serves every path behind the middlewares, the first one outermost. */
  start(middlewares: readonly CallOptions[], handler: Handler): Promise<RunningServer>;
  /** The same with the framework's `answerRefusals` in place of its own error handling. */
  startAnsweringRefusals?(handler: Handler): Promise<RunningServer>;
}

/** Options for a framework's request; `callOf` translates it. */
export function optionsFor<Q>(
  options: CallOptions,
  callOf: (request: Q) => Call,
): HttpLimitOptions<Q> {
  const { entity, resource, consume, also, settle, onRefused, respondWith, ...others } = options;
  void respondWith;
  return {
    ...others,
    entity: (request) => entity(callOf(request)),
    resource: typeof resource === "function" ? (request) => resource(callOf(request)) : resource,
    consume: typeof consume === "function" ? (request) => consume(callOf(request)) : consume,
    ...(also && { also: (request: Q) => also(callOf(request)) }),
    ...(settle && {
      settle: ((outcome, lease) =>
        settle(
          { ...outcome, request: callOf(outcome.request) },
          lease,
        )) satisfies HttpLimitOptions<Q>["settle"],
    }),
    ...(onRefused && {
      onRefused: (refusal: RateLimitExceeded, request: Q) => onRefused(refusal, callOf(request)),
    }),
  };
}

/** Listens on a free port. */
export async function listen(
  server: Parameters<typeof listeningOn>[0],
  errors: readonly unknown[],
): Promise<RunningServer> {
  const http2Streams: ServerHttp2Stream[] = [];
  const responses: ServerResponse[] = [];
  server.on("stream", (stream: ServerHttp2Stream) => http2Streams.push(stream));
  server.on("request", (_request, response: ServerResponse) => responses.push(response));
  const listening = await listeningOn(server);
  const { port, url } = listening;
  return {
    port,
    url,
    http2Streams,
    responses,
    errors,
    close: async () => listening[Symbol.asyncDispose](),
  };
}
