import { once } from "node:events";
import { Hono, type Context } from "hono";
import { HTTPException } from "hono/http-exception";
import { streamSSE } from "hono/streaming";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { ValidationError } from "zae-limiter";
import { answerRefusals, limitRequests, type HonoOptions } from "zae-limiter/hono";
import { getLease, type HttpLimitOptions } from "zae-limiter/http";
import { open, send, until } from "./client.ts";
import { serve } from "./servers/web.ts";
import { passOn, tenRequests } from "./ten-requests.ts";

type Options = HttpLimitOptions<Context> & HonoOptions;

/** With the bindings of Node, the lease ends with Node's response; otherwise with the body. */
const platforms = {
  "on Node": (app: Hono) => app.fetch,
  "where only the body shows the end": (app: Hono) => (request: Request) => app.fetch(request),
};

describe.each(Object.entries(platforms))("%s", (_name, fetchOf) => {
  async function listen(app: Hono): Promise<number> {
    const server = await serve(fetchOf(app), []);
    onTestFinished(() => server.close());
    return server.port;
  }

  it("adds its headers to responses of any origin, and to those of an inner middleware", async () => {
    const { options, limiter } = await tenRequests<Context>();
    const upstream = new Hono().get("/", (context) => context.text("far", 203, { "x-far": "1" }));
    const upstreamPort = await listen(upstream);
    const constant = new Response(null, { status: 204 });
    const app = new Hono();
    app.use(limitRequests({ ...options, headers: { style: ["ietf", "legacy"] } }));
    app.use("/both", limitRequests({ ...options, resource: "both" }));
    app.get("/context", (context) => context.json({}));
    app.get("/raw", () => new Response("raw", { headers: { "x-ratelimit-limit": "mine" } }));
    app.get("/fetched", () => fetch(`http://127.0.0.1:${upstreamPort}/`));
    app.get("/constant", () => constant);
    app.get("/both", () => new Response("both"));
    app.get("/redirect", (context) => context.redirect("/raw"));
    app.get("/cookies", (context) => {
      context.header("set-cookie", "a=1");
      context.header("set-cookie", "b=2", { append: true });
      return context.body("cookies");
    });
    const port = await listen(app);
    for (const path of [
      "/context",
      "/raw",
      "/fetched",
      "/constant",
      "/constant",
      "/redirect",
      "/x",
    ]) {
      const left = (await limiter.available("key-1", "web"))["rpm"]! - 1;
      const { headers } = await send({ port, path });
      expect([path, headers["ratelimit"]]).toEqual([path, `"rpm";r=${left};t=6`]);
      expect(headers["x-ratelimit-limit"]).toBe(path === "/raw" ? "mine" : "10");
    }
    expect([...constant.headers]).toEqual([]);
    const both = await send({ port, path: "/both" });
    expect(both.headers["ratelimit"]).toBe('"rpm";r=2;t=6, "rpm";r=9;t=6');
    const cookies = await send({ port, path: "/cookies" });
    expect(cookies.headers["set-cookie"]).toEqual(["a=1", "b=2"]);
    expect(cookies.body).toBe("cookies");
  });

  it("lists equal balances of two middlewares, even on a response made without the context", async () => {
    const { options } = await tenRequests<Context>();
    const app = new Hono();
    app.use(limitRequests(options), limitRequests({ ...options, resource: "both" }));
    app.get("/", () => new Response("both"));
    const { headers } = await send({ port: await listen(app) });
    expect(headers["ratelimit"]).toBe('"rpm";r=9;t=6, "rpm";r=9;t=6');
  });

  it("settles once events that were sent to their end, and events whose client left", async () => {
    const { options, ends } = await tenRequests<Context>();
    let isStopped = false;
    const app = new Hono();
    app.use(limitRequests(options));
    app.get("/done", (context) =>
      streamSSE(context, async (stream) => {
        await stream.writeSSE({ data: "one" });
        await stream.writeSSE({ data: "two" });
      }),
    );
    app.get("/endless", (context) =>
      streamSSE(context, async (stream) => {
        stream.onAbort(() => void (isStopped = true));
        await stream.writeSSE({ data: "one" });
        await until(() => isStopped);
      }),
    );
    const port = await listen(app);
    expect((await send({ port, path: "/done" })).body).toBe("data: one\n\ndata: two\n\n");
    await until(() => ends.length === 1);
    const client = open({ port, path: "/endless" }).on("error", () => {});
    const [response] = await once(client, "response");
    response.on("error", () => {});
    await once(response, "data");
    expect(ends).toHaveLength(1);
    client.destroy();
    await until(() => ends.length > 1 && isStopped);
    expect(ends).toEqual([
      { status: 200, completed: true, error: undefined },
      { status: 200, completed: false, error: undefined },
    ]);
  });

  it("asks a handler for no more than a slow client reads", async () => {
    const { options, ends } = await tenRequests<Context>();
    const PIECE = new Uint8Array(64 * 1024);
    const PIECES = 4096;
    let made = 0;
    const app = new Hono();
    app.use(limitRequests(options));
    const pull = (controller: ReadableStreamDefaultController): void => {
      if (made === PIECES) controller.close();
      else controller.enqueue(PIECE);
      made += 1;
    };
    app.get("/", () => new Response(new ReadableStream({ pull }, { highWaterMark: 0 })));
    const port = await listen(app);
    const client = open({ port }).on("error", () => {});
    const [response] = await once(client, "response");
    response.on("error", () => {});
    // The client does not read, so the handler stops once all buffers on the way are full.
    for (let before = -1; before !== made;) {
      before = made;
      for (let turn = 0; turn < 100; turn += 1) await new Promise((next) => setImmediate(next));
    }
    expect(made).toBeLessThan(PIECES / 4);
    expect(ends).toEqual([]);
    client.destroy();
    await until(() => ends.length > 0);
    expect(ends).toEqual([{ status: 200, completed: false, error: undefined }]);
  });

  it("reports what handlers threw, also in nested applications", async () => {
    const { options, ends } = await tenRequests<Context>();
    const failure = new Error("broken");
    const inner = new Hono();
    inner.onError((_error, context) => context.text("inner", 502));
    inner.get("/", () => {
      throw failure;
    });
    const app = new Hono();
    app.onError((_error, context) => context.text("outer", 500));
    app.use(limitRequests(options));
    app.get("/", () => Promise.reject(failure));
    app.route("/inner", inner);
    const port = await listen(app);
    expect((await send({ port })).body).toBe("outer");
    const within = await send({ port, path: "/inner" });
    expect([within.status, within.body]).toEqual([502, "inner"]);
    expect(within.headers["ratelimit"]).toContain("r=8");
    await until(() => ends.length === 2);
    expect(ends).toEqual([
      { status: 500, completed: true, error: failure },
      { status: 502, completed: true, error: failure },
    ]);
  });

  it("ends requests for HEAD, whose body Hono throws away", async () => {
    const { options, ends } = await tenRequests<Context>();
    const app = new Hono();
    app.use(limitRequests(options));
    app.get("/", (context) => context.text("body"));
    const { status, body } = await send({ port: await listen(app), method: "HEAD" });
    expect([status, body]).toEqual([200, ""]);
    await until(() => ends.length > 0);
    expect(ends).toEqual([{ status: 200, completed: true, error: undefined }]);
  });

  it("knows the lease by the context and by the request", async () => {
    const { options } = await tenRequests<Context>();
    const app = new Hono();
    app.get("/", limitRequests(options), (context) =>
      context.json([getLease(context)?.resource, getLease(context) === getLease(context.req.raw)]),
    );
    expect((await send({ port: await listen(app) })).body).toBe('["web",true]');
  });

  it("lets the application answer refusals, with any response", async () => {
    const { options } = await tenRequests<Context>();
    const app = new Hono();
    app.use(limitRequests(options));
    const refused: Options = { ...options, resource: "other", consume: { rpm: 11 } };
    app.use(
      "/context",
      limitRequests({ ...refused, respond: (_refusal, context) => context.text("mine", 418) }),
    );
    app.use(
      "/raw",
      limitRequests({ ...refused, respond: async () => new Response("mine", { status: 418 }) }),
    );
    const port = await listen(app);
    for (const path of ["/context", "/raw"]) {
      const { status, body, headers } = await send({ port, path });
      expect([path, status, body]).toEqual([path, 418, "mine"]);
      expect(headers["ratelimit"]).toMatch(/^"rpm";r=\d;t=6, "rpm";r=10/);
      expect([headers["x-should-retry"], headers["cache-control"]]).toEqual(["false", "no-store"]);
      expect(headers["content-type"]).not.toContain("problem");
    }
  });

  it("shows each limit once if respond passes the refusal on", async () => {
    const { options } = await tenRequests<Context>();
    const app = new Hono();
    app.onError(answerRefusals);
    app.use(limitRequests({ ...options, consume: { rpm: 11 }, respond: passOn }));
    const { status, headers } = await send({ port: await listen(app) });
    expect([status, headers["x-should-retry"], headers["ratelimit"]]).toEqual([
      429,
      "false",
      '"rpm";r=10',
    ]);
  });

  it("answers refusals of handlers, and everything else as Hono does", async () => {
    const logged = vi.spyOn(console, "error").mockImplementation(() => {});
    onTestFinished(() => logged.mockRestore());
    const { limiter, options } = await tenRequests<Context>();
    const failure = new TypeError("a bug");
    const app = new Hono();
    app.onError(answerRefusals);
    app.use(limitRequests(options));
    app.get("/", async (context) => {
      context.header("Content-Encoding", "gzip");
      context.header("Content-Length", "3");
      await limiter.acquire({ entityId: "e", resource: "r", consume: { rpm: 11 } });
      return context.text("ran");
    });
    app.get("/denied", () => {
      throw new HTTPException(401, { message: "Who are you?" });
    });
    app.get("/bug", () => {
      throw failure;
    });
    const port = await listen(app);
    const refused = await send({ port });
    expect([refused.status, refused.headers["x-should-retry"]]).toEqual([429, "false"]);
    expect(refused.headers).not.toHaveProperty("content-encoding");
    expect(JSON.parse(refused.body)).toMatchObject({ status: 429 });
    expect(refused.headers["ratelimit"]).toMatch(/^"rpm";r=9;t=6, "rpm";r=10/);
    const denied = await send({ port, path: "/denied" });
    expect([denied.status, denied.body]).toEqual([401, "Who are you?"]);
    expect(logged).not.toHaveBeenCalled();
    const bug = await send({ port, path: "/bug" });
    expect([bug.status, bug.body]).toEqual([500, "Internal Server Error"]);
    expect(logged.mock.calls).toEqual([[failure]]);
  });
});

it("ends the lease of a handler that threw a value that is not an error, which Hono passes on", async () => {
  const { options, ends } = await tenRequests<Context>();
  const app = new Hono();
  app.use(limitRequests(options));
  // eslint-disable-next-line prefer-promise-reject-errors
  app.get("/", () => Promise.reject("a text"));
  await expect(app.request("/")).rejects.toBe("a text");
  expect(ends).toEqual([{ status: 500, completed: true, error: "a text" }]);
});

it("checks options when the middleware is made", async () => {
  const { options } = await tenRequests<Context>();
  for (const wrong of [{}, { ...options, entity: "key-1" }, { ...options, respond: 429 }])
    expect(() => limitRequests(wrong as Options)).toThrow(ValidationError);
});

it("limits requests without a server, as tests of applications send them", async () => {
  const { options, ends } = await tenRequests<Context>();
  const app = new Hono();
  app.use(limitRequests(options));
  app.get("/", (context) => context.text("ok"));
  const response = await app.request("/");
  expect(response.headers.get("ratelimit")).toContain("r=9");
  expect(await response.text()).toBe("ok");
  expect(ends).toEqual([{ status: 200, completed: true, error: undefined }]);
});
