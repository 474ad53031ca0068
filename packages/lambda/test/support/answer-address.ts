import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

/** An answer that a function put to the address. */
export interface PutAnswer {
  readonly method: string | undefined;
  readonly headers: IncomingMessage["headers"];
  readonly bytes: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** A server in the place of S3, to which a function puts its answers for CloudFormation. */
export class AnswerAddress {
  readonly #server = createServer((incoming, outgoing) => {
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of incoming) chunks.push(chunk as Buffer);
      const bytes = Buffer.concat(chunks);
      const { method, headers } = incoming;
      this.#answers.push({
        method,
        headers,
        bytes: bytes.length,
        body: JSON.parse(String(bytes)) as PutAnswer["body"],
      });
      outgoing.writeHead(200).end();
    })();
  });
  readonly #answers: PutAnswer[] = [];

  /** Starts, and returns the address. */
  async listen(): Promise<string> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}/answer?X-Amz-Signature=abc`;
  }

  /** The answers since the last call. */
  take(): readonly PutAnswer[] {
    return this.#answers.splice(0);
  }

  async stop(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, "close");
  }
}
