import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { until } from "../client.ts";
import type { CallOptions, Handler, ServerAdapter } from "../servers/server-adapter.ts";
import { Gate, HeldBody, nextTurns, Setting } from "./setting.ts";

/** What clients can do that no HTTP library does for them. */
export function rawSocketScenarios(adapter: ServerAdapter): void {
  describe(`${adapter.name}, over raw sockets`, () => {
    it("answers requests that were sent without waiting for responses, and settles each of them", async () => {
      const { setting, ended, server } = await settling(adapter);
      const socket = await open(server.port);
      const text = readAll(socket);
      socket.write(get("/1") + get("/2") + get("/3") + get("/4", "Connection: close"));
      expect((await text).match(/HTTP\/1.1 \d+/g)).toEqual([
        "HTTP/1.1 200",
        "HTTP/1.1 200",
        "HTTP/1.1 200",
        "HTTP/1.1 429",
      ]);
      await until(() => ended.length === 3);
      expect(ended).toEqual(Array.from({ length: 3 }, () => ({ status: 200, completed: true })));
      expect(await setting.left()).toBe(0);
    });

    it("settles requests whose connection closes before their turn to answer comes", async () => {
      const first = new Gate();
      const ran: string[] = [];
      const { setting, ended, server } = await settling(adapter, async ({ path }) => {
        ran.push(path);
        if (path === "/first") await first.opened;
        return { body: path };
      });
      const socket = await open(server.port);
      socket.write(get("/first") + get("/second") + get("/third"));
      await until(() => ran.length === 3);
      await nextTurns();
      socket.destroy();
      await until(() => ended.length === 3);
      first.open();
      await nextTurns();
      expect(ended.map(({ completed }) => completed)).toEqual([false, false, false]);
      expect(await setting.left()).toBe(0);
    });

    it("runs waiting requests in their order of arrival, and none early", async () => {
      const ran: string[] = [];
      const { setting, server } = await settling(
        adapter,
        ({ path }) => {
          ran.push(path);
          return { body: path };
        },
        { waitUpToMs: 300_000, consume: { rpm: 3 } },
      );
      const socket = await open(server.port);
      const text = readAll(socket);
      socket.write(get("/1") + get("/2") + get("/3") + get("/4", "Connection: close"));
      await until(() => ran.length === 1 && setting.clock.sleeping === 3);
      await setting.clock.advance(59_999);
      expect(ran).toEqual(["/1"]);
      await setting.clock.advance(1);
      expect(ran).toEqual(["/1", "/2"]);
      await setting.clock.advance(120_000);
      expect((await text).match(/HTTP\/1.1 200/g)).toHaveLength(4);
      expect(ran).toEqual(["/1", "/2", "/3", "/4"]);
    });

    it.each([
      ["HTTP/1.0", ["GET / HTTP/1.0", "Host: a"]],
      ["HEAD", ["HEAD / HTTP/1.1", "Host: a", "Connection: close"]],
      ["an upgrade", ["GET / HTTP/1.1", "Host: a", "Connection: Upgrade", "Upgrade: h2c"]],
      [
        "100-continue",
        [
          "POST / HTTP/1.1",
          "Host: a",
          "Expect: 100-continue",
          "Content-Length: 0",
          "Connection: close",
        ],
      ],
      [
        "a header many times",
        [
          "GET / HTTP/1.1",
          "Host: a",
          ...Array.from({ length: 900 }, () => "a: b"),
          "Connection: close",
        ],
      ],
    ])("limits and settles %s once", async (_, lines) => {
      const { setting, ended, server } = await settling(adapter);
      const socket = await open(server.port);
      let text = "";
      socket.setEncoding("latin1").on("data", (chunk: string) => (text += chunk));
      socket.write([...lines, "x-key: key-1", "", ""].join("\r\n"));
      await until(() => ended.length === 1);
      await until(() => /HTTP\/1.1 200/.test(text));
      expect(text.toLowerCase()).toContain("\r\nratelimit:");
      expect(ended).toEqual([{ status: 200, completed: true }]);
      expect(await setting.left()).toBe(2);
    });

    it("settles a request whose client leaves in the middle of its body", async () => {
      const { setting, ended, server } = await settling(adapter, () => new Promise(() => {}));
      const socket = await open(server.port);
      const head = ["POST / HTTP/1.1", "Host: a", "x-key: key-1", "Content-Type: text/plain"];
      socket.write([...head, "Content-Length: 100", "", "ten bytes."].join("\r\n"));
      await until(async () => (await setting.left()) === 2);
      await nextTurns();
      socket.destroy();
      await until(() => ended.length === 1);
      expect(ended[0]!.completed).toBe(false);
      expect(await setting.left()).toBe(2);
    });

    it("settles a stream whose client stopped reading and then left", async () => {
      const body = new HeldBody();
      const { setting, ended, server } = await settling(adapter, () => ({ body }));
      const socket = await open(server.port);
      socket.pause();
      socket.write(get("/"));
      // More than the buffers of both sides hold.
      for (let piece = 0; piece < 64; piece += 1) body.send("x".repeat(2 ** 18));
      await nextTurns();
      expect(ended).toEqual([]);
      socket.destroy();
      await until(() => ended.length === 1);
      body.end();
      await nextTurns();
      expect(ended).toEqual([{ status: 200, completed: false }]);
      expect(await setting.left()).toBe(2);
    });

    it.each([true, false])(
      "reports whether a client stayed for the whole response: %s",
      async (stays) => {
        const { ended, server } = await settling(adapter, () => ({ body: "x".repeat(2 ** 24) }));
        const socket = await open(server.port);
        socket.pause();
        socket.write(get("/", "Connection: close"));
        await once(socket, "readable");
        await nextTurns();
        // The response is ended but not sent: the buffers of both sides hold less.
        expect(ended).toEqual([]);
        if (stays) socket.resume();
        else socket.destroy();
        await until(() => ended.length === 1);
        expect(ended).toEqual([{ status: 200, completed: stays }]);
      },
    );

    it("empties the queue when the server closes all connections", async () => {
      const ran: string[] = [];
      const { setting, server } = await settling(
        adapter,
        ({ path }) => {
          ran.push(path);
          return { body: path };
        },
        { waitUpToMs: 86_400_000, consume: { rpm: 3 } },
      );
      const first = await open(server.port);
      first.write(get("/first"));
      await once(first, "data");
      for (let index = 0; index < 20; index += 1) (await open(server.port)).write(get("/later"));
      await until(() => setting.clock.sleeping > 0);
      const closed = server.close();
      await until(() => setting.clock.sleeping === 0);
      await closed;
      await setting.clock.advance(86_400_000);
      await nextTurns();
      expect(ran).toEqual(["/first"]);
      expect(await setting.left()).toBe(3);
    });

    it("decides by the stored balance while an end is still to be written", async () => {
      const settled = new Gate();
      const setting = await Setting.create(adapter);
      const server = await setting.serve([
        {
          settle: async () => {
            await settled.opened;
            return "give-back" as const;
          },
        },
      ]);
      const socket = await open(server.port);
      const text = readAll(socket);
      socket.write(get("/").repeat(4) + get("/", "Connection: close"));
      const statuses = (await text).match(/(?<=HTTP\/1.1 )\d+/g);
      expect(statuses).toEqual(["200", "200", "200", "429", "429"]);
      expect(await setting.left()).toBe(0);
      settled.open();
      await expect.poll(() => setting.left()).toBe(3);
    });
  });
}

async function settling(
  adapter: ServerAdapter,
  handler?: Handler,
  more: Partial<CallOptions> = {},
) {
  const setting = await Setting.create(adapter);
  return { setting, ...(await setting.serveRecorded(handler, more)) };
}

/** A request of `key-1`, as it is written on a socket. */
function get(path: string, ...fields: readonly string[]): string {
  return [`GET ${path} HTTP/1.1`, "Host: localhost", "x-key: key-1", ...fields, "", ""].join(
    "\r\n",
  );
}

async function open(port: number): Promise<Socket> {
  const socket = connect(port, "127.0.0.1").on("error", () => {});
  onTestFinished(() => void socket.destroy());
  await once(socket, "connect");
  return socket;
}

/** Everything that arrives until the server closes. */
async function readAll(socket: Socket): Promise<string> {
  let text = "";
  socket.setEncoding("latin1").on("data", (chunk: string) => (text += chunk));
  await once(socket, "close");
  return text;
}
