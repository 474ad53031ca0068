/*
 * Clients that follow a plan. Each resolves, when its connection has ended, to the number of
 * responses it received.
 */
import type { EventEmitter } from "node:events";
import { connect as connectHttp2, constants, type ClientHttp2Stream } from "node:http2";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { ConnectionPlan, RequestPlan } from "./plan.ts";

const BODY = "x".repeat(2000);

/** A slow reader reads one chunk in this time. */
const SLOW_READ_MS = 1;

/** After this a calm client gives up, and its plan has failed. */
const PATIENCE_MS = 10_000;

export function talk(port: number, plan: ConnectionPlan): Promise<number> {
  return plan.protocol === "http1" ? talkHttp1(port, plan) : talkHttp2(port, plan);
}

async function talkHttp1(port: number, plan: ConnectionPlan): Promise<number> {
  const socket = openSocket(port);
  const closed = close(socket);
  let answers = 0;
  let rest = "";
  if (plan.reads !== "nothing")
    socket.setEncoding("latin1").on("data", (chunk: string) => {
      const text = rest + chunk;
      answers += text.split("HTTP/1.1 ").length - 1;
      // This may be the start of the next response.
      rest = text.slice(-8);
      if (plan.reads === "slowly") pauseFor(socket);
    });
  const bytes = plan.requests.map((request, index) =>
    toText(request, index === plan.requests.length - 1),
  );
  const half = plan.isSplit ? Math.ceil(bytes.length / 2) : bytes.length;
  socket.write(bytes.slice(0, half).join(""));
  if (plan.isSplit) {
    await sleep(SLOW_READ_MS);
    socket.write(bytes.slice(half).join(""));
  }
  if (plan.isFollowedByGarbage) socket.write("garbage\r\n\r\n");
  if (plan.ends === "calmly") await waitFor(closed);
  else await sleep(plan.endsAfterMs);
  if (plan.ends === "half") {
    socket.end();
    await sleep(plan.endsAfterMs);
  }
  await end(socket, plan);
  return answers;
}

async function talkHttp2(port: number, plan: ConnectionPlan): Promise<number> {
  const socket = openSocket(port);
  const session = connectHttp2("http://localhost", { createConnection: () => socket });
  session.on("error", () => {});
  let answers = 0;
  const streams = plan.requests.map((request) => {
    const stream = session.request(
      { ":path": toPath(request), ":method": request.method, "content-type": "text/plain" },
      { endStream: request.body === "none" },
    );
    stream.on("error", () => {});
    stream.on("end", () => (answers += stream.aborted ? 0 : 1));
    if (request.body === "part") stream.write("part");
    if (request.body === "whole") stream.end(BODY);
    if (plan.reads !== "nothing")
      stream.on("data", () => void (plan.reads === "slowly" && pauseFor(stream)));
    if (request.cancelledAfterMs !== undefined)
      setTimeout(() => stream.close(constants.NGHTTP2_CANCEL), request.cancelledAfterMs);
    return close(stream);
  });
  if (plan.ends === "calmly") {
    await waitFor(Promise.all(streams));
    session.close();
  } else await sleep(plan.endsAfterMs);
  if (plan.ends === "half") {
    session.close();
    await sleep(plan.endsAfterMs);
  }
  if (plan.ends !== "reset") session.destroy();
  await end(socket, plan);
  return answers;
}

async function waitFor(event: Promise<unknown>): Promise<void> {
  const patience = new AbortController();
  const late = sleep(PATIENCE_MS, undefined, { signal: patience.signal }).catch(() => {});
  await Promise.race([event, late]);
  patience.abort();
}

function openSocket(port: number): Socket {
  return connect({ port, host: "127.0.0.1" }).on("error", () => {});
}

async function end(socket: Socket, { ends }: ConnectionPlan): Promise<void> {
  const closed = socket.closed ? undefined : close(socket);
  // Node cannot reset a socket that is being shut down: it would keep it and never emit "close".
  if (ends === "reset" && !socket.writableEnded) socket.resetAndDestroy();
  else socket.destroy();
  await closed;
}

/** Not `once` of node:events, which rejects after an error. */
function close(emitter: EventEmitter): Promise<void> {
  return new Promise((resolve) => emitter.once("close", () => resolve()));
}

function pauseFor(stream: Socket | ClientHttp2Stream): void {
  stream.pause();
  setTimeout(() => stream.resume(), SLOW_READ_MS);
}

function toPath({ id, behavior }: RequestPlan): string {
  return `/${id}/${behavior.replaceAll(" ", "-")}`;
}

/** The last request of a connection asks for its end. */
function toText(request: RequestPlan, isLast: boolean): string {
  const lines = [`${request.method} ${toPath(request)} HTTP/1.1`, "Host: localhost"];
  if (isLast) lines.push("Connection: close");
  if (request.body !== "none")
    lines.push(`Content-Length: ${BODY.length}`, "Content-Type: text/plain");
  const body = request.body === "whole" ? BODY : request.body === "part" ? "part" : "";
  return [...lines, "", body].join("\r\n");
}
