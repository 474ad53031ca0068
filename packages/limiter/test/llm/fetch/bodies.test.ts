/* Requests of all kinds: what is sent and charged, and which warnings there are. */
import { Buffer } from "node:buffer";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from "vitest";
import { limitFetch } from "zae-limiter/openai";
import { forgetWarnings } from "../../../src/warnings/warn-once.ts";
import { startScriptedServer, type ScriptedServer } from "../../support/scripted-server.ts";
import { meteredCalls } from "../metered-calls.ts";

type Fetch = typeof globalThis.fetch;

const USAGE = { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 };
const ANSWER = JSON.stringify({ choices: [], usage: USAGE });

let server: ScriptedServer;
let url: string;
const warned = vi.spyOn(process, "emitWarning");

beforeAll(async () => {
  server = await startScriptedServer();
  url = `${server.endpointUrl}/v1/chat/completions`;
});
afterAll(async () => {
  warned.mockRestore();
  await server.stop();
});
beforeEach(() => {
  forgetWarnings();
  warned.mockReset().mockReturnValue();
  server.answer = (outgoing) =>
    void outgoing.writeHead(200, { "content-type": "application/json" }).end(ANSWER);
});
afterEach(forgetWarnings);

/** Codes of the warnings so far. */
const codes = (): unknown[] =>
  warned.mock.calls.map(([, options]) => (options as { code?: string }).code);

const form = (): FormData => {
  const data = new FormData();
  data.set("model", "gpt-5");
  return data;
};
const TEXT = '{"model":"gpt-5"}';

it.each<[string, () => RequestInit, string | RegExp]>([
  ["a form", () => ({ body: form() }), /name="model"\r\n\r\ngpt-5/],
  ["parameters", () => ({ body: new URLSearchParams({ model: "gpt-5" }) }), "model=gpt-5"],
  ["a Blob", () => ({ body: new Blob([TEXT]) }), TEXT],
  ["a stream", () => ({ body: new Blob([TEXT]).stream(), duplex: "half" }), TEXT],
  ["a text that is not JSON", () => ({ body: `${TEXT},` }), `${TEXT},`],
  ["a list", () => ({ body: `[${TEXT}]` }), `[${TEXT}]`],
  ["bytes that are not UTF-8", () => ({ body: Buffer.from([0x22, 0xff, 0x22]) }), /^"\ufffd"$/],
])("sends %s as it is, reserves a request, and warns once", async (_name, init, expected) => {
  const { options, records, taken } = await meteredCalls();
  const limited = limitFetch(options);
  for (let calls = 0; calls < 2; calls += 1) {
    const response = await limited(url, { method: "POST", ...init() });
    expect(await response.text()).toBe(ANSWER);
    expect(server.seen.at(-1)!.body).toMatch(
      typeof expected === "string" ? literally(expected) : expected,
    );
  }
  expect(records[0]).toMatchObject({
    model: "unknown",
    estimate: { input: 0, output: 0 },
    end: "complete",
    source: "reported",
    usage: { input: 7, output: 5 },
  });
  expect(await taken("unknown")).toEqual({ rpm: 2, tpm: 24 });
  expect(codes()).toEqual(["WARN_LIMITER_BODY_UNREADABLE"]);
  expect(warned.mock.calls[0]![0]).toContain("/v1/chat/completions");
});

it("does not ask an estimator about a body that cannot be read", async () => {
  const estimator = { estimate: () => ({ input: 5_000, output: 1_000 }) };
  const { options, records, taken } = await meteredCalls({ estimator });
  server.answer = (outgoing) =>
    void outgoing.writeHead(200, { "content-type": "application/json" }).end('{"choices":[]}');
  const limited = limitFetch({ ...options, otherPaths: "requests" });
  await (await limited(`${server.endpointUrl}/v1/models`)).text();
  await (await limited(url, { method: "POST", body: new Blob([TEXT]) })).text();
  expect(records.map(({ estimate }) => estimate.input)).toEqual([0, 0]);
  expect(await taken("unknown")).toEqual({ rpm: 2 });
  await (await limited(url, { method: "POST", body: TEXT })).text();
  expect(await taken("gpt-5")).toEqual({ rpm: 1, tpm: 5_000 });
});

it("passes what is not a model call, or charges a request for it", async () => {
  const { options, records, taken } = await meteredCalls();
  const models = `${server.endpointUrl}/v1/models`;
  await (await limitFetch(options)(models)).text();
  expect(records).toEqual([]);
  await (await limitFetch({ ...options, otherPaths: "requests" })(models)).text();
  expect(records).toMatchObject([{ model: "unknown", end: "complete" }]);
  expect(await taken("unknown")).toEqual({ rpm: 1 });
});

it("sends with the fetch that it is given", async () => {
  const { options, taken } = await meteredCalls();
  const sent: unknown[] = [];
  const limited = limitFetch(options, function send(this: unknown, input, init) {
    sent.push(this, input, init);
    return fetch(input, init);
  });
  const init = { method: "POST", body: TEXT };
  await (await limited(url, init)).text();
  expect(sent).toEqual([undefined, url, init]);
  expect(await taken("gpt-5")).toEqual({ rpm: 1, tpm: 12 });
});

it("refuses options and arguments that cannot be right", async () => {
  const { options } = await meteredCalls();
  const given = (changes: object, fetch?: unknown): (() => Fetch) => {
    return () => limitFetch({ ...options, ...changes }, fetch as Fetch);
  };
  expect(given({ refusal: "ignore" })).toThrow(/refusal/);
  expect(given({ usage: true })).toThrow(/usage/);
  expect(given({ otherPaths: "block" })).toThrow(/otherPaths/);
  expect(given({ otherPath: "pass" })).toThrow("did you mean otherPaths?");
  expect(given({}, "fetch")).toThrow("must be a function");
  expect(() => limitFetch(undefined as never)).toThrow(
    "must be an object of options of limitFetch",
  );
});

it("throws an error with advice if it is used as a middleware", async () => {
  const { options } = await meteredCalls();
  const call = limitFetch(options)({ url } as Request, vi.fn() as never);
  await expect(call).rejects.toThrow(/limitFetch does not return a middleware/);
});

it("takes null for options, as fetch does", async () => {
  const { options, taken } = await meteredCalls();
  const request = new Request(url, { method: "POST", body: TEXT });
  await (await limitFetch(options)(request, null as never)).text();
  expect(await taken("unknown")).toEqual({ rpm: 1, tpm: 12 });
});

it("lets fetch refuse an invalid URL", async () => {
  const { options, records } = await meteredCalls();
  await expect(limitFetch(options)("/v1/messages", { method: "POST" })).rejects.toThrow(TypeError);
  expect(records).toEqual([]);
});

function literally(text: string): RegExp {
  return new RegExp(`^${text.replaceAll(/[[\]{}]/g, String.raw`\$&`)}$`);
}
