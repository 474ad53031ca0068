import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { connect, createServer as createHttp2Server } from "node:http2";
import { describe, expect, it, onTestFinished } from "vitest";
import { ValidationError } from "zae-limiter";
import { limitListener, type HttpLimitOptions, type ListenerOptions } from "zae-limiter/http";
import { listening, listeningOn } from "../support/listening.ts";
import { open, send, until } from "./client.ts";
import { byKey, Gate, nextTurns, Setting } from "./scenarios/setting.ts";
import { collectUnhandled, collectWarnings } from "./scenarios/warnings.ts";
import { nodeListener } from "./servers/listener.ts";
import { nodeCall } from "./servers/node-answer.ts";
import { listen, optionsFor, type RunningServer } from "./servers/server-adapter.ts";
import { tenRequests } from "./ten-requests.ts";

type Listener = (request: IncomingMessage, response: ServerResponse) => void;
type Options = HttpLimitOptions<IncomingMessage> & ListenerOptions<IncomingMessage>;

const hello: Listener = (_request, response) => response.end("hello");

async function buildOptions(more: Partial<Options> = {}): Promise<Options> {
  const setting = await Setting.create(nodeListener);
  return { ...optionsFor(setting.options(), nodeCall), ...more };
}

async function serve(listener: Listener): Promise<RunningServer> {
  const server = await listen(createServer(listener), []);
  onTestFinished(() => server.close());
  return server;
}

