import { createServer } from "node:http";
import express, { type Express, type Request } from "express";
import express4 from "express-4";
import { describe, expect, it, onTestFinished } from "vitest";
import { ValidationError } from "zae-limiter";
import { answerRefusals, limitRequests, type ExpressOptions } from "zae-limiter/express";
import { getLease, type HttpLimitOptions } from "zae-limiter/http";
import { send } from "./client.ts";
import { byKey, Setting } from "./scenarios/setting.ts";
import { collectWarnings } from "./scenarios/warnings.ts";
import { express5Server } from "./servers/express.ts";
import { nodeCall } from "./servers/node-answer.ts";
import { listen, optionsFor, type RunningServer } from "./servers/server-adapter.ts";

const versions = {
  "Express 5": express,
  "Express 4": express4,
};

type Options = HttpLimitOptions<Request> & ExpressOptions;

async function buildOptions(more: Partial<Options> = {}): Promise<Options> {
  const setting = await Setting.create(express5Server);
  return { ...optionsFor<Request>(setting.options(), nodeCall), ...more };
}

async function serve(app: Express, errors: unknown[] = []): Promise<RunningServer> {
  app.set("env", "test");
  const server = await listen(createServer(app), errors);
  onTestFinished(() => server.close());
  return server;
}

describe.each(Object.entries(versions))("limitRequests of %s", (_, create) => {
  it("shares its lease with routers and applications below it", async () => {
    const app = create();
    const [inner, router] = [create(), create.Router()];
    router.get("/lease", (request, response) => {
      response.json([request.params, getLease(request)?.resource]);
    });
    inner.use("/router", router);
    app.use("/app/:id", limitRequests(await buildOptions()), inner);
    const server = await serve(app);
    const reply = await send(byKey(server, { path: "/app/1/router/lease" }));
    expect(JSON.parse(reply.body)).toEqual([{}, "chat"]);
  });

  it("keeps the type of the request, and limits one route", async () => {
    const app = create();
    const limit = limitRequests(await buildOptions({ consume: { rpm: 3 } }));
    app.post("/items/:id", limit, (request, response) => {
      const id: string = request.params.id;
      response.send(id);
    });
    const server = await serve(app);
    const sent = byKey(server, { path: "/items/7", method: "POST" });
    expect((await send(sent)).body).toBe("7");
    expect((await send(sent)).status).toBe(429);
  });

  it.each(["throws", "rejects"])("passes on an error that respond %s", async (how) => {
    const failed = new Error("respond failed");
    const app = create();
    const respond = (): never => {
      if (how === "rejects") return Promise.reject(failed) as never;
      throw failed;
    };
    app.use(limitRequests(await buildOptions({ consume: { rpm: 4 }, respond })));
    // Without an error handler, Express itself answers.
    expect((await send(byKey(await serve(app)))).status).toBe(500);
    const server = await serve(app, collectErrors(app));
    expect((await send(byKey(server))).status).toBe(500);
    expect(server.errors).toEqual([failed]);
  });

  it("shows each limit once if respond passes the refusal on", async () => {
    const app = create();
    app.use(
      limitRequests(
        await buildOptions({
          consume: { rpm: 4 },
          respond: (refusal, _request, _response, next) => next(refusal),
        }),
      ),
    );
    app.use(answerRefusals);
    const server = await serve(app);
    const { status, headers } = await send(byKey(server));
    expect(status).toBe(429);
    expect(headers["ratelimit"]).toBe('"rpm";r=3, "tpm";r=100');
  });

  it("lets respond pass the refusal on, and type its own body", async () => {
    const app = create();
    const options = await buildOptions({
      consume: { rpm: 4 },
      respond: (refusal, request, response, next) => {
        if (request.url === "/next") next(refusal);
        else response.json({ limits: refusal.violations.map(({ limitName }) => limitName) });
      },
    });
    app.use(limitRequests(options));
    const server = await serve(app, collectErrors(app));
    const reply = await send(byKey(server));
    expect([reply.status, reply.body]).toEqual([429, '{"limits":["rpm"]}']);
    expect(reply.headers["content-type"]).toBe("application/json; charset=utf-8");
    expect((await send(byKey(server, { path: "/next" }))).status).toBe(500);
    expect(server.errors).toMatchObject([{ code: "ERR_LIMITER_RATE_LIMIT_EXCEEDED" }]);
  });

  it("passes a refusal on that it can no longer answer", async () => {
    const app = create();
    app.use((_request, response, next) => {
      response.writeHead(200).flushHeaders();
      next();
    });
    app.use(limitRequests(await buildOptions({ consume: { rpm: 4 } })));
    app.use(answerRefusals);
    const server = await serve(app, collectErrors(app));
    await expect(send(byKey(server))).rejects.toThrow("aborted");
    expect(server.errors).toMatchObject([{ code: "ERR_LIMITER_RATE_LIMIT_EXCEEDED" }]);
  });

  it("answers a refusal without the headers of a body that the handler did not send", async () => {
    const { limiter } = await buildOptions();
    const app = create();
    app.use((_request, response, next) => {
      response.setHeader("Content-Length", "3").setHeader("Content-Encoding", "gzip");
      limiter
        .acquire({ entityId: "key-1", resource: "chat", consume: { rpm: 4 } })
        .then(() => next(), next);
    });
    app.use(answerRefusals);
    const server = await serve(app);
    const reply = await send(byKey(server));
    expect(JSON.parse(reply.body)).toMatchObject({ status: 429 });
    expect(reply.headers["content-length"]).toBe(String(reply.body.length));
    expect(reply.headers).not.toHaveProperty("content-encoding");
  });

  it("warns of middlewares that are made for each request", async () => {
    const warnings = collectWarnings();
    const options = await buildOptions({ consume: {} });
    const app = create();
    app.use((request, response, next) => {
      limitRequests(options)(request, response, next);
    });
    app.use((_request, response) => void response.end());
    const server = await serve(app);
    for (let sent = 0; sent < 12; sent += 1) expect((await send(byKey(server))).status).toBe(200);
    expect(warnings.map(({ code }) => code)).toEqual(["WARN_LIMITER_MADE_IN_HANDLER"]);
  });

  it("refuses invalid options when it is made", async () => {
    const options = await buildOptions();
    expect(() => limitRequests(undefined as never)).toThrow(ValidationError);
    expect(() => limitRequests({ ...options, respond: 1 as never })).toThrow(/respond/);
    expect(() => limitRequests({ ...options, onError: () => {} } as never)).toThrow(
      "is not an option of limitRequests",
    );
  });
});

/** Answers errors with 500, or cuts the response off, and keeps them. */
function collectErrors(app: Express): unknown[] {
  const errors: unknown[] = [];
  app.use(((error: unknown, _request, response, next) => {
    errors.push(error);
    if (response.headersSent) next(error);
    else response.status(500).end();
  }) satisfies express.ErrorRequestHandler);
  return errors;
}
