import { expect, it } from "vitest";
import { parseSentRequest, toLlmRequest, type SentRequest } from "./parse-sent-request.ts";

const URL_OF_CHAT = "http://localhost/v1/chat/completions";
const JSON_BODY = '{"model":"gpt-5","stream":true}';

const sent = (init: RequestInit, url = URL_OF_CHAT): SentRequest =>
  parseSentRequest(url, { method: "POST", ...init })!;

it.each([
  ["a string", JSON_BODY],
  ["a Buffer that is part of a larger one", Buffer.from(`xx${JSON_BODY}xx`).subarray(2, -2)],
  ["a Uint8Array", new TextEncoder().encode(JSON_BODY)],
  ["an ArrayBuffer", new TextEncoder().encode(JSON_BODY).buffer],
  ["a DataView", new DataView(new TextEncoder().encode(JSON_BODY).buffer)],
])("reads %s", (_name, body) => {
  const { model, body: read, hasBody } = sent({ body });
  expect(read).toEqual({ text: JSON_BODY, json: { model: "gpt-5", stream: true } });
  expect([model, hasBody]).toEqual(["gpt-5", true]);
});

it.each([
  ["a stream", new Blob([JSON_BODY]).stream()],
  ["a form", new FormData()],
  ["parameters", new URLSearchParams({ model: "gpt-5" })],
  ["a Blob", new Blob([JSON_BODY])],
  ["text in another encoding", Buffer.from('{"model":"é"}', "latin1")],
])("leaves %s alone", (_name, body) => {
  const { model, body: read, hasBody } = sent({ body });
  expect(read).toEqual({ text: undefined, json: undefined });
  expect([model, hasBody]).toEqual(["unknown", true]);
  if (body instanceof ReadableStream) expect(body.locked).toBe(false);
});

it.each(["", "{", "[]", '"text"', "null", "7", '[{"model":"gpt-5"}]', "\u0000", "model=gpt-5"])(
  "%j is not a JSON object",
  (body) => {
    expect(sent({ body }).body).toEqual({ text: body, json: undefined });
    expect(sent({ body }).model).toBe("unknown");
  },
);

it("takes the body of the options, and never that of a Request", async () => {
  const request = new Request(URL_OF_CHAT, { method: "POST", body: '{"model":"of-request"}' });
  expect(parseSentRequest(request)).toMatchObject({ model: "unknown", hasBody: true });
  expect(parseSentRequest(request, { body: JSON_BODY })).toMatchObject({ model: "gpt-5" });
  expect(await request.text()).toBe('{"model":"of-request"}');
  expect(parseSentRequest(new Request(URL_OF_CHAT, { method: "POST" }))!.hasBody).toBe(false);
});

it.each([
  ['{"model":7}', "unknown"],
  ['{"model":null}', "unknown"],
  ['{"model":{"name":"gpt-5"}}', "unknown"],
  ['{"model":""}', "unknown"],
  ["{}", "unknown"],
  ['{"model":" "}', " "],
  ['{"model":"@cf/モデル\\u0000"}', "@cf/モデル\u0000"],
])("the model of %s is %j", (body, model) => {
  expect(sent({ body }).model).toBe(model);
});

it("takes the model from a path of Azure, if the body has none", () => {
  const azure = "http://localhost/openai/deployments/mine/chat/completions?api-version=1";
  expect(sent({ body: "{}" }, azure).model).toBe("mine");
  expect(sent({ body: JSON_BODY }, azure).model).toBe("gpt-5");
  expect(sent({ body: new FormData() }, azure).model).toBe("mine");
});

it("options win over a Request, as for fetch", () => {
  const [ofRequest, ofOptions] = [new AbortController(), new AbortController()];
  const request = new Request(URL_OF_CHAT, {
    method: "POST",
    headers: { "x-from": "request", "anthropic-version": "2023-06-01" },
    signal: ofRequest.signal,
  });
  const alone = parseSentRequest(request)!;
  expect(alone).toMatchObject({ protocol: "chat", provider: "anthropic" });
  expect(alone.headers.get("x-from")).toBe("request");
  ofRequest.abort();
  expect(alone.signal?.aborted).toBe(true);
  const init = { method: "get", headers: { "x-from": "options" }, signal: ofOptions.signal };
  const both = parseSentRequest(request, init)!;
  expect(both.signal).toBe(ofOptions.signal);
  expect(both).toMatchObject({ protocol: undefined, provider: "openai" });
  expect(both.headers.get("x-from")).toBe("options");
  expect(parseSentRequest(request, { signal: null })!.signal).toBeUndefined();
});

it("takes methods in lower case, URLs of all kinds, and no invalid URL", () => {
  expect(parseSentRequest(URL_OF_CHAT, { method: "post" })!.protocol).toBe("chat");
  expect(parseSentRequest(new URL(URL_OF_CHAT))!.url.href).toBe(URL_OF_CHAT);
  expect(parseSentRequest(URL_OF_CHAT)!.protocol).toBeUndefined();
  for (const url of ["", "/v1/messages", "http://"]) expect(parseSentRequest(url)).toBeUndefined();
});

it("gives entity copies, which change nothing of the request", () => {
  const headers = new Headers({ authorization: "Bearer key" });
  const told = toLlmRequest(sent({ body: JSON_BODY, headers }));
  expect({ ...told }).toMatchObject({ model: "gpt-5", url: new URL(URL_OF_CHAT) });
  told.headers.delete("authorization");
  expect(headers.get("authorization")).toBe("Bearer key");
});
