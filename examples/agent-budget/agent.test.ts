import { startProvider, type Provider } from "#local-provider";
import { MemoryRepository } from "zae-limiter/memory";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { runAgent, storeBudget } from "./agent.ts";

const TASK = "Find out who invented the token bucket.";

let provider: Provider;

beforeAll(async () => {
  provider = await startProvider();
  for (const [name, value] of Object.entries(provider.environment)) vi.stubEnv(name, value);
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await provider.stop();
});

it("stops when the budget is spent, keeps what was done, and never passes the budget", async () => {
  const repository = new MemoryRepository();
  await storeBudget(repository, "session-1", 500);
  const endless = { "x-local-tool-calls": "1000" };
  const { steps, refusal, leftUsdMicros } = await runAgent(repository, "session-1", TASK, endless);
  expect(refusal?.primaryViolation.limitName).toBe("usd_micros");
  expect(steps.length).toBeGreaterThan(3);
  expect(steps.map(({ end, source }) => [end, source])).toEqual(
    steps.map(() => ["complete", "reported"]),
  );
  const spent = steps.map(({ usage }) => Math.ceil(usage.input * 0.25 + usage.output * 2));
  expect(leftUsdMicros).toBe(500 - spent.reduce((sum, cost) => sum + cost, 0));
  expect(leftUsdMicros).toBeGreaterThanOrEqual(0);
  expect(provider.statuses.get(200)).toBe(steps.length);
});

it("finishes work that fits", async () => {
  const repository = new MemoryRepository();
  await storeBudget(repository, "session-2", 500);
  const two = { "x-local-tool-calls": "2" };
  const { steps, refusal } = await runAgent(repository, "session-2", TASK, two);
  expect(refusal).toBeUndefined();
  expect(steps).toHaveLength(3);
});
