/*
 * One of several processes that share an account of a provider, by one file: it calls the provider
 * in a few loops through `limitFetch` until it is told to stop, and then says how it was answered.
 * A loop that is refused by the provider waits as long as the provider says, as its SDK does.
 * Usage: node worker.js FILE URL KEY with|without
 */
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { RateLimiter } from "zae-limiter";
import { METERING, simpleEstimator } from "zae-limiter/llm";
import { limitFetch } from "zae-limiter/openai";
import { SqliteRepository } from "zae-limiter/sqlite";

/** How the provider has answered, whoever asked. */
export interface Answers {
  granted: number;
  refused: number;
}

/** What a call costs: ten tokens of the question, and those of its answer. */
export const CALL_TOKENS = 100;
const ANSWER_TOKENS = 90;
const QUESTION = "A question of thirty bytes....";

/** Calls that each process has under way. */
const LOOPS = 2;

/** Calls before it begins, so that all code has run: on a busy machine that takes seconds. */
const WARMING_CALLS = 10;

/** The model that is called, which is the resource too. */
export const MODEL = "gpt-5";

/** The account that all keys belong to. */
export const ACCOUNT = "provider";

if (process.argv[1]?.endsWith("worker.js")) await work(process.argv.slice(2));

/** Asks the provider once. Most of what that costs is the tokens of the answer. */
export async function call(
  url: string,
  fetch: typeof globalThis.fetch,
  tokens = ANSWER_TOKENS,
): Promise<Response> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-local-answer": String(tokens) },
    body: JSON.stringify({
      model: MODEL,
      max_tokens: tokens,
      messages: [{ role: "user", content: QUESTION }],
    }),
  });
  await response.arrayBuffer();
  return response;
}

/** A fetch that counts how it was answered. */
export function readCounted(answers: Answers): typeof globalThis.fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    if (response.status === 429) answers.refused += 1;
    else if (response.ok) answers.granted += 1;
    else throw new Error(`The provider answered with ${response.status}.`);
    return response;
  };
}

async function work([path, url, key, mirror]: readonly string[]): Promise<void> {
  const repository = await SqliteRepository.open(path!);
  const limiter = new RateLimiter({ repository });
  const answers: Answers = { granted: 0, refused: 0 };
  const fetch = limitFetch(
    {
      limiter,
      entity: key!,
      metering: METERING.openai,
      estimator: simpleEstimator({ output: "max" }),
      waitUpToMs: 60_000,
      ...(mirror === "with" && { upstream: { entityId: ACCOUNT } }),
    },
    readCounted(answers),
  );
  const over = new AbortController();
  const loop = async (): Promise<void> => {
    while (!over.signal.aborted) {
      const { status, headers } = await call(url!, fetch);
      if (status === 429) await sleep(Number(headers.get("retry-after-ms")));
    }
  };
  for (let count = 0; count < WARMING_CALLS; count += 1) await call(url!, fetch);
  process.send!("ready");
  await once(process, "message");
  Object.assign(answers, { granted: 0, refused: 0 });
  const loops = Promise.all(Array.from({ length: LOOPS }, loop));
  loops.catch((error: unknown) => {
    console.error(error);
    process.exit(1);
  });
  await once(process, "message");
  process.send!(answers);
  over.abort();
  process.exit();
}
