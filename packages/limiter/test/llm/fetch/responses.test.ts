/* What reaches the caller: the bytes, headers and properties of the provider's own response. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { RateLimiter, ValidationError } from "zae-limiter";
import { limitMiddleware } from "zae-limiter/anthropic";
import { limitFetch } from "zae-limiter/openai";
import { forgetWarnings } from "../../../src/warnings/warn-once.ts";
import { pausedRepository } from "../../support/paused-repository.ts";
import { startScriptedServer, type ScriptedServer } from "../../support/scripted-server.ts";
import { FULL, meteredCalls } from "../metered-calls.ts";
import {
  answerJson,
  BODIES,
  event,
  FINISHED,
  STREAMS,
  USAGE_CHUNK,
  posted,
  type Posted,
} from "./provider-answers.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

let server: ScriptedServer;
beforeAll(async () => {
  server = await startScriptedServer();
});
afterAll(() => server.stop());
afterEach(() => {
  forgetWarnings();
  vi.restoreAllMocks();
});

const HEADERS = {
  "x-request-id": "req_1",
  "x-ratelimit-remaining-tokens": "7",
  "openai-processing-ms": "12",
};

const post = (path: string, stream = false): Posted => posted(server.endpointUrl, path, stream);

/** Sends each piece after the one before has arrived. */
function stepByStep(pieces: readonly string[]) {
  const state = { proceed: (): void => {} };
  server.answer = (outgoing) => {
    outgoing.writeHead(200, "Fine", { "content-type": "text/event-stream", ...HEADERS });
    const rest = [...pieces];
    state.proceed = () => {
      const piece = rest.shift();
      if (piece === undefined) outgoing.end();
      else outgoing.write(piece);
    };
    state.proceed();
  };
  return state;
}

/** Reads the chunks of a body. Each is read before the next one is sent. */
async function listChunks(response: Response, proceed: () => void): Promise<string[]> {
  const chunks: string[] = [];
  for await (const chunk of response.body!) {
    chunks.push(Buffer.from(chunk).toString());
    proceed();
  }
  return chunks;
}

function describeResponse({
  status,
  statusText,
  ok,
  url,
  redirected,
  type,
  headers,
}: Response): object {
  const { date: _, ...described } = Object.fromEntries(headers);
  return { status, statusText, ok, url, redirected, type, described };
}

describe.each(Object.entries(STREAMS))("a stream of %s", (path, pieces) => {
  it("arrives as it is sent, byte for byte and piece by piece", async () => {
    const { options, records } = await meteredCalls();
    const state = stepByStep(pieces);
    const plain = await fetch(...post(path, true));
    const described = describeResponse(plain);
    expect(await listChunks(plain, () => state.proceed())).toEqual(pieces);
    for (const usage of ["leave", "ask"] as const) {
      const limited = await limitFetch({ ...options, usage })(...post(path, true));
      expect(describeResponse(limited)).toEqual(described);
      expect(await listChunks(limited, () => state.proceed())).toEqual(pieces);
    }
    expect(records.map(({ end }) => end)).toEqual(["complete", "complete"]);
  });
});

it("the usage that the caller did not ask for is left out, and nothing else", async () => {
  const { options, records } = await meteredCalls();
  const [comment, first] = STREAMS["chat/completions"]!;
  const joined = [comment!, first!, FINISHED, `${USAGE_CHUNK}${event("[DONE]")}`];
  const state = stepByStep(joined);
  const response = await limitFetch(options)(...post("chat/completions", true));
  expect(await listChunks(response, () => state.proceed())).toEqual([
    ...joined.slice(0, 3),
    event("[DONE]"),
  ]);
  expect(records).toMatchObject([{ source: "reported", usage: { input: 3, output: 2 } }]);
});

it.each(Object.entries(BODIES))("an answer of %s arrives as it is sent", async (path, body) => {
  const { options, records, taken } = await meteredCalls();
  const text = `${JSON.stringify(body, null, 1)}\n`;
  server.answer = (outgoing) => {
    const length = String(Buffer.byteLength(text));
    const headers = { "content-type": "application/json", "content-length": length, ...HEADERS };
    outgoing.writeHead(201, headers).end(text);
  };
  const described = describeResponse(await fetch(...post(path)));
  const response = await limitFetch(options)(...post(path));
  expect(describeResponse(response)).toEqual(described);
  expect(await response.text()).toBe(text);
  expect(records).toMatchObject([{ end: "complete", source: "reported" }]);
  expect((await taken("gpt-5"))["rpm"]).toBe(1);
});

