import * as fc from "fast-check";
import { expect, it } from "vitest";
import { AskingFetch, addQuestion } from "./asked-usage.ts";
import { readBody, parseSentRequest } from "./parse-sent-request.ts";

const asked = (text: string): string | undefined => addQuestion(readBody(text));

it("changes nothing else of a body, also what JavaScript would write in another way", () => {
  expect(asked(' {\n "stream": true, "seed": 12345678901234567890, "x": "$&\\u0041{"}')).toBe(
    ' {"stream_options":{"include_usage":true},\n "stream": true, "seed": 12345678901234567890, "x": "$&\\u0041{"}',
  );
});

const OTHERS = '"seed":12345678901234567890,"x":"\\u0041\\"{","stream":true';

it.each([
  ["null", '{"include_usage":true}'],
  [" {} ", '{"include_usage":true}'],
  ['{"x":null, "y":[{}] }', '{"include_usage":true,"x":null, "y":[{}] }'],
])("changes only the options of %s, and nothing else of the body", (options, asking) => {
  for (const [before, after] of [
    [`{${OTHERS},"stream_options":`, "}"],
    [`{"stream_options":`, `,${OTHERS}}\n`],
    // Others of that name, in strings, in other objects and before.
    [
      `{"stream_options":5,"tools":[{"stream_options":null},"stream_options"],${OTHERS},"stream\\u005foptions" :`,
      ',"end":{"stream_options":{}}}',
    ],
  ] as const)
    expect(asked(`${before}${options}${after}`)).toBe(`${before}${asking}${after}`);
});

it("whatever a body holds, it stays the same, and asks", () => {
  const options = fc.oneof(fc.constant(null), fc.dictionary(fc.string(), fc.jsonValue()));
  const others = fc.dictionary(fc.string(), fc.jsonValue());
  const indents = fc.constantFrom(0, 2, "\t");
  fc.assert(
    fc.property(others, options, others, indents, (before, stream_options, after, indent) => {
      const body = { ...before, stream_options, ...after, stream: true };
      fc.pre(
        !Object.hasOwn(stream_options ?? {}, "include_usage") &&
          !Object.hasOwn(after, "stream_options"),
      );
      const asking = { include_usage: true, ...stream_options };
      const text = asked(JSON.stringify(body, undefined, indent))!;
      expect(JSON.stringify(JSON.parse(text))).toBe(
        JSON.stringify({ ...body, stream_options: asking }),
      );
    }),
  );
});

it.each([64, 5_000, 1_000_000])("finds the options however deep the rest is: %i", (depth) => {
  const deep = `${"[".repeat(depth)}${"]".repeat(depth)}`;
  const body = (options: string): string =>
    `{"stream":true,"messages":${deep},"stream_options":${options},"tools":${deep}}`;
  expect(asked(body("{}")) === body('{"include_usage":true}')).toBe(true);
  expect(asked(body('{"include_usage":false}'))).toBeUndefined();
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
  expect(addQuestion(readBody(new FormData()))).toBeUndefined();
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
    await asking.send(parseSentRequest(url, init)!, [url, init]);
    return questions > before;
  };
  for (let server = 0; server <= 100; server += 1) expect(await isAsked(server)).toBe(true);
  expect([await isAsked(1), await isAsked(100)]).toEqual([false, false]);
  expect(await isAsked(0)).toBe(true);
});
