/*
 * What metering adds to a model call: `npm run bench:llm`. The provider is a function in this
 * process that answers at once, so the difference to the same call without the limiter is all
 * ours. Both take turns; everything that is printed is a median of processor time, all threads of
 * the process included. A real provider takes a second or more.
 *
 * Every reader checks that it got all of the answer, and every table row that exactly what the
 * provider reported was charged for each call; otherwise the benchmark fails. `--quick` only shows
 * that.
 */
import { toLlmCall } from "#limiter/llm/estimating/to-llm-call";
import { Limit, RateLimiter } from "zae-limiter";
import { limitLanguageModel } from "zae-limiter/ai-sdk";
import { learningEstimator, METERING } from "zae-limiter/llm";
import { MemoryRepository } from "zae-limiter/memory";
import { limitFetch } from "zae-limiter/openai";
import {
  interleave,
  median,
  printTable,
  type Contestant,
  type Measured,
  type Pace,
} from "./harness.ts";

type Fetch = typeof globalThis.fetch;

/** The work of a contestant. */
type Work = () => Promise<void>;

const nothing: Work = async () => {};

const CHAT = "https://provider.test/v1/chat/completions";
/** Events of a stream whose chunks are counted. */
const CHUNKS = 1000;
const CHUNK_GOAL_US = 5;
const CALL_GOAL_US = 50;
const STREAM_GOAL_MB = 50;
/** What a socket delivers at once. */
const NETWORK_CHUNK = 64 * 1024;
const STREAM_BYTES = 8 * 1024 * 1024;

const INPUT_TOKENS = 250;
const OUTPUT_TOKENS = 20;
const USAGE = {
  prompt_tokens: INPUT_TOKENS,
  completion_tokens: OUTPUT_TOKENS,
  total_tokens: INPUT_TOKENS + OUTPUT_TOKENS,
};

const ANSWER = {
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 0,
  model: "gpt-5-mini",
  choices: [{ index: 0, message: { role: "assistant", content: "Hello!" }, finish_reason: "stop" }],
  usage: USAGE,
};

const answer: Fetch = async () => Response.json(ANSWER);

const EVENT = formatEvent([{ index: 0, delta: { content: "a few words of text " } }]);
const FINISH = formatEvent([{ index: 0, delta: {}, finish_reason: "stop" }]);
const USAGE_EVENT = encode(formatEvent([], USAGE));
const DONE = encode("data: [DONE]\n\n");

const quick = process.argv.includes("--quick");
const pace = quick
  ? { rounds: 1, turnMs: 5, warmUp: 1 }
  : { rounds: 31, turnMs: 60, warmUp: 20, warmUpMs: 500 };
/** The first thousands of calls take several times as long: a call runs a lot of code once. */
const longWarmUp = quick ? {} : { warmUp: 20_000 };
if (quick)
  console.log("A quick run: it shows that the benchmark works, and its numbers say nothing.\n");

const repository = new MemoryRepository();
const limiter = new RateLimiter({ repository });
const plenty = { capacity: 1e12, refillAmount: 1, refillPeriodSeconds: 3600 };
await repository.setSystemDefaults([
  Limit.custom({ name: "rpm", ...plenty }),
  Limit.custom({ name: "tpm", ...plenty }),
]);

const rows: (readonly string[])[] = [];
await measureCalls();
await measureStreams();
await measureEstimates();
printTable(["CPU", "without", "with the limiter", "added", "goal", "verdict"], rows);

async function measureCalls(): Promise<void> {
  for (const [what, bytes, goal] of [
    ["a call of 1 kB, fetch", 1_000, CALL_GOAL_US], // first: it warms the others up
    ["a call of 10 kB, fetch", 10_000, undefined],
    ["a call of 1 MB, fetch", 1_000_000, undefined],
  ] as const) {
    const init = { method: "POST", body: JSON.stringify(buildBody(bytes)) };
    const read = async (fetch: Fetch): Promise<void> => {
      const response = await fetch(CHAT, init);
      const { usage } = (await response.json()) as typeof ANSWER;
      assertEqual(usage.total_tokens, USAGE.total_tokens, "tokens of an answer");
    };
    const limited = limitFetch(meterAs(what), answer);
    const measured = await race(
      what,
      () => read(answer),
      () => read(limited),
      goal === undefined ? {} : longWarmUp,
    );
    addRow(what, measured, 1, goal);
  }
  const what = "a call of 1 kB, AI SDK";
  const middleware = limitLanguageModel(meterAs(what));
  const options = generation();
  const measured = await race(
    what,
    async () => void (await options.doGenerate()),
    async () => void (await middleware.wrapGenerate(options)),
    longWarmUp,
  );
  addRow(what, measured, 1, CALL_GOAL_US);
}

