import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { getLease } from "zae-limiter/http";
import type { Answer, Call } from "./server-adapter.ts";

/** Makes the call of a request of node:http, or of one that extends it. */
export function nodeCall(request: IncomingMessage): Call {
  return {
    path: request.url ?? "",
    header: (name) => request.headers[name] as string | undefined,
    body: () => text(request),
    lease: () => getLease(request),
  };
}

/** Writes an answer piece by piece. It stops when the client goes away. */
export async function writeAnswer(
  response: ServerResponse,
  { status = 200, headers = {}, body = "" }: Answer,
): Promise<void> {
  response.statusCode = status;
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  if (typeof body === "string") {
    response.end(body);
    return;
  }
  response.flushHeaders();
  for await (const piece of body) {
    if (response.destroyed) return;
    response.write(piece);
  }
  response.end();
}
