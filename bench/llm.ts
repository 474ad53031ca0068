/*
 * What metering adds to a call of a model: `npm run bench:llm`. The provider is a function in this
 * process that answers at once, so the difference to the same call without the limiter is all
 * ours. Both take turns, and what is printed are medians of processor time. A real provider takes a
 * second or more. `--quick` only shows that everything runs.
 */
import { Limit, RateLimiter } from "zae-limiter";
import { limitLanguageModel } from "zae-limiter/ai-sdk";
import { METERING } from "zae-limiter/llm";
import { MemoryRepository } from "zae-limiter/memory";
import { limitFetch } from "zae-limiter/openai";
import { interleave, median, printTable, type Contestant, type Measured } from "./harness.ts";

type Fetch = typeof globalThis.fetch;

const CHAT = "https://provider.test/v1/chat/completions";
/** Events of a stream whose chunks are counted. */
const CHUNKS = 1000;
const CHUNK_GOAL_US = 5;
const CALL_GOAL_US = 50;
const STREAM_GOAL_MB = 50;
/** What a socket delivers at once. */
const NETWORK_CHUNK = 64 * 1024;
const STREAM_BYTES = 8 * 1024 * 1024;

const ANSWER = {
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 0,
  model: "gpt-5-mini",
  choices: [{ index: 0, message: { role: "assistant", content: "Hello!" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 250, completion_tokens: 20, total_tokens: 270 },
};

const DONE = "data: [DONE]\n\n";

const quick = process.argv.includes("--quick");
const pace = quick
  ? { rounds: 1, turnMs: 5, warmUp: 1 }
  : { rounds: 31, turnMs: 60, warmUp: 20, warmUpMs: 500 };

const repository = new MemoryRepository();
const plenty = { capacity: 1e12, refillAmount: 1, refillPeriodSeconds: 3600 };
await repository.setSystemDefaults([
  Limit.custom({ name: "rpm", ...plenty }),
  Limit.custom({ name: "tpm", ...plenty }),
]);
const metered = {
  limiter: new RateLimiter({ repository }),
  entity: "key-1",
  metering: METERING.openai,
};

const rows: (readonly string[])[] = [];
await measureCalls();
await measureStreams();
printTable(["Added by the limiter", "without", "with", "added", "goal", "verdict"], rows);

async function measureCalls(): Promise<void> {
  const answered = providerOf(() => Response.json(ANSWER));
  for (const [what, bytes, goal] of [
    ["a call of 1 kB, fetch", 1_000, CALL_GOAL_US],
    ["a call of 10 kB, fetch: mostly its estimate", 10_000, undefined],
    ["a call of 1 MB, fetch: mostly its estimate", 1_000_000, undefined],
  ] as const) {
    const init = { method: "POST", body: JSON.stringify(bodyOf(bytes)) };
    const read = async (fetch: Fetch): Promise<void> =>
      void (await (await fetch(CHAT, init)).json());
    const [without, withLimiter] = await race(answered, read);
    addRow(what, without, withLimiter, 1, goal);
  }
  const [without, withLimiter] = await interleave([generating(false), generating(true)], pace);
  addRow("a call of 1 kB, AI SDK", without!, withLimiter!, 1, CALL_GOAL_US);
}

async function measureStreams(): Promise<void> {
  const events = Array.from({ length: CHUNKS }, () => encoded(chunkEvent("a few words of text ")));
  const [without, withLimiter] = await race(streaming([...events, encoded(DONE)]), drain);
  addRow("a streamed chunk", without, withLimiter, CHUNKS, CHUNK_GOAL_US);

  const text = chunkEvent("a few words of text ");
  const whole = encoded(text.repeat(Math.ceil(STREAM_BYTES / text.length)));
  const pieces: Uint8Array[] = [];
  for (let from = 0; from < whole.length; from += NETWORK_CHUNK)
    pieces.push(whole.subarray(from, from + NETWORK_CHUNK));
  const large = await race(streaming([...pieces, encoded(DONE)]), drain);
  const [rate, limitedRate] = large.map(
    ({ wallNs }) => whole.length / 1e6 / (median(wallNs) / 1e9),
  );
  rows.push([
    "a stream in chunks of 64 kB",
    `${rate!.toFixed(0)} MB/s`,
    `${limitedRate!.toFixed(0)} MB/s`,
    "",
    `≥ ${STREAM_GOAL_MB} MB/s`,
    limitedRate! >= STREAM_GOAL_MB ? "met" : "MISSED",
  ]);
}

/** The same work without the limiter and with it, in turns. */
async function race(
  fetch: Fetch,
  work: (fetch: Fetch) => Promise<void>,
): Promise<readonly [Measured, Measured]> {
  const limited = limitFetch({ ...metered, usage: "leave" }, fetch);
  const contestants = [fetch, limited].map((each, index): Contestant => ({
    name: index === 0 ? "without" : "with",
    async run(operations) {
      for (let count = 0; count < operations; count += 1) await work(each);
    },
  }));
  const [without, withLimiter] = await interleave(contestants, pace);
  return [without!, withLimiter!];
}

function addRow(
  what: string,
  without: Measured,
  withLimiter: Measured,
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

/** The middleware of the AI SDK around a model that answers at once. */
function generating(isLimited: boolean): Contestant {
  const middleware = limitLanguageModel(metered);
  const content = [{ type: "text", text: bodyOf(1_000).messages[0]!.content }];
  const usage = { inputTokens: { total: 250 }, outputTokens: { total: 20 } };
  const options = {
    doGenerate: async () => ({ content: [{ type: "text", text: "Hello!" }], usage }),
    params: { prompt: [{ role: "user", content }] },
    model: { provider: "test", modelId: "gpt-5-mini" },
  };
  return {
    name: isLimited ? "with" : "without",
    async run(operations) {
      for (let count = 0; count < operations; count += 1)
        await (isLimited ? middleware.wrapGenerate(options) : options.doGenerate());
    },
  };
}

function providerOf(answer: () => Response): Fetch {
  return async () => answer();
}

function streaming(chunks: readonly Uint8Array[]): Fetch {
  return providerOf(() => {
    let next = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (next < chunks.length) controller.enqueue(chunks[next++]!);
        else controller.close();
      },
    });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  });
}

async function drain(fetch: Fetch): Promise<void> {
  const init = { method: "POST", body: JSON.stringify({ ...bodyOf(1_000), stream: true }) };
  const { body } = await fetch(CHAT, init);
  const reader = body!.getReader();
  while (!(await reader.read()).done);
}

function bodyOf(bytes: number): {
  readonly model: string;
  readonly messages: readonly { readonly role: string; readonly content: string }[];
} {
  const content = "All work and no play makes a dull request. ".repeat(Math.ceil(bytes / 43));
  return { model: "gpt-5-mini", messages: [{ role: "user", content: content.slice(0, bytes) }] };
}

function chunkEvent(content: string): string {
  const event = {
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    created: 0,
    model: "gpt-5-mini",
    choices: [{ index: 0, delta: { content }, finish_reason: null }],
  };
  return `data: ${JSON.stringify(event)}\n\n`;
}

function encoded(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