async function measureStreams(): Promise<void> {
  const chunks = Array.from({ length: CHUNKS }, () => encode(EVENT));
  const asked = "a streamed chunk";
  addRow(asked, await raceStreams(asked, chunks, "leave"), CHUNKS, CHUNK_GOAL_US);
  const withheld = "a streamed chunk, usage withheld";
  addRow(withheld, await raceStreams(withheld, chunks, "ask"), CHUNKS, CHUNK_GOAL_US);

  const what = "a stream in chunks of 64 kB";
  const whole = encode(EVENT.repeat(Math.ceil(STREAM_BYTES / EVENT.length)));
  const pieces: Uint8Array[] = [];
  for (let from = 0; from < whole.length; from += NETWORK_CHUNK)
    pieces.push(whole.subarray(from, from + NETWORK_CHUNK));
  const [rate, limitedRate] = (await raceStreams(what, pieces, "leave")).map(
    ({ cpuNs }) => (whole.length * 1e3) / median(cpuNs),
  );
  rows.push([
    what,
    `${rate!.toFixed(0)} MB/s`,
    `${limitedRate!.toFixed(0)} MB/s`,
    "",
    `≥ ${STREAM_GOAL_MB} MB/s`,
    limitedRate! >= STREAM_GOAL_MB ? "met" : "MISSED",
  ]);
}

/** The two parts of a large call: its body is parsed, and then it is estimated. */
async function measureEstimates(): Promise<void> {
  const estimator = learningEstimator();
  for (const [size, bytes] of [
    ["10 kB", 10_000],
    ["1 MB", 1_000_000],
  ] as const) {
    const text = JSON.stringify(buildBody(bytes));
    const body: unknown = JSON.parse(text);
    const parse: Work = async () => void JSON.parse(text);
    const estimate: Work = async () => {
      const { input } = estimator.estimate(toLlmCall(body));
      assertEqual(input, bytes / 4, "estimated tokens");
    };
    addRow(`only JSON.parse of ${size}`, await takeTurns([nothing, parse]), 1, undefined);
    addRow(`only the estimate of ${size}`, await takeTurns([nothing, estimate]), 1, undefined);
  }
}

/**
 * The same stream without the limiter and with it. "leave": the caller asks for the usage and gets
 * it. "ask": only the limiter does, so that every event is looked at before it is passed on.
 */
function raceStreams(
  what: string,
  chunks: readonly Uint8Array[],
  usage: "ask" | "leave",
): Promise<readonly [Measured, Measured]> {
  const provider = buildStreaming([...chunks, encode(FINISH)]);
  const isAsked = usage === "leave";
  const request = { ...buildBody(1_000), stream: true };
  const asked = { ...request, stream_options: { include_usage: true } };
  const init = { method: "POST", body: JSON.stringify(isAsked ? asked : request) };
  const seen = [...chunks, encode(FINISH), ...(isAsked ? [USAGE_EVENT] : []), DONE];
  const bytes = seen.reduce((sum, { length }) => sum + length, 0);
  const drain = async (fetch: Fetch): Promise<void> => {
    const { body } = await fetch(CHAT, init);
    const reader = body!.getReader();
    let read = 0;
    for (let part = await reader.read(); !part.done; part = await reader.read())
      read += part.value.length;
    assertEqual(read, bytes, "bytes of a stream");
  };
  const limited = limitFetch({ ...meterAs(what), usage }, provider);
  return race(
    what,
    () => drain(provider),
    () => drain(limited),
  );
}

