/*
 * An account that others use too: four processes on one SQLite file call a provider with a real
 * bucket, and a foreign client takes a part of what it grants. Both buckets are almost empty when
 * they begin, so that a short time shows what goes on forever.
 */
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { Limit, RateLimiter } from "zae-limiter";
import { SqliteRepository } from "zae-limiter/sqlite";
import { startProvider } from "../../../../../examples/local-provider/provider.ts";
import { temporaryFile } from "../../support/temporary-file.ts";
import { ACCOUNT, CALL_TOKENS, MODEL, call, readCounted, type Answers } from "./worker.ts";

const PROCESSES = 4;
const CALLS_PER_SECOND = 24;
const TOKENS_PER_MINUTE = CALLS_PER_SECOND * CALL_TOKENS * 60;
const ACCOUNT_LIMITS = { requestsPerMinute: 1_000_000, tokensPerMinute: TOKENS_PER_MINUTE };

/** What our bucket holds more than the provider's when they begin. */
const SURPLUS_CALLS = 2 * CALLS_PER_SECOND;

/** What the foreign client takes of it. */
const FOREIGN_CALLS_PER_SECOND = 5;

/** Without a mirror it is the same from the first second on. */
const DURATION_MS = { without: 2000, with: 7000 };

interface Outcome {
  readonly granted: number;
  readonly refused: number;
  /** 429s that our processes got, for each 1000 of their calls. */
  readonly refusedPerThousand: number;
  /** What the provider granted to all, as a share of its rate. */
  readonly used: number;
}

/** A busy machine only makes it worse, and a mirror that does not work fails each time. */
const ATTEMPTS = { retry: 2, timeout: 60_000 };

const title = "a mirrored account has five times fewer 429s, and uses the provider's rate";

it(title, ATTEMPTS, async () => {
  const without = await measure("without");
  const withMirror = await measure("with");
  console.log("429s of four processes that share an account:", { without, withMirror });
  expect(withMirror.refusedPerThousand * 5).toBeLessThanOrEqual(without.refusedPerThousand);
  expect(withMirror.used).toBeGreaterThanOrEqual(0.85);
});

async function measure(mirror: "with" | "without"): Promise<Outcome> {
  const provider = await startProvider({ account: ACCOUNT_LIMITS });
  const path = temporaryFile();
  const repository = await prepare(path);
  const keys = Array.from({ length: PROCESSES }, (_, index) => `key-${index}`);
  const workers = await Promise.all(
    keys.map((key) => startWorker([path, provider.url, key, mirror])),
  );
  await useUp(provider.url, repository);
  const beganMs = performance.now();
  for (const worker of workers) worker.send("go");
  const foreign = await callUntil(provider.url, beganMs, beganMs + DURATION_MS[mirror]);
  const answers = await Promise.all(workers.map(collectAnswers));
  const elapsedMs = performance.now() - beganMs;
  await repository.close();
  await provider.stop();
  const granted = answers.reduce((sum, each) => sum + each.granted, 0);
  const refused = answers.reduce((sum, each) => sum + each.refused, 0);
  return {
    granted,
    refused,
    refusedPerThousand: Math.round((1000 * refused) / (granted + refused)),
    used: ((granted + foreign.granted) * 1000) / (CALLS_PER_SECOND * elapsedMs),
  };
}

/** A file with an account that has the provider's limits, and a key for each process. */
async function prepare(path: string): Promise<SqliteRepository> {
  const repository = await SqliteRepository.open(path);
  const { requestsPerMinute, tokensPerMinute } = ACCOUNT_LIMITS;
  await repository.setSystemDefaults([
    Limit.perMinute("rpm", requestsPerMinute),
    Limit.perMinute("tpm", tokensPerMinute),
  ]);
  await repository.createEntity(ACCOUNT);
  for (let index = 0; index < PROCESSES; index += 1)
    await repository.createEntity(`key-${index}`, { parentId: ACCOUNT, cascade: true });
  return repository;
}

async function startWorker(values: readonly string[]): Promise<ChildProcess> {
  const script = fileURLToPath(new URL("./dist/worker.js", import.meta.url));
  const child = fork(script, values, { env: { ...process.env, NODE_NO_WARNINGS: "1" } });
  await once(child, "message");
  return child;
}

async function collectAnswers(worker: ChildProcess): Promise<Answers> {
  worker.send("stop");
  const [answers] = (await once(worker, "message")) as [Answers];
  await once(worker, "exit");
  return answers;
}

/** Takes what is left, of the provider's bucket and of ours. */
async function useUp(url: string, repository: SqliteRepository): Promise<void> {
  const { headers } = await call(url, fetch);
  const tokens = Number(headers.get("x-ratelimit-remaining-tokens")) - CALL_TOKENS;
  expect((await call(url, fetch, tokens)).status).toBe(200);
  const limiter = new RateLimiter({ repository });
  const left = await limiter.available(ACCOUNT, MODEL);
  const amounts = { tpm: left["tpm"]! - SURPLUS_CALLS * CALL_TOKENS };
  await limiter.charge({ entityId: ACCOUNT, resource: MODEL, amounts });
}

/** Calls as often as the foreign client does; what is refused is not repeated. */
async function callUntil(url: string, beganMs: number, endMs: number): Promise<Answers> {
  const answers: Answers = { granted: 0, refused: 0 };
  const fetch = readCounted(answers);
  const calls: Promise<unknown>[] = [];
  for (let count = 0; ; count += 1) {
    const atMs = beganMs + (1000 * count) / FOREIGN_CALLS_PER_SECOND;
    if (atMs > endMs) break;
    await sleep(Math.max(0, atMs - performance.now()));
    calls.push(call(url, fetch));
  }
  await Promise.all(calls);
  return answers;
}
