import type { UserContext } from "../engine/artillery.ts";
import type { RateLimiterSession } from "../engine/session.ts";
import { uniform, zipf } from "../load/entities.ts";
import { daily, spike } from "../load/shapes.ts";
import type { LoadParameters, Scenario } from "./scenario.ts";
import { pickAmongUsers, startRandom } from "./worker-state.ts";

/** The eight models of the gateway. */
const MODELS = [
  "gpt-4",
  "gpt-4o",
  "gpt-4o-mini",
  "o3",
  "claude-opus",
  "claude-sonnet",
  "gemini-pro",
  "llama-70b",
] as const;

/** What a call takes before its cost is known. */
const ESTIMATE = 800;

const between = startRandom();
const pickKey = pickAmongUsers((count, seed) => uniform({ count, seed, prefix: "key-" }));
const pickTenant = pickAmongUsers((count, seed) => zipf({ count, seed, prefix: "tenant-" }));

/** A call of one of the models, which costs 200 to 2000 tokens. */
export async function callModel(session: RateLimiterSession, context: UserContext): Promise<void> {
  const model = MODELS[between(0, MODELS.length - 1)]!;
  await complete(session, { entityId: pickKey(context), model, cost: between(200, 2000) });
}

/** The common call of production: a chat. */
export async function chat(session: RateLimiterSession, context: UserContext): Promise<void> {
  const entityId = pickTenant(context);
  await complete(session, { entityId, model: "gpt-4o-mini", cost: between(200, 2000) });
}

/** A document: more tokens than estimated. */
export async function summarize(session: RateLimiterSession, context: UserContext): Promise<void> {
  const entityId = pickTenant(context);
  await complete(session, { entityId, model: "claude-sonnet", cost: between(2000, 8000) });
}

/** An agent, which makes several calls in a row until one is refused. */
export async function runAgent(session: RateLimiterSession, context: UserContext): Promise<void> {
  const entityId = pickTenant(context);
  for (let turn = 0; turn < 5; turn += 1) {
    const cost = between(500, 3000);
    if (!(await complete(session, { entityId, model: "gpt-4o", cost }))) return;
  }
}

async function complete(
  session: RateLimiterSession,
  call: { readonly entityId: string; readonly model: string; readonly cost: number },
): Promise<boolean> {
  const { entityId, model, cost } = call;
  const consume = { rpm: 1, tpm: ESTIMATE };
  const settle = { tpm: cost };
  const done = await session.acquire(
    { entityId, resource: model, consume, settle, name: model },
    () => true,
  );
  return done === true;
}

const file = new URL(import.meta.url);

/** A gateway for models. */
export const llmGateway: Scenario = {
  description: "Eight models with rpm and tpm; each call takes an estimate and settles its cost.",
  file,
  defaults: { durationSeconds: 60, rate: 50, users: 10 },
  setup: [{ setSystemDefaults: ["rpm:60/min", "tpm:20000/min"] }],
  users: [{ name: "gateway", flow: [{ function: "callModel" }] }],
};

/** Traffic as it changes over a day, then a spike. */
export const llmProduction: Scenario = {
  description: "Chats, documents and agents (15:2:1) over a compressed day and a morning spike.",
  file,
  defaults: { durationSeconds: 120, rate: 60, users: 200 },
  setup: [{ setSystemDefaults: ["rpm:60/min", "tpm:40000/min"] }],
  users: [
    { name: "chat", weight: 15, flow: [{ function: "chat" }] },
    { name: "document", weight: 2, flow: [{ function: "summarize" }] },
    { name: "agent", weight: 1, flow: [{ function: "runAgent" }] },
  ],
  buildPhases: ({ durationSeconds, rate }: LoadParameters) => {
    const morning = Math.floor(durationSeconds / 3);
    const day = daily({ durationSeconds: durationSeconds - morning, rate });
    return morning === 0 ? day : [...day, ...spike({ durationSeconds: morning, rate })];
  },
};
