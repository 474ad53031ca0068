// A Hono server that streams answers from OpenAI: limits by key and by team, 429 with Retry-After,
// what is left in the headers, and clients that hang up pay for what they got.
import { serve } from "@hono/node-server";
import { Hono, type Context } from "hono";
import { HTTPException } from "hono/http-exception";
import { streamText } from "hono/streaming";
import OpenAI from "openai";
import { Limit, RateLimiter } from "zae-limiter";
import { limitRequests } from "zae-limiter/hono";
import { getLease } from "zae-limiter/http";
import { MemoryRepository } from "zae-limiter/memory";

const MODEL = "gpt-4.1-mini";
const MAX_TOKENS = 200;
const KEYS = ["key-ann", "key-bob"];

const openai = new OpenAI();
const repository = new MemoryRepository(); // or: await SqliteRepository.open("limits.db")
await repository.setSystemDefaults([Limit.perMinute("rpm", 20), Limit.perMinute("tpm", 20_000)]);
await repository.ensureEntity("team-blue");
const teamLimits = [Limit.perMinute("rpm", 30), Limit.perMinute("tpm", 30_000)];
await repository.setLimits("team-blue", teamLimits);
for (const key of KEYS)
  await repository.ensureEntity(key, { parentId: "team-blue", cascade: true });
const limiter = new RateLimiter({ repository });

const limit = limitRequests({
  limiter,
  entity: readKey,
  resource: MODEL,
  consume: async (context) => ({ rpm: 1, tpm: tokensIn(await readQuestion(context)) + MAX_TOKENS }),
  settle: ({ status }, lease) => {
    console.log(`${lease.entityId}: ${status}, ${lease.consumed.tpm} tokens`);
    return status < 400 ? undefined : "give-back";
  },
});

const app = new Hono();
app.post("/chat", limit, async (context) => {
  const question = await readQuestion(context);
  const chunks = await openai.chat.completions.create({
    model: MODEL,
    max_completion_tokens: MAX_TOKENS,
    messages: [{ role: "user", content: question }],
    stream: true,
    stream_options: { include_usage: true },
  });
  return streamText(context, async (output) => {
    output.onAbort(() => chunks.controller.abort()); // the client hung up: stop the provider too
    let answer = "";
    for await (const { choices, usage } of chunks) {
      if (output.aborted) break;
      const text = choices[0]?.delta.content ?? "";
      answer += text;
      const used = usage?.total_tokens ?? tokensIn(question) + tokensIn(answer);
      getLease(context)?.settle({ tpm: used }); // the last one counts, whenever the stream ends
      await output.write(text);
    }
  });
});

app.onError((error) => {
  if (error instanceof HTTPException) return error.getResponse();
  console.error(error);
  return Response.json({ error: "The call failed." }, { status: 502 });
});

function readKey(context: Context): string {
  const key = context.req.header("authorization")?.replace("Bearer ", "") ?? "";
  if (!KEYS.includes(key)) throw new HTTPException(401, { message: "Unknown key." });
  return key;
}

async function readQuestion(context: Context): Promise<string> {
  const { question } = await context.req.json<{ question?: string }>();
  if (!question) throw new HTTPException(400, { message: "Send JSON with a question." });
  return question;
}

function tokensIn(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / 4);
}

serve({ fetch: app.fetch, hostname: "127.0.0.1", port: Number(process.env.PORT ?? 3000) }, (info) =>
  console.log(`Listening on http://127.0.0.1:${info.port}`),
);
