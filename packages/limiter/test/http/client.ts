import {
  Agent,
  request as httpRequest,
  type ClientRequest,
  type IncomingHttpHeaders,
} from "node:http";
import { text } from "node:stream/consumers";

/** A response that was read to its end. */
export interface Received {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** The contents of a request. */
export interface Sent {
  readonly port: number;
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly agent?: Agent;
}

/** Sends a request, and reads the response. */
export function send(sent: Sent): Promise<Received> {
  return new Promise((resolve, reject) => {
    open(sent)
      .on("error", reject)
      .on("response", (response) => {
        text(response).then(
          (body) => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
          reject,
        );
      });
  });
}

/** Sends a request on a connection of its own, which the caller may destroy. */
export function open({
  port,
  path = "/",
  method = "GET",
  headers = {},
  agent,
}: Sent): ClientRequest {
  return httpRequest({
    port,
    host: "127.0.0.1",
    path,
    method,
    headers,
    agent: agent ?? false,
  }).end();
}

/** Turns of the event loop. Each takes microseconds if there is nothing to do. */
const MOST_TURNS = 1_000_000;

/** Waits until a condition holds. With sockets, the number of turns that takes is not known. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let turn = 0; turn < MOST_TURNS; turn += 1) {
    if (await holds()) return;
    await new Promise((resolve) => setImmediate(resolve));
  }
  throw new Error("The condition has not become true.");
}
