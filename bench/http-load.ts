/*
 * The clients of all contestants, in a process of their own. They keep their connections, and send
 * a request when the response before it has arrived. Each message is an order; it is answered when
 * all its requests were.
 */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { KEY, KEYS, keyAt } from "./http-contestants.ts";

/** What the parent asks for. */
export interface Order {
  readonly port: number;
  readonly requests: number;
  /** The status that every response must have. */
  readonly status: number;
}

/** Enough to keep a server busy without a queue that grows. */
const CONNECTIONS = 16;

const END_OF_HEAD = "\r\n\r\n";

const connections = new Map<number, Promise<readonly Connection[]>>();

/** One client. It reads no more of a response than it must. */
class Connection {
  readonly #socket: Socket;
  #text = "";
  #onArrival: (status: number) => void = () => {};

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.setEncoding("latin1").setNoDelay();
    socket.on("data", (chunk: string) => {
      this.#text += chunk;
      if (!isWhole(this.#text)) return;
      const status = Number(this.#text.slice(9, 12));
      this.#text = "";
      this.#onArrival(status);
    });
  }

  get(key: string): Promise<number> {
    this.#socket.write(`GET / HTTP/1.1\r\nHost: localhost\r\n${KEY}: ${key}${END_OF_HEAD}`);
    return new Promise((resolve) => {
      this.#onArrival = resolve;
    });
  }
}

process.on("message", (order: Order) => {
  void carryOut(order).then(
    () => process.send?.("done"),
    (error: unknown) => process.send?.(String(error)),
  );
});
process.once("disconnect", () => process.exit());

async function carryOut({ port, requests, status }: Order): Promise<void> {
  let opened = connections.get(port);
  if (opened === undefined) {
    opened = Promise.all(Array.from({ length: CONNECTIONS }, () => open(port)));
    connections.set(port, opened);
  }
  let sent = 0;
  const client = async (connection: Connection): Promise<void> => {
    while (sent < requests) {
      sent += 1;
      const answered = await connection.get(keyAt(sent % KEYS));
      if (answered !== status) throw new Error(`A response has the status ${answered}`);
    }
  };
  const awake = stayAwake();
  await Promise.all((await opened).map(client));
  clearImmediate(awake.turn);
}

/**
 * Keeps the event loop turning. If this process slept whenever the server is slow, each response of
 * a slow server would pay for waking it up: 10 µs of 25.
 */
function stayAwake(): { turn: NodeJS.Immediate } {
  const awake = { turn: setImmediate(again) };
  function again(): void {
    awake.turn = setImmediate(again);
  }
  return awake;
}

async function open(port: number): Promise<Connection> {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  return new Connection(socket);
}

/** A response with a length or in chunks; all contestants send one of the two. */
function isWhole(text: string): boolean {
  const head = text.indexOf(END_OF_HEAD);
  if (head === -1) return false;
  const length = /\r\ncontent-length: (\d+)/i.exec(text);
  if (length === null) return text.endsWith(`0${END_OF_HEAD}`);
  return text.length >= head + END_OF_HEAD.length + Number(length[1]);
}
