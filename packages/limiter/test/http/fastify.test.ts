import { once } from "node:events";
import type { OutgoingHttpHeaders } from "node:http";
import { Readable } from "node:stream";
import Fastify, { type FastifyInstance, type FastifyRequest } from "fastify";
import { expect, it, onTestFinished, vi } from "vitest";
import { RateLimitExceeded, ValidationError } from "zae-limiter";
import {
  answerRefusals,
  limiterPlugin,
  limitRequests,
  type FastifyOptions,
} from "zae-limiter/fastify";
import { getLease, type HttpLimitOptions } from "zae-limiter/http";
import { open, send, until } from "./client.ts";
import { passOn, tenRequests } from "./ten-requests.ts";

type Options = HttpLimitOptions<FastifyRequest> & FastifyOptions;

/** Starts a server that is closed after the test, and returns its port. */
async function listen(app: FastifyInstance): Promise<number> {
  onTestFinished(() => app.close());
  await app.listen({ port: 0, host: "127.0.0.1" });
  const address = app.server.address();
  return typeof address === "object" ? address!.port : 0;
}

it("limits every route of its instance and of nested ones, and unknown paths", async () => {
  const { options, ends, left } = await tenRequests<FastifyRequest>();
  const app = Fastify();
  app.get("/before", async () => "before");
  await app.register(limiterPlugin, options);
  app.get("/after", async () => "after");
  await app.register(async (inner) => void inner.get("/inner", async () => "inner"));
  const port = await listen(app);
  for (const path of ["/before", "/after", "/inner", "/nowhere"]) await send({ port, path });
  await until(() => ends.length === 4);
  expect(ends.map(({ status }) => status)).toEqual([200, 200, 200, 404]);
  expect(await left()).toBe(6);
});

it("does not limit routes outside of the instance that it is registered on", async () => {
  const { options, left } = await tenRequests<FastifyRequest>();
  const app = Fastify();
  app.get("/outer", async () => "outer");
  await app.register(async (inner) => {
    await inner.register(limiterPlugin, options);
    inner.get("/inner", async () => "inner");
  });
  const port = await listen(app);
  expect((await send({ port, path: "/outer" })).headers).not.toHaveProperty("ratelimit");
  expect(await left()).toBe(10);
  expect((await send({ port, path: "/inner" })).headers["ratelimit"]).toContain("r=9");
});

it.each(["onRequest", "preParsing", "preValidation", "preHandler"] as const)(
  "takes in the hook %s",
  async (hook) => {
    const order: string[] = [];
    const { options } = await tenRequests<FastifyRequest>({
      entity: () => (order.push("limit"), "key-1"),
    });
    const app = Fastify();
    for (const name of ["onRequest", "preParsing", "preValidation", "preHandler"] as const)
      app.addHook(name as "onRequest", async () => void order.push(name));
    await app.register(limiterPlugin, { ...options, hook });
    app.get("/", async () => "ok");
    const port = await listen(app);
    expect((await send({ port })).status).toBe(200);
    expect(order[order.indexOf("limit") - 1]).toBe(hook);
  },
);

it("limits one route, by its body if the hook runs after that was read", async () => {
  const { options, left } = await tenRequests<FastifyRequest>({
    consume: ({ body }) => ({ rpm: (body as { cost: number }).cost }),
  });
  const app = Fastify();
  app.post("/", { preHandler: limitRequests(options) }, (request, reply) => {
    getLease(request)?.settle({ rpm: 5 });
    reply.send("ok");
  });
  app.get("/free", async () => "free");
  const port = await listen(app);
  await fetch(`http://127.0.0.1:${port}/`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: '{"cost":4}',
  });
  await until(async () => (await left()) === 5);
  expect((await send({ port, path: "/free" })).headers).not.toHaveProperty("ratelimit");
  expect(await left()).toBe(5);
});

it("checks options when the plugin is registered, and when a limit is made for a route", async () => {
  const { options } = await tenRequests<FastifyRequest>();
  const wrong: readonly object[] = [
    {},
    { ...options, limiter: undefined },
    { ...options, hook: "onSend" },
    { ...options, respond: 429 },
    // Fastify's own options would have no effect here.
    { ...options, prefix: "/v1" },
  ];
  for (const each of wrong) {
    await expect(Fastify().register(limiterPlugin, each as Options)).rejects.toThrow(
      ValidationError,
    );
    const app = Fastify();
    void app.register(limiterPlugin, each as Options);
    await expect(app.ready()).rejects.toThrow(ValidationError);
    expect(() => limitRequests(each as Options)).toThrow(ValidationError);
  }
});

it("settles hijacked and streamed replies, finished or left; hijacked ones may take the headers over", async () => {
  const { options, ends } = await tenRequests<FastifyRequest>();
  const app = Fastify();
  await app.register(limiterPlugin, options);
  app.get("/raw", (_request, reply) => {
    reply.hijack();
    // As with every header that was set before, a hijacked reply has only those it takes over.
    reply.raw.writeHead(206, reply.getHeaders() as OutgoingHttpHeaders).write("begun");
  });
  app.get("/stream", async (_request, reply) => reply.send(endless()));
  app.get("/done", (_request, reply) => {
    reply.hijack();
    reply.raw.end("done");
  });
  const port = await listen(app);
  for (const path of ["/raw", "/stream"]) {
    const client = open({ port, path }).on("error", () => {});
    const [response] = await once(client, "response");
    response.on("error", () => {});
    expect(response.headers["ratelimit"]).toContain('"rpm"');
    await once(response, "data");
    client.destroy();
    await until(() => ends.length > 0);
    const status = path === "/raw" ? 206 : 200;
    expect(ends.splice(0)).toEqual([{ status, completed: false, error: undefined }]);
  }
  expect((await send({ port, path: "/done" })).body).toBe("done");
  await until(() => ends.length > 0);
  expect(ends).toEqual([{ status: 200, completed: true, error: undefined }]);
});

