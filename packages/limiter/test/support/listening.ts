import { createServer, type RequestListener } from "node:http";
import type { ServerHttp2Session } from "node:http2";
import type { AddressInfo, Server } from "node:net";
import { Server as TlsServer } from "node:tls";

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
  const sessions = new Set<ServerHttp2Session>();
  server.on("session", (session: ServerHttp2Session) => {
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `${server instanceof TlsServer ? "https" : "http"}://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections?.();
      for (const session of sessions) session.destroy();
      await closed;
    },
  };
}
