import { expect, it } from "vitest";
import { AskingFetch, withQuestion } from "./asked-usage.ts";
import { readBody, sentRequest } from "./sent-request.ts";

const asked = (text: string): string | undefined => withQuestion(readBody(text));

it("changes nothing else of a body, also what JavaScript would write in another way", () => {
  expect(asked(' {\n "stream": true, "seed": 12345678901234567890, "x": "$&\\u0041{"}')).toBe(
    ' {"stream_options":{"include_usage":true},\n "stream": true, "seed": 12345678901234567890, "x": "$&\\u0041{"}',
  );
});

it.each([
  ['{"stream":true,"stream_options":null}', { include_usage: true }],
  ['{"stream":true,"stream_options":{}}', { include_usage: true }],
  [
    '{"stream":true,"stream_options":{"include_obfuscation":false}}',
    { include_obfuscation: false, include_usage: true },
  ],
])("adds to %s", (text, options) => {
  expect(JSON.parse(asked(text)!)).toEqual({ stream: true, stream_options: options });
});

it.each([
  "{}",
  '{"stream":false}',
  '{"stream":"true"}',
  '{"stream":null}',
  '{"stream":true,"stream_options":{"include_usage":true}}',
  '{"stream":true,"stream_options":{"include_usage":false}}',
  '{"stream":true,"stream_options":{"include_usage":null}}',
  '{"stream":true,"stream_options":"yes"}',
  '{"stream":true,"stream_options":[]}',
  "no JSON",
  '[{"stream":true}]',
])("leaves %s as it is", (text) => {
  expect(asked(text)).toBeUndefined();
});

it("leaves a body alone that cannot be read", () => {
  expect(withQuestion(readBody(new FormData()))).toBeUndefined();
});

it("the last 100 servers that do not know the question are not asked again", async () => {
  let questions = 0;
  const asking = new AskingFetch(async (_input, init) => {
    if (!(init!.body as string).includes("stream_options")) return new Response();
    questions += 1;
    return new Response("Unknown: stream_options", { status: 400 });
  }, "ask");
  const isAsked = async (server: number): Promise<boolean> => {
    const before = questions;
    const url = `http://server-${server}/chat/completions`;
    const init = { method: "POST", body: '{"stream":true}' };
    await asking.send(sentRequest(url, init)!, [url, init]);
    return questions > before;
  };
  for (let server = 0; server <= 100; server += 1) expect(await isAsked(server)).toBe(true);
  expect([await isAsked(1), await isAsked(100)]).toEqual([false, false]);
  expect(await isAsked(0)).toBe(true);
});