it("a clone and its original can both be read, and are alike", async () => {
  const { options, records } = await meteredCalls();
  server.answer = (outgoing) => answerJson(outgoing, BODIES["responses"]!);
  const response = await limitFetch(options)(...post("responses"));
  const copy = response.clone().clone();
  expect(describeResponse(copy)).toEqual(describeResponse(response));
  expect(await Promise.all([response.json(), copy.json()])).toEqual([
    BODIES["responses"],
    BODIES["responses"],
  ]);
  expect(records).toHaveLength(1);
});

it("a clone keeps its body, whatever the garbage collector takes meanwhile", async () => {
  const { options } = await meteredCalls();
  server.answer = (outgoing) => answerJson(outgoing, BODIES["responses"]!);
  const response = await limitFetch(options)(...post("responses"));
  const copies = Array.from({ length: 10 }, () => response.clone());
  for (let round = 0; round < 5; round += 1) {
    collectGarbage();
    await new Promise(setImmediate);
  }
  for (const each of [response, ...copies])
    await expect(each.json()).resolves.toEqual(BODIES["responses"]);
});

it("instrumentation may define its properties, as on a response of fetch", async () => {
  const { options } = await meteredCalls();
  server.answer = (outgoing) => answerJson(outgoing, BODIES["responses"]!);
  const response = await limitFetch(options)(...post("responses"));
  const clone = response.clone.bind(response);
  Object.assign(response, { clone: () => clone() });
  expect(Object.defineProperty(response, "url", { value: "http://other/" }).url).toBe(
    "http://other/",
  );
  expect(Object.keys(response)).toEqual(Object.keys(new Response()));
  expect(await response.clone().json()).toEqual(BODIES["responses"]);
});

it("a status text of any characters is passed on", async () => {
  const { options, records } = await meteredCalls();
  const text = JSON.stringify(BODIES["responses"]);
  server.answer = ({ socket }) =>
    socket!.end(
      `HTTP/1.1 200 はい\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`,
    );
  const response = await limitFetch(options)(...post("responses"));
  expect([response.statusText, response.clone().statusText]).toEqual(["はい", "はい"]);
  expect(await response.text()).toBe(text);
  expect(records).toMatchObject([{ end: "complete", source: "reported" }]);
});

it("a redirect that the caller follows itself costs nothing", async () => {
  const { options, taken } = await meteredCalls();
  server.answer = (outgoing) => outgoing.writeHead(307, { location: "/moved" }).end();
  const [url, init] = post("responses");
  const response = await limitFetch(options)(url, { ...init, redirect: "manual" });
  expect(response.status).toBe(307);
  expect(await taken("gpt-5")).toEqual({});
});

it.each([404, 429, 529])("status %i is passed on as it is", async (status) => {
  const { options, records, taken } = await meteredCalls();
  server.answer = (outgoing) => answerJson(outgoing, { error: { message: "no" } }, status);
  let original: Response | undefined;
  const limited = limitFetch(options, async (input, init) => (original = await fetch(input, init)));
  const response = await limited(...post("chat/completions"));
  expect(response).toBe(original);
  expect(await response.json()).toEqual({ error: { message: "no" } });
  expect(records).toMatchObject([{ end: "failed" }]);
  expect(await taken("gpt-5")).toEqual({});
});

it("when a 429 is passed on, the call is given back and the account has learned", async () => {
  const { options, repository, limiter } = await meteredCalls();
  const slow = new RateLimiter({
    repository: pausedRepository(repository, () => new Promise(setImmediate)),
  });
  server.answer = (outgoing) => {
    const headers = { "retry-after-ms": "6000", "x-ratelimit-remaining-requests": "0" };
    outgoing.writeHead(429, headers).end();
  };
  const upstream = { entityId: "key-1" };
  const limited = limitFetch({ ...options, limiter: slow, upstream });
  const response = await limited(...post("chat/completions"));
  expect(response.status).toBe(429);
  // What comes back must not shorten the pause of six seconds.
  const left = await limiter.available("key-1", "gpt-5");
  expect(left).toMatchObject({ rpm: -10, tpm: FULL.tpm });
});

