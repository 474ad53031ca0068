/* Requests for streams of chat completions ask for their usage. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { limitFetch } from "zae-limiter/openai";
import { startScriptedServer, type ScriptedServer } from "../../support/scripted-server.ts";
import { meteredCalls } from "../metered-calls.ts";
import {
  answerJson,
  event,
  FINISHED,
  STREAMS,
  USAGE_CHUNK,
  posted,
  type Posted,
} from "./provider-answers.ts";

let server: ScriptedServer;
beforeAll(async () => {
  server = await startScriptedServer();
});
afterAll(() => server.stop());

const post = (path: string, stream = false): Posted => posted(server.endpointUrl, path, stream);

it("a stream from which an event is left out has no content length", async () => {
  const { options } = await meteredCalls();
  const text = [FINISHED, USAGE_CHUNK, event("[DONE]")].join("");
  const length = String(text.length);
  server.answer = (outgoing) => {
    const headers = { "content-type": "text/event-stream", "content-length": length };
    outgoing.writeHead(200, headers).end(text);
  };
  for (const [usage, expected] of [
    ["ask", null],
    ["leave", length],
  ] as const) {
    const response = await limitFetch({ ...options, usage })(...post("chat/completions", true));
    expect(response.headers.get("content-length")).toBe(expected);
    expect(await response.text()).toBe(usage === "ask" ? text.replace(USAGE_CHUNK, "") : text);
  }
});

describe("a server that does not know stream_options", () => {
  const asked = (): boolean[] =>
    server.seen.map(({ body }) => body.includes("include_usage")).slice(-seen());
  let before = 0;
  const seen = (): number => server.seen.length - before;

  /** Refuses requests with the option, with this status and message. */
  function refusing(status: number, words: string): void {
    before = server.seen.length;
    server.answer = (outgoing, { body }) => {
      if (body.includes("include_usage"))
        answerJson(outgoing, { error: { message: words } }, status);
      else
        outgoing
          .writeHead(200, { "content-type": "text/event-stream" })
          .end(STREAMS["chat/completions"]!.join(""));
    };
  }

  it.each([400, 422])("gets the request again as it was, and is left alone: %i", async (status) => {
    const { options, records, taken } = await meteredCalls();
    refusing(status, "stream_options: extra inputs are not permitted");
    const limited = limitFetch(options);
    const [url, init] = post("chat/completions", true);
    const sent = { ...init, headers: { "content-length": String(init.body.length) } };
    for (let calls = 0; calls < 2; calls += 1)
      expect(await (await limited(url, sent)).text()).toBe(STREAMS["chat/completions"]!.join(""));
    expect(asked()).toEqual([true, false, false]);
    expect(server.seen.at(-2)!.body).toBe(init.body);
    expect(records).toMatchObject([{ source: "counted" }, { source: "counted" }]);
    expect((await taken("gpt-5"))["rpm"]).toBe(2);
  });

  it("is asked again if it refuses the request in any case", async () => {
    const { options, taken } = await meteredCalls();
    const limited = limitFetch(options);
    before = server.seen.length;
    const error = { error: { message: "No messages in {stream_options: …}" } };
    server.answer = (outgoing) => answerJson(outgoing, error, 400);
    for (let calls = 0; calls < 2; calls += 1)
      expect(await (await limited(...post("chat/completions", true))).json()).toEqual(error);
    expect(asked()).toEqual([true, false, true, false]);
    expect(await taken("gpt-5")).toEqual({});
  });

  it("is not asked twice for other mistakes", async () => {
    const { options } = await meteredCalls();
    refusing(400, "There are no messages.");
    const response = await limitFetch(options)(...post("chat/completions", true));
    expect(await response.json()).toEqual({ error: { message: "There are no messages." } });
    expect(asked()).toEqual([true]);
  });

  it("other paths and callers who decide themselves are not changed", async () => {
    const { options } = await meteredCalls();
    before = server.seen.length;
    server.answer = (outgoing) => answerJson(outgoing, {});
    const limited = limitFetch(options);
    const [url] = post("chat/completions");
    const own = '{"model":"gpt-5","stream":true,"stream_options":{"include_usage":false}}';
    await limited(url, { method: "POST", body: own });
    await limited(...post("responses", true));
    await limited(...post("completions", true));
    expect(server.seen.slice(before).map(({ body }) => body)).toEqual([
      own,
      post("responses", true)[1].body,
      post("completions", true)[1].body,
    ]);
  });
});
