import { createServer, type RequestListener } from "node:http";
import * as http2 from "node:http2";
import type { Server } from "node:net";
import { makeCertificate } from "./certificate.ts";

/** How requests reach a server. */
export interface Transport {
  readonly name: string;
  /** Creates a server of Node. */
  create(listener: RequestListener): Server;
  /** The options with which Fastify creates such a server. */
  readonly fastify: object;
}

export const http1: Transport = {
  name: "HTTP/1.1",
  create: (listener) => createServer(listener),
  fastify: {},
};

const https = makeCertificate();

/** HTTP/2 in clear text and over TLS. */
export const http2Transports: readonly Transport[] = [
  {
    name: "HTTP/2",
    create: (listener) => http2.createServer(asListener(listener)),
    fastify: { http2: true },
  },
  {
    name: "HTTP/2 over TLS",
    create: (listener) => http2.createSecureServer(https, asListener(listener)),
    fastify: { http2: true, https },
  },
];

type Http2Listener = NonNullable<Parameters<typeof http2.createServer>[1]>;

/** Requests and responses of node:http2 are meant to be used like those of node:http. */
function asListener(listener: RequestListener): Http2Listener {
  return listener as unknown as Http2Listener;
}