function endless(): Readable {
  const stream = new Readable({ read() {} });
  stream.push("piece");
  return stream;
}

it("passes what the handler threw to the plugin's settle", async () => {
  const { options, ends } = await tenRequests<FastifyRequest>();
  const failure = new Error("broken");
  const app = Fastify();
  await app.register(limiterPlugin, options);
  app.get("/", async () => {
    throw failure;
  });
  const port = await listen(app);
  expect((await send({ port })).status).toBe(500);
  await until(() => ends.length > 0);
  expect(ends).toEqual([{ status: 500, completed: true, error: failure }]);
});

it("sends the problem unchanged, even if a serializer changes replies", async () => {
  const { options } = await tenRequests<FastifyRequest>({ consume: { rpm: 11 } });
  const app = Fastify();
  app.setReplySerializer((payload) => JSON.stringify({ payload }));
  await app.register(limiterPlugin, options);
  app.get("/", async () => "ok");
  const reply = await send({ port: await listen(app) });
  expect(reply.headers["content-type"]).toBe("application/problem+json");
  expect(JSON.parse(reply.body)).toMatchObject({ status: 429 });
});

it("lets the application answer refusals: by a value, by the reply, now or later", async () => {
  const refused = await tenRequests<FastifyRequest>({ consume: { rpm: 11 } });
  const app = Fastify();
  const answers: Record<string, NonNullable<FastifyOptions["respond"]>> = {
    value: (refusal) => ({ never: refusal.retryAfterSeconds === Infinity }),
    promise: async () => "text",
    reply: (_refusal, _request, reply) => reply.code(420).send("sent"),
    later: (_refusal, _request, reply) => void setImmediate(() => reply.send("late")),
    throws: () => {
      throw new Error("respond failed");
    },
  };
  for (const [path, respond] of Object.entries(answers))
    app.get(
      `/${path}`,
      { onRequest: limitRequests({ ...refused.options, respond }) },
      async () => "ran",
    );
  const port = await listen(app);
  const received: [number, string][] = [];
  for (const path in answers) {
    const { status, body, headers } = await send({ port, path: `/${path}` });
    received.push([status, path === "throws" ? "" : body]);
    expect(headers["x-should-retry"]).toBe("false");
  }
  expect(received).toEqual([
    [429, '{"never":true}'],
    [429, "text"],
    [420, "sent"],
    [429, "late"],
    [500, ""],
  ]);
});

it("shows each limit once if respond passes the refusal on", async () => {
  const { options } = await tenRequests<FastifyRequest>();
  const app = Fastify();
  app.setErrorHandler((error, request, reply) => void answerRefusals(error, request, reply));
  await app.register(limiterPlugin, { ...options, consume: { rpm: 11 }, respond: passOn });
  const { status, headers } = await send({ port: await listen(app) });
  expect([status, headers["x-should-retry"], headers["ratelimit"]]).toEqual([
    429,
    "false",
    '"rpm";r=10',
  ]);
});

it("answers refusals of handlers in an error handler, and returns false for other errors", async () => {
  const { limiter } = await tenRequests<FastifyRequest>();
  const verdicts: boolean[] = [];
  const app = Fastify();
  app.setErrorHandler((error, request, reply) => {
    verdicts.push(answerRefusals(error, request, reply));
    if (verdicts.at(-1) === false && !reply.raw.headersSent) reply.code(418).send();
  });
  const call = { entityId: "key-1", resource: "web", consume: { rpm: 11 } };
  app.get("/", (_request, reply) => {
    reply.headers({ "content-encoding": "gzip", "content-length": 3 });
    return limiter.acquire(call, () => "ran");
  });
  app.get("/bug", async () => {
    throw new TypeError("a bug");
  });
  app.get("/sent", async (_request, reply) => {
    reply.raw.writeHead(200).write("begun ");
    const refusal = await limiter.acquire(call, () => "ran").catch((error: unknown) => error);
    expect(answerRefusals(refusal, _request, reply)).toBe(false);
    expect(refusal).toBeInstanceOf(RateLimitExceeded);
    reply.hijack().raw.end("ended");
  });
  const port = await listen(app);
  const refused = await send({ port });
  expect([refused.status, refused.headers["x-should-retry"]]).toEqual([429, "false"]);
  expect(refused.headers).not.toHaveProperty("content-encoding");
  expect(JSON.parse(refused.body)).toMatchObject({ status: 429 });
  expect((await send({ port, path: "/bug" })).status).toBe(418);
  expect((await send({ port, path: "/sent" })).body).toBe("begun ended");
  expect(verdicts).toEqual([true, false]);
});

it("does not answer a refusal where headers were sent before", async () => {
  const { options } = await tenRequests<FastifyRequest>({ consume: { rpm: 11 } });
  const app = Fastify();
  const errors: unknown[] = [];
  app.setErrorHandler((error, _request, reply) => {
    errors.push(error);
    reply.hijack().raw.end("cut");
  });
  app.addHook(
    "onRequest",
    async (_request, reply) => void reply.raw.writeHead(200).write("begun "),
  );
  await app.register(limiterPlugin, options);
  const handler = vi.fn(async () => "ran");
  app.get("/", handler);
  expect((await send({ port: await listen(app) })).body).toBe("begun cut");
  expect(errors).toEqual([expect.any(RateLimitExceeded)]);
  expect(handler).not.toHaveBeenCalled();
});