describe("limitListener", () => {
  it("answers 500 without details when an option fails, and warns once", async () => {
    const warnings = collectWarnings();
    const options = await buildOptions({ entity: () => "#secret" });
    const server = await serve(limitListener(options, hello));
    for (let sent = 0; sent < 2; sent += 1)
      expect(await send(byKey(server))).toMatchObject({ status: 500, body: "" });
    expect(warnings.map(({ code }) => code)).toEqual(["WARN_LIMITER_REQUEST_FAILED"]);
  });

  it("answers 500 when respond fails, and does not touch a response that it has sent", async () => {
    const errors: unknown[] = [];
    const failed = new Error("respond failed");
    const options = await buildOptions({
      consume: { rpm: 4 },
      onError: (error) => errors.push(error),
      respond: (_refusal, request, response) => {
        // More than a socket accepts at once.
        if (request.url === "/sent") response.end("x".repeat(5_000_000));
        return Promise.reject(failed);
      },
    });
    const server = await serve(limitListener(options, hello));
    expect((await send(byKey(server))).status).toBe(500);
    expect((await send(byKey(server, { path: "/sent" }))).body).toHaveLength(5_000_000);
    expect(errors).toEqual([failed, failed]);
  });

  it.each(["throws", "rejects"])("survives an onError that %s, and warns once", async (how) => {
    const warnings = collectWarnings();
    const unhandled = collectUnhandled();
    const failed = new Error("onError failed");
    const onError = (): never => {
      if (how === "rejects") return Promise.reject(failed) as never;
      throw failed;
    };
    const server = await serve(
      limitListener(await buildOptions({ entity: () => "#", onError }), hello),
    );
    for (let sent = 0; sent < 2; sent += 1) expect((await send(byKey(server))).status).toBe(500);
    await nextTurns();
    expect(warnings.map(({ code }) => code)).toEqual(["WARN_LIMITER_REQUEST_FAILED"]);
    expect(unhandled).toEqual([]);
  });

  it("cuts a response off that had begun before the refusal", async () => {
    const errors: unknown[] = [];
    const options = await buildOptions({
      consume: { rpm: 4 },
      onError: (error) => errors.push(error),
    });
    const limited = limitListener(options, hello);
    const server = await serve((request, response) => {
      response.writeHead(200).flushHeaders();
      limited(request, response);
    });
    await expect(send(byKey(server))).rejects.toThrow("aborted");
    expect(errors).toMatchObject([{ code: "ERR_LIMITER_RATE_LIMIT_EXCEEDED" }]);
  });

  it("runs the listener without headers if the response has already begun", async () => {
    const limited = limitListener(await buildOptions(), hello);
    const server = await serve((request, response) => {
      response.writeHead(200).flushHeaders();
      limited(request, response);
    });
    const reply = await send(byKey(server));
    expect([reply.status, reply.body]).toEqual([200, "hello"]);
    expect(reply.headers).not.toHaveProperty("ratelimit");
  });

  it("adds to the lists of other middlewares, and leaves no listener behind", async () => {
    const limited = limitListener(await buildOptions({ waitUpToMs: 1000 }), (request, response) => {
      const counts = [
        response.listenerCount("close"),
        request.listenerCount("close"),
        request.listenerCount("error"),
      ];
      response.end(JSON.stringify([...counts, request.socket.listenerCount("close") - before]));
    });
    let before = 0;
    const server = await serve((request, response) => {
      before = request.socket.listenerCount("close");
      response.setHeader("RateLimit", '"other";r=1');
      limited(request, response);
    });
    const reply = await send(byKey(server));
    // The one listener that settles the lease.
    expect(JSON.parse(reply.body)).toEqual([1, 0, 0, 0]);
    expect(reply.headers["ratelimit"]).toMatch(/^"other";r=1, "rpm";r=2/);
  });

  it("leaves what the listener throws to its caller", async () => {
    const failed = new Error("listener failed");
    const limited = limitListener(await buildOptions(), () => {
      throw failed;
    });
    const caught: unknown[] = [];
    const server = await serve(async (request, response) => {
      try {
        await (limited(request, response) as unknown);
      } catch (error) {
        caught.push(error);
        response.end();
      }
    });
    await send(byKey(server));
    expect(caught).toEqual([failed]);
  });

  it("answers HEAD without a body", async () => {
    const options = await buildOptions({ consume: { rpm: 4 } });
    const server = await serve(limitListener(options, hello));
    expect(await send(byKey(server, { method: "HEAD" }))).toMatchObject({ status: 429, body: "" });
  });

  it("notices over HTTP/2 that the client has left", async () => {
    const ended: boolean[] = [];
    const [asked, release] = [new Gate(), new Gate()];
    const options = await buildOptions({
      settle: ({ completed }) => void ended.push(completed),
      resource: async ({ url }) => {
        if (url !== "/waits") return "chat";
        asked.open();
        await release.opened;
        return "chat";
      },
    });
    const begun: string[] = [];
    const limited = limitListener(options, (request, response) => {
      begun.push(request.url ?? "");
      if (request.url === "/") response.end("hello");
    });
    const server = await listeningOn(createHttp2Server(limited as never));
    const client = connect(server.url);
    onTestFinished(async () => {
      client.destroy();
      await server[Symbol.asyncDispose]();
    });
    await once(client.request({ ":path": "/", "x-key": "key-1" }).resume(), "close");
    await until(() => ended.length === 1);
    const leaving = client.request({ ":path": "/never", "x-key": "key-1" }).on("error", () => {});
    await until(() => begun.includes("/never"));
    leaving.close();
    await until(() => ended.length === 2);
    expect(ended).toEqual([true, false]);
    const waiting = client.request({ ":path": "/waits", "x-key": "key-1" }).on("error", () => {});
    await asked.opened;
    waiting.close();
    // The server sees it before a later request.
    await once(client.request({ ":path": "/" }).resume(), "close");
    release.open();
    await nextTurns();
    expect(begun).toEqual(["/", "/never", "/"]);
    expect((await options.limiter.available("key-1", "chat"))["rpm"]).toBe(1);
  });

  it.each([0, 120_000])(
    "charges no client that has left, and does not wait for one (%i ms)",
    async (waitUpToMs) => {
      const setting = await Setting.create(nodeListener);
      const asked = new Gate();
      let response: ServerResponse | undefined;
      let runs = 0;
      const options = setting.options({
        waitUpToMs,
        consume: { rpm: 3 },
        entity: async () => {
          asked.open();
          await until(() => response?.destroyed === true);
          return "key-1";
        },
      });
      const limited = limitListener(optionsFor(options, nodeCall), () => (runs += 1));
      const server = await serve((request, its) => {
        response = its;
        limited(request, its);
      });
      if (waitUpToMs > 0)
        await setting.limiter.acquire(
          { entityId: "key-1", resource: "chat", consume: { rpm: 1 } },
          () => {},
        );
      const client = open(byKey(server)).on("error", () => {});
      await asked.opened;
      client.destroy();
      await until(() => response?.destroyed === true);
      await nextTurns();
      expect([await setting.left(), setting.clock.sleeping, runs]).toEqual([
        waitUpToMs > 0 ? 2 : 3,
        0,
        0,
      ]);
    },
  );

  it("does not run the listener if the response was ended meanwhile", async () => {
    let response: ServerResponse | undefined;
    let runs = 0;
    const options = await buildOptions({
      entity: async () => {
        // More than a socket accepts at once, so the response is ended but not finished.
        response?.end("x".repeat(5_000_000));
        return "key-1";
      },
    });
    const limited = limitListener(options, () => (runs += 1));
    const server = await serve((request, its) => {
      response = its;
      limited(request, its);
    });
    expect((await send(byKey(server))).body).toHaveLength(5_000_000);
    await nextTurns();
    expect((await options.limiter.available("key-1", "chat"))["rpm"]).toBe(3);
    expect(runs).toBe(0);
  });

  it("refuses a missing listener and invalid options when it is made", async () => {
    const options = await buildOptions();
    expect(() => limitListener(options, undefined as never)).toThrow(ValidationError);
    expect(() => limitListener({ ...options, respond: "no" as never }, hello)).toThrow(/respond/);
    expect(() => limitListener({ ...options, onErrors: hello } as never, hello)).toThrow(
      "did you mean onError?",
    );
  });
});

it("settles a response on which the application has set a property `stream`", async () => {
  const { options, ends } = await tenRequests<IncomingMessage>();
  const limited = limitListener(options, (_request, response) => response.end("hello"));
  await using server = await listening((request, response) =>
    limited(request, Object.assign(response, { stream: { destroyed: true } })),
  );
  expect(await send({ port: server.port })).toMatchObject({ status: 200, body: "hello" });
  await until(() => ends.length > 0);
  expect(ends).toMatchObject([{ status: 200, completed: true }]);
});
