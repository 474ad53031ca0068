/*
 * The essentials of the packed library, behind one function of the web standard, which each runtime
 * serves with its own server (`serve-*.mjs`). `tools/runtimes.mjs` starts them and is their client:
 *
 *   GET /memory, /sqlite?path=…, /openai?url=…   runs the essential; 200, or 500 and what failed
 *   GET /handler/…, /hono/…                      a limited server: /hello, /stream
 *   GET /left?entity=…                           what is left to an entity of those servers
 *
 * It uses only what these runtimes share.
 */
import assert from "node:assert/strict";
import { Hono } from "hono";
import OpenAI, { RateLimitError } from "openai";
import { Limit, RateLimiter, RateLimitExceeded } from "zae-limiter";
import { limitRequests } from "zae-limiter/hono";
import { limitHandler } from "zae-limiter/http";
import { METERING } from "zae-limiter/llm";
import { MemoryRepository } from "zae-limiter/memory";
import { limitFetch } from "zae-limiter/openai";
import { SqliteRepository } from "zae-limiter/sqlite";

const LIMITS = [Limit.perHour("rpm", 2), Limit.perHour("tpm", 10_000)];
const PATIENCE_MS = 5000;

const servers = await makeServers();

const essentials = {
  "/memory": provesMemory,
  "/sqlite": provesSqlite,
  "/openai": provesOpenai,
};

/** Answers one request. The library gets what else the runtime passes, as in an application. */
export async function answer(request, ...rest) {
  const { pathname, searchParams } = new URL(request.url);
  if (essentials[pathname] !== undefined) return report(essentials[pathname], searchParams);
  if (pathname.startsWith("/handler/")) return servers.limited(request, ...rest);
  if (pathname.startsWith("/hono/")) return servers.hono.fetch(request, ...rest);
  return Response.json(await servers.limiter.available(searchParams.get("entity"), "web"));
}

async function report(essential, parameters) {
  try {
    return Response.json((await essential(parameters)) ?? {});
  } catch (error) {
    const { code, message, stack } = error;
    return Response.json({ code, message, stack }, { status: 500 });
  }
}

async function makeServers() {
  const repository = new MemoryRepository();
  await repository.setSystemDefaults(LIMITS);
  const limiter = new RateLimiter({ repository });
  const options = {
    limiter,
    resource: "web",
    consume: { rpm: 1, tpm: 500 },
    // The balance shows how a request ended.
    settle: ({ completed }) => ({ rpm: 1, tpm: completed ? 300 : 100 }),
  };
  const limited = limitHandler(
    { ...options, entity: (request) => new URL(request.url).searchParams.get("entity") },
    ({ url }) => (url.includes("/stream") ? new Response(endless()) : new Response("Hello!")),
  );
  const hono = new Hono();
  hono.use(limitRequests({ ...options, entity: (context) => context.req.query("entity") }));
  hono.get("/hono/hello", (context) => context.text("Hello!"));
  hono.get("/hono/stream", () => new Response(endless()));
  return { limiter, limited, hono };
}

/** Words without an end, one whenever the client can take it. */
function endless() {
  const encoder = new TextEncoder();
  return new ReadableStream({
    async pull(controller) {
      await new Promise((resolve) => setTimeout(resolve, 10));
      controller.enqueue(encoder.encode("word "));
    },
  });
}

/** Acquires, settles, refuses and gives back. */
async function provesAcquire(own) {
  await own.setSystemDefaults(LIMITS);
  const bound = new RateLimiter({ repository: own });
  const call = { entityId: "key-1", resource: "gpt-4", consume: { rpm: 1, tpm: 500 } };
  const settled = await bound.acquire(call, async (lease) => {
    lease.settle({ tpm: 700 });
    return "answer";
  });
  assert.equal(settled, "answer");
  await assert.rejects(
    bound.acquire(call, async () => {
      throw new TypeError("of the work");
    }),
    TypeError,
  );
  const left = await bound.available("key-1", "gpt-4");
  assert.deepEqual(left, { rpm: 1, tpm: 9300 });
  await bound.acquire(call, () => undefined);
  const refusal = await bound.acquire(call, () => undefined).catch((error) => error);
  assert.ok(refusal instanceof RateLimitExceeded);
  assert.ok(refusal.retryAfterSeconds > 0 && refusal.retryAfterSeconds <= 1800);
  const { total } = await own.getUsageSummary({ entityId: "key-1" });
  assert.deepEqual(total, { rpm: 2, tpm: 1200 });
  await bound.close();
}

async function provesMemory() {
  const own = new MemoryRepository();
  await provesAcquire(own);
  await own.close();
}

/** What was written is there when the file is opened again. */
async function provesSqlite(parameters) {
  const path = parameters.get("path");
  const own = await SqliteRepository.open(path);
  const { driver } = own;
  await provesAcquire(own);
  await own.close();
  const again = await SqliteRepository.open(path);
  const { total } = await again.getUsageSummary({ entityId: "key-1" });
  assert.deepEqual(total, { rpm: 2, tpm: 1200 });
  await again.close();
  return { driver };
}

/** A call in one piece, a stream, a stream that is left, and a refusal, with OpenAI's client. */
async function provesOpenai(parameters) {
  const own = new MemoryRepository();
  await own.setSystemDefaults([Limit.perHour("rpm", 3), Limit.perHour("tpm", 10_000)]);
  const bound = new RateLimiter({ repository: own });
  const client = new OpenAI({
    baseURL: `${parameters.get("url")}/v1`,
    apiKey: "local",
    maxRetries: 0,
    fetch: limitFetch({ limiter: bound, entity: "key-1", metering: METERING.openai }),
  });
  const question = {
    model: "gpt-5-mini",
    messages: [{ role: "user", content: "What is a token bucket?" }],
  };
  const used = async () => (await own.getUsageSummary({ entityId: "key-1" })).total.tpm ?? 0;

  const whole = await client.chat.completions.create(question);
  let expected = whole.usage.total_tokens;
  assert.equal(await used(), expected);

  let text = "";
  const stream = await client.chat.completions.create({ ...question, stream: true });
  for await (const { choices } of stream) text += choices[0]?.delta.content ?? "";
  assert.equal(text, whole.choices[0].message.content);
  expected += whole.usage.total_tokens;
  assert.equal(await used(), expected);

  const slow = await client.chat.completions.create(
    { ...question, stream: true },
    { headers: { "x-local-fault": "slow" } },
  );
  for await (const { choices } of slow) if (choices[0]?.delta.content) break;
  const deadline = Date.now() + PATIENCE_MS;
  // The estimate is far above what three words cost, and stays taken until the lease ends.
  while ((await used()) >= 2 * expected && Date.now() < deadline)
    await new Promise((resolve) => setTimeout(resolve, 20));
  assert.ok((await used()) > expected && (await used()) < 2 * expected);

  const refusal = await client.chat.completions.create(question).catch((error) => error);
  assert.ok(refusal instanceof RateLimitError, String(refusal));
  assert.ok(Number(refusal.headers.get("retry-after-ms")) > 0);
  await bound.close();
}
