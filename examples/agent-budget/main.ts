// `npm run agent-budget`: an agent that never finds what it looks for, and a budget that ends it.
import { startProvider } from "#local-provider";
import { MemoryRepository } from "zae-limiter/memory";
import { runAgent, storeBudget } from "./agent.ts";

const SESSION = "session-1";
const BUDGET_USD_MICROS = 500;

// Without an account, a provider on this machine answers: always with one more call of a tool.
const provider = process.env["OPENAI_API_KEY"] === undefined ? await startProvider() : undefined;
Object.assign(process.env, provider?.environment);
await using repository = new MemoryRepository(); // or: await SqliteRepository.open("budgets.db")
await storeBudget(repository, SESSION, BUDGET_USD_MICROS);

const isReal = provider === undefined;
console.log(
  isReal ? "OpenAI answers: OPENAI_API_KEY is set." : "A provider on this machine answers.",
);
console.log(`The budget of ${SESSION} is ${dollars(BUDGET_USD_MICROS)}.\n`);
const task = "Find out who invented the token bucket.";
const headers = isReal ? {} : { "x-local-tool-calls": "1000" };
const { steps, refusal, leftUsdMicros } = await runAgent(repository, SESSION, task, headers);
for (const [index, { usage }] of steps.entries())
  console.log(`step ${index + 1}: ${usage.input} tokens in, ${usage.output} out`);
const [violation] = refusal?.violations ?? [];
console.log(
  violation === undefined
    ? "\nThe agent finished."
    : `\nThe next step could cost ${dollars(violation.requested)}, which is not left, so the agent stopped.`,
);
console.log(`${dollars(leftUsdMicros)} are left.`);
await provider?.stop();

function dollars(micros: number): string {
  return `$${(micros / 1e6).toFixed(6)}`;
}
