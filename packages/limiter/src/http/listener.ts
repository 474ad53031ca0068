import type { IncomingMessage, ServerResponse } from "node:http";
import type { HttpLimitOptions } from "./options.ts";

/** The frame's placeholder: branch `node` replaces it. */
export function limitListener<Q extends IncomingMessage = IncomingMessage>(
  _options: HttpLimitOptions<Q>,
  listener: (request: Q, response: ServerResponse) => void,
): (request: Q, response: ServerResponse) => void {
  return listener;
}