it("an error that is not a 429 does not wait for the account", async () => {
  const { options, repository } = await meteredCalls();
  const never = new Promise<void>(() => {});
  const hanging = pausedRepository(repository, (name) => (name === "read" ? never : undefined));
  server.answer = (outgoing) => {
    outgoing.writeHead(500, { "x-ratelimit-remaining-requests": "5" }).end();
  };
  const limiter = new RateLimiter({ repository: hanging });
  const limited = limitFetch({ ...options, limiter, upstream: { entityId: "account" } });
  expect((await limited(...post("chat/completions"))).status).toBe(500);
});

it("an answer without a body costs its input", async () => {
  const { options, records } = await meteredCalls();
  server.answer = (outgoing) => outgoing.writeHead(204).end();
  const response = await limitFetch(options)(...post("responses"));
  expect([response.status, response.body]).toEqual([204, null]);
  expect(records).toMatchObject([{ end: "complete", source: "counted", usage: { output: 0 } }]);
});

it("an answer that the given fetch has read is passed on, and kept as estimated", async () => {
  const { options, records } = await meteredCalls();
  server.answer = (outgoing) => answerJson(outgoing, BODIES["responses"]!);
  let original: Response | undefined;
  const limited = limitFetch(options, async (input, init) => {
    original = await fetch(input, init);
    await original.text();
    return original;
  });
  expect(await limited(...post("responses"))).toBe(original);
  expect(records).toMatchObject([{ end: "complete", source: "estimated" }]);
});

it.each(["while the store decides", "before"])(
  "nothing is sent or charged if the caller aborts %s",
  async (when) => {
    const calls = await meteredCalls();
    const controller = new AbortController();
    // An error of ours, which is still the caller's reason and not a refusal.
    const reason = new ValidationError("page", 2, "was closed");
    if (when === "before") controller.abort(reason);
    const repository = pausedRepository(calls.repository, async (operation) => {
      if (operation === "consume") controller.abort(reason);
    });
    const before = server.seen.length;
    const [url, init] = post("responses");
    const limited = limitFetch({ ...calls.options, limiter: new RateLimiter({ repository }) });
    const call = limited(url, { ...init, signal: controller.signal });
    await expect(call).rejects.toBe(reason);
    expect(server.seen).toHaveLength(before);
    expect(await calls.taken("gpt-5")).toEqual({});
  },
);

it.each([
  ["text/html", "<html>"],
  ["application/json", "<html>"],
  ["text/event-stream", '{"choices":[]}'],
  ["nonsense", "\u0000"],
])(
  "an answer of type %s with the text %j is passed on, and kept as estimated",
  async (type, text) => {
    const { options, records } = await meteredCalls();
    server.answer = (outgoing) => void outgoing.writeHead(200, { "content-type": type }).end(text);
    const response = await limitFetch(options)(...post("chat/completions", true));
    expect(await response.text()).toBe(text);
    expect(records).toMatchObject([{ source: "estimated" }]);
  },
);

it("a limit within a limit charges nothing, and warns once", async () => {
  const warned = vi.spyOn(process, "emitWarning").mockReturnValue();
  const [outer, inner] = [await meteredCalls(), await meteredCalls()];
  server.answer = (outgoing) => answerJson(outgoing, BODIES["messages"]!);
  const fetchTwice = limitFetch(outer.options, limitFetch(inner.options));
  const middleware = limitMiddleware(outer.options);
  const [url, init] = post("messages");
  for (let calls = 0; calls < 2; calls += 1) {
    await (await fetchTwice(url, init)).text();
    const request = { ...init, url, headers: new Headers() };
    const next = ({ url: to, ...rest }: typeof request): Promise<Response> =>
      limitFetch(inner.options)(to, rest);
    await (await middleware(request, next, {})).text();
  }
  expect([outer.records.length, inner.records.length]).toEqual([4, 0]);
  expect(warned.mock.calls).toMatchObject([[{}, { code: "WARN_LIMITER_METERED_TWICE" }]]);
});
