import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { configure as serverlessExpress } from "@codegenie/serverless-express";
import awsLambdaFastify from "@fastify/aws-lambda";
import express, { type Express } from "express";
import express4 from "express-4";
import Fastify, { type FastifyInstance } from "fastify";
import { Hono } from "hono";
import { handle } from "hono/aws-lambda";
import serverlessHttp from "serverless-http";
import { describe, expect, it } from "vitest";
import { limitRequests } from "zae-limiter/express";
import { limiterPlugin } from "zae-limiter/fastify";
import { limitRequests as limitHono } from "zae-limiter/hono";
import { limitListener, type HttpLimitOptions } from "zae-limiter/http";
import { tenRequests } from "./ten-requests.ts";

/** The events and results of an AWS Lambda function. */
type LambdaFunction = (event: object, context: object) => Promise<unknown>;

/** Makes a function that answers every path, and fails for /throw. */
type MakeFunction = (options: HttpLimitOptions<unknown>) => Promise<LambdaFunction>;

const functions: Readonly<Record<string, MakeFunction>> = {
  "serverless-express, Express 5": async (options) => buildServerlessExpress(express, options),
  "serverless-express, Express 4": async (options) => buildServerlessExpress(express4, options),
  "serverless-http, Express 5": async (options) => serverlessHttp(buildApp(express, options)),
  "serverless-http, Express 4": async (options) => serverlessHttp(buildApp(express4, options)),
  "serverless-http, limitListener": async (options) =>
    serverlessHttp(
      limitListener(options, (request, response) => {
        if (request.url === "/throw") response.statusCode = 500;
        response.write("hel");
        setImmediate(() => response.end("lo"));
      }),
    ),
  "serverless-http, Fastify": async (options) =>
    serverlessHttp((await buildFastify(options)) as never),
  "@fastify/aws-lambda": async (options) =>
    awsLambdaFastify<object>(await buildFastify(options)) as LambdaFunction,
  "hono/aws-lambda": async (options) => {
    const app = new Hono();
    app.use(limitHono(options));
    app.get("/throw", (context) => context.body(null, 500));
    app.all("*", (context) => context.text("hello"));
    return handle(app) as unknown as LambdaFunction;
  },
};

describe.each(Object.entries(functions))("a function of AWS Lambda by %s", (_, make) => {
  it.each([
    ["GET", "/", 200],
    ["HEAD", "/", 200],
    ["POST", "/", 200],
    ["GET", "/throw", 500],
  ])(
    "ends the lease of %s %s before it returns, as the guide says",
    async (method, path, status) => {
      const pending: Promise<void>[] = [];
      const { options, ends, left } = await tenRequests<unknown>({
        waitUntil: (settled) => pending.push(settled),
      });
      const answer = await make(options);
      const handler: LambdaFunction = async (event, context) => {
        const response = await answer(event, context);
        await Promise.all(pending.splice(0));
        return response;
      };
      const response = await handler(buildEvent(method, path), {});
      expect(response).toMatchObject({ statusCode: status });
      expect(ends).toMatchObject([{ status, completed: true }]);
      expect(await left()).toBe(9);
    },
  );
});

describe("Fastify without a socket", () => {
  it("ends the lease of a response that @fastify/aws-lambda streams once it was read", async () => {
    const { options, ends } = await tenRequests<unknown>();
    const app = await buildFastify(options);
    const answer = awsLambdaFastify<object>(app, { payloadAsStream: true });
    const { stream } = await (answer as unknown as Streaming)(buildEvent("GET", "/pieces"), {});
    expect(await text(stream)).toBe("one two ");
    expect(ends).toMatchObject([{ status: 200, completed: true }]);
  });

  it("reports responses that inject() read to their end as completed, and others as not", async () => {
    const { options, ends } = await tenRequests<unknown>();
    const app = await buildFastify(options);
    expect((await app.inject("/")).body).toBe("hello");
    expect((await app.inject("/pieces")).body).toBe("one two ");
    await expect(app.inject("/cut")).rejects.toThrow("destroyed before completion");
    expect(ends.map(({ completed }) => completed)).toEqual([true, true, false]);
  });
});

type Streaming = (event: object, context: object) => Promise<{ readonly stream: Readable }>;

function buildServerlessExpress(create: typeof express, options: HttpLimitOptions<unknown>) {
  return serverlessExpress({ app: buildApp(create, options) }) as LambdaFunction;
}

function buildApp(create: typeof express, options: HttpLimitOptions<unknown>): Express {
  const app = create();
  app.set("env", "test");
  app.use(limitRequests(options));
  app.get("/throw", () => {
    throw new Error("handler failed");
  });
  app.use((_request, response) => void response.send("hello"));
  return app;
}

async function buildFastify(options: HttpLimitOptions<unknown>): Promise<FastifyInstance> {
  const app = Fastify();
  await app.register(limiterPlugin, options);
  app.get("/throw", async () => {
    throw new Error("handler failed");
  });
  app.get("/pieces", async (_request, reply) => reply.send(Readable.from(["one ", "two "])));
  app.get("/cut", (_request, reply) => void reply.raw.destroy());
  app.all("/", async () => "hello");
  return app;
}

/** As a function URL or an HTTP API of API Gateway sends it. */
function buildEvent(method: string, path: string): object {
  return {
    version: "2.0",
    routeKey: "$default",
    rawPath: path,
    rawQueryString: "",
    headers: { host: "example.lambda-url.eu-west-1.on.aws", "content-type": "text/plain" },
    requestContext: {
      domainName: "example.lambda-url.eu-west-1.on.aws",
      stage: "$default",
      requestId: "1",
      http: { method, path, protocol: "HTTP/1.1", sourceIp: "203.0.113.7", userAgent: "test" },
    },
    ...(method === "POST" && { body: "hello" }),
    isBase64Encoded: false,
  };
}
