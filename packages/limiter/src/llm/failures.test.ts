/*
 * How a call ended that threw, with the errors that real clients throw when real sockets do this to
 * them.
 */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import Anthropic from "@anthropic-ai/sdk";
import { createOpenAI } from "@ai-sdk/openai";
import { APICallError, generateText } from "ai";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { classifyError, findHeaders, findStatus } from "./failures.ts";

let server: Server;
let baseURL: string;

/** What the server does is the last part of the path. */
beforeAll(async () => {
  server = createServer((request, response) => {
    request.resume();
    const act = request.url!.split("/").find((part) => part.startsWith("do-"));
    if (act === "do-destroy") request.on("end", () => request.socket.destroy());
    else if (act === "do-reset") request.on("end", () => request.socket.resetAndDestroy());
    else if (act === "do-rubbish") request.socket.end("this is not HTTP\r\n\r\n");
    else if (act === "do-no-json") {
      response.writeHead(200, { "content-type": "application/json" }).end("<html>");
    } else if (act?.startsWith("do-status-")) {
      response.writeHead(Number(act.slice("do-status-".length)), {
        "content-type": "application/json",
        "retry-after": "7",
      });
      response.end('{"error":{"message":"no","type":"some_error","code":"ECONNRESET"}}');
    } // otherwise it does not answer
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  baseURL = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(() => {
  server.closeAllConnections();
  server.close();
});

async function catchError(work: () => PromiseLike<unknown>): Promise<unknown> {
  try {
    await work();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}

type Ask = (baseURL: string, signal?: AbortSignal) => PromiseLike<unknown>;

const ASK = { model: "gpt-5", messages: [{ role: "user" as const, content: "Hi" }] };

const clients: readonly (readonly [string, Ask])[] = [
  [
    "fetch",
    async (url, signal) => {
      const response = await fetch(`${url}/v1/x`, {
        method: "POST",
        body: "{}",
        ...(signal && { signal }),
      });
      if (response.status >= 300)
        throw Object.assign(new Error("status"), {
          status: response.status,
          headers: response.headers,
        });
      return response.json().catch((error: unknown) => {
        throw error instanceof SyntaxError ? Object.assign(error, { status: 200 }) : error;
      });
    },
  ],
  [
    "openai",
    (url, signal) =>
      new OpenAI({ baseURL: url, apiKey: "k", maxRetries: 0 }).chat.completions.create(
        ASK,
        signal && { signal },
      ),
  ],
  [
    "@anthropic-ai/sdk",
    (url, signal) =>
      new Anthropic({ baseURL: url, apiKey: "k", maxRetries: 0 }).messages.create(
        { ...ASK, max_tokens: 10 },
        signal && { signal },
      ),
  ],
  [
    "ai",
    (url, signal) =>
      generateText({
        model: createOpenAI({ baseURL: url, apiKey: "k" }).chat("gpt-5"),
        prompt: "Hi",
        maxRetries: 0,
        ...(signal && { abortSignal: signal }),
      }),
  ],
];

describe.each(clients)("%s", (name, ask) => {
  it.each([300, 404, 529])("status %i: given back", async (status) => {
    const error = await catchError(() => ask(`${baseURL}/do-status-${status}`));
    expect(findStatus(error)).toBe(status);
    expect(classifyError(error, undefined)).toEqual({ end: "failed" });
    expect(new Headers(findHeaders(error)).get("retry-after")).toBe("7");
  });

  it.each(["do-destroy", "do-reset", "do-rubbish"])("%s before headers: kept", async (act) => {
    const error = await catchError(() => ask(`${baseURL}/${act}`));
    expect(classifyError(error, undefined)).toEqual({ end: "cut" });
  });

  it("aborted by the caller: kept", async () => {
    for (const reason of [undefined, new Error("left"), "left", { status: 499 }]) {
      const abort = new AbortController();
      const asking = catchError(() => ask(`${baseURL}/do-nothing`, abort.signal));
      await once(server, "request");
      abort.abort(reason);
      const error = await asking;
      expect(classifyError(error, abort.signal)).toEqual({ end: "abandoned" });
      // The errors of the clients of OpenAI and Anthropic show that by themselves.
      if (reason === undefined || name.includes("openai") || name.includes("anthropic"))
        expect(classifyError(error, undefined)).toEqual({ end: "abandoned" });
    }
  });

  it("too slow for the caller's time-out: kept", async () => {
    const error = await catchError(() => ask(`${baseURL}/do-nothing`, AbortSignal.timeout(20)));
    expect(classifyError(error, undefined)).toEqual({ end: "abandoned" });
  });
});

it.each(["fetch", "ai"])("%s: 200 with a body that is not JSON: kept", async (name) => {
  const [, ask] = clients.find(([client]) => client === name)!;
  const error = await catchError(() => ask(`${baseURL}/do-no-json`));
  expect(classifyError(error, undefined)).toEqual({ end: "cut" });
});

it.each([OpenAI, Anthropic])("the time-out of a client's own options: kept", async (Client) => {
  const options = { baseURL: `${baseURL}/do-nothing`, apiKey: "k", maxRetries: 0, timeout: 20 };
  const client = new Client(options);
  const error = await catchError(() => client.post("/v1/x", { body: {} }));
  expect(classifyError(error, undefined)).toEqual({ end: "abandoned" });
});

it("a status is the provider's, also if the caller aborts meanwhile, unless it is the reason", () => {
  const tooMany = new APICallError({
    message: "no",
    url: "",
    requestBodyValues: {},
    statusCode: 429,
  });
  expect(classifyError(tooMany, AbortSignal.abort())).toEqual({ end: "failed" });
  expect(classifyError(tooMany, AbortSignal.abort(tooMany))).toEqual({ end: "abandoned" });
  const wrapped = new Error("aborted", { cause: tooMany });
  expect(classifyError(wrapped, AbortSignal.abort(tooMany))).toEqual({ end: "abandoned" });
});

it("an answer that is not HTTP, as fetch of Node 24 reports it: kept", () => {
  const cause = Object.assign(new Error("Expected HTTP/"), { name: "HTTPParserError" });
  const error = new TypeError("fetch failed", { cause });
  expect(classifyError(error, undefined)).toEqual({ end: "cut" });
});

const circle = new Error("circle");
circle.cause = circle;
const strange: readonly unknown[] = [
  undefined,
  null,
  "a text",
  7,
  Symbol("s"),
  Object.create(null),
  circle,
  new Error("unknown"),
  { status: "429" },
  { status: 0 },
  { status: NaN },
  { status: 1e9 },
  { statusCode: -1 },
  Object.assign(new Error("connect ETIMEDOUT"), { code: "ETIMEDOUT", syscall: "connect" }),
  Object.assign(new Error("getaddrinfo"), { code: "ENOTFOUND", syscall: "getaddrinfo" }),
  Object.assign(new AggregateError([]), { code: "ETIMEDOUT" }),
];
it.each(strange)("%s is given back", (error) => {
  expect(classifyError(error, undefined)).toEqual({ end: "failed" });
  expect(classifyError(error, null)).toEqual({ end: "failed" });
  expect(findHeaders(error)).toBe(undefined);
});
