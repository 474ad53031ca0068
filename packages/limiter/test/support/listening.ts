import { createServer, type RequestListener } from "node:http";
import type { AddressInfo, Server } from "node:net";

/** A server on a port of its own, closed with all of its connections at the end of a block. */
export interface Listening extends AsyncDisposable {
  readonly port: number;
  readonly url: string;
}

/** Listens with a handler of node:http, such as an Express application. */
export function listening(listener: RequestListener): Promise<Listening> {
  return listeningOn(createServer(listener));
}

/** Lets a server listen. */
export async function listeningOn(
  server: Server & { closeAllConnections?(): void },
): Promise<Listening> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections?.();
      await closed;
    },
  };
}
