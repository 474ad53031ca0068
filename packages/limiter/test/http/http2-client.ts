import { once } from "node:events";
import {
  connect,
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type IncomingHttpHeaders,
} from "node:http2";
import { text } from "node:stream/consumers";
import { onTestFinished } from "vitest";
import type { Received, Sent } from "./client.ts";

/** The contents of a request. */
type SentOverHttp2 = Omit<Sent, "port" | "agent"> & { readonly body?: string };

/** One connection of HTTP/2, which is closed after the test. Server push is disabled. */
export class Http2Client {
  readonly session: ClientHttp2Session;

  constructor(url: string) {
    this.session = connect(url, {
      rejectUnauthorized: false,
      settings: { enablePush: false },
    });
    this.session.on("error", () => {});
    onTestFinished(() => this.session.destroy());
  }

  /** Sends a request, and reads the response. */
  async send(sent: SentOverHttp2): Promise<Received> {
    const stream = this.open(sent);
    const [headers] = (await once(stream, "response")) as [IncomingHttpHeaders];
    return { status: Number(headers[":status"]), headers, body: await text(stream) };
  }

  /** Sends a request, which the caller may reset. */
  open({ path = "/", method = "GET", headers = {}, body }: SentOverHttp2): ClientHttp2Stream {
    const stream = this.session.request(
      {
        ":path": path,
        ":method": method,
        ...(body !== undefined && { "content-type": "text/plain" }),
        ...headers,
      },
      { endStream: body === undefined },
    );
    stream.on("error", () => {});
    if (body !== undefined) stream.end(body);
    return stream;
  }
}