/** The same work without the limiter and with it, in turns. What was charged must be right. */
async function race(
  what: string,
  without: Work,
  withLimiter: Work,
  warmUp: Partial<Pace> = {},
): Promise<readonly [Measured, Measured]> {
  let calls = 0;
  const count: Work = () => {
    calls += 1;
    return withLimiter();
  };
  const measured = await takeTurns([without, count], warmUp);
  const { total, requests } = await repository.getUsageSummary({ entityId: toEntity(what) });
  assertEqual(requests, calls, `calls that were charged for ${what}`);
  assertEqual(total["rpm"], calls, `rpm of ${what}`);
  assertEqual(total["tpm"], calls * USAGE.total_tokens, `tpm of ${what}`);
  return measured;
}

/** Lets two kinds of work take turns. */
async function takeTurns(
  works: readonly [Work, Work],
  warmUp: Partial<Pace> = {},
): Promise<readonly [Measured, Measured]> {
  const contestants = works.map((work, index): Contestant => ({
    name: index === 0 ? "without" : "with",
    async run(operations) {
      for (let count = 0; count < operations; count += 1) await work();
    },
  }));
  const [without, withLimiter] = await interleave(contestants, { ...pace, ...warmUp });
  return [without!, withLimiter!];
}

function addRow(
  what: string,
  [without, withLimiter]: readonly [Measured, Measured],
  parts: number,
  goalUs: number | undefined,
): void {
  const us = (cpuNs: number): string => `${(cpuNs / parts / 1000).toFixed(1)} µs`;
  const added = median(withLimiter.cpuNs.map((cpuNs, round) => cpuNs - without.cpuNs[round]!));
  const isMet = goalUs === undefined || added / parts / 1000 <= goalUs;
  rows.push([
    what,
    us(median(without.cpuNs)),
    us(median(withLimiter.cpuNs)),
    us(added),
    goalUs === undefined ? "none" : `≤ ${goalUs} µs`,
    goalUs === undefined ? "–" : isMet ? "met" : "MISSED",
  ]);
}

/** Each row has an entity of its own, whose usage shows what was charged. */
function meterAs(what: string) {
  return { limiter, entity: toEntity(what), metering: METERING.openai };
}

function toEntity(what: string): string {
  return what.replaceAll(/\W+/g, "-");
}

/** A call of the AI SDK, with a model that answers at once. */
function generation() {
  const usage = { inputTokens: { total: INPUT_TOKENS }, outputTokens: { total: OUTPUT_TOKENS } };
  const content = [{ type: "text", text: buildBody(1_000).messages[0]!.content }];
  return {
    doGenerate: async () => ({ content: [{ type: "text", text: "Hello!" }], usage }),
    params: { prompt: [{ role: "user", content }] },
    model: { provider: "test", modelId: "gpt-5-mini" },
  };
}

/** A provider that reports the usage of its streams to those who ask for it. */
function buildStreaming(chunks: readonly Uint8Array[]): Fetch {
  return async (_, init) => {
    const isAsked = (init!.body as string).includes("include_usage");
    const all = isAsked ? [...chunks, USAGE_EVENT, DONE] : [...chunks, DONE];
    let next = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (next < all.length) controller.enqueue(all[next++]!);
        else controller.close();
      },
    });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  };
}

/** A request with so many bytes of text. */
function buildBody(bytes: number): {
  readonly model: string;
  readonly messages: readonly { readonly role: string; readonly content: string }[];
} {
  const content = "All work and no play makes a dull request. ".repeat(Math.ceil(bytes / 43));
  return { model: "gpt-5-mini", messages: [{ role: "user", content: content.slice(0, bytes) }] };
}

function formatEvent(choices: readonly object[], usage?: object): string {
  const { id, created, model } = ANSWER;
  const event = { id, object: "chat.completion.chunk", created, model, choices, usage };
  return `data: ${JSON.stringify(event)}\n\n`;
}

function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function assertEqual(actual: unknown, expected: unknown, what: string): void {
  if (actual !== expected)
    throw new Error(`${what}: ${String(expected)} were expected, not ${String(actual)}`);
}
