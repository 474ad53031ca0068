import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { describeWithEngine, freshTableName } from "../support/engine.ts";
import { temporaryFile } from "../support/temporary-file.ts";

const library = fileURLToPath(new URL("../../dist/", import.meta.url));

/** A process that is still alive then has not ended by itself, and is killed. */
const DEADLINE_MS = 30_000;

const BEGIN = `
  const { Limit, RateLimiter } = await import(process.argv[1] + "index.js");
  const { openRepository } = await import(process.argv[1] + "open/index.js");
  const repository = await openRepository(process.argv[2]);
  const limiter = new RateLimiter({ repository });
  const request = (index) => ({ entityId: "e-" + index, resource: "r", consume: { tokens: 1 } });`;

/** 50 calls of ten entities wait for hours: their timers run when the repository is closed. */
const CLOSES = `${BEGIN}
  await repository.setSystemDefaults([Limit.perHour("tokens", 1)]);
  for (let index = 0; index < 10; index += 1) await limiter.acquire(request(index));
  const waiting = Array.from({ length: 50 }, (_, index) =>
    limiter.acquire({ ...request(index % 10), waitUpToMs: 24 * 3_600_000 }));
  const ended = Promise.allSettled(waiting);
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  while (timers() < 50) await new Promise((resolve) => setImmediate(resolve));
  await repository.close();
  for (const { reason } of await ended) console.log(reason.code);`;

/** Nothing but the call that waits keeps this process alive. */
const WAITS = `${BEGIN}
  await repository.setSystemDefaults([Limit.perSecond("tokens", 1)]);
  await limiter.acquire(request(0));
  limiter.acquire({ ...request(0), waitUpToMs: 10_000 }).then(() => console.log("granted"));`;

/** What a process printed that ended by itself. */
async function run(script: string, url: string): Promise<readonly string[]> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--input-type=module", "-e", script, library, url],
    { timeout: DEADLINE_MS, killSignal: "SIGKILL" },
  );
  return stdout.trim().split("\n");
}

function endsByItself(url: () => string): void {
  it("ends by itself when the repository of 50 waiting calls is closed", async () => {
    const printed = await run(CLOSES, url());
    expect(printed).toEqual(Array.from({ length: 50 }, () => "ERR_LIMITER_UNAVAILABLE"));
  });

  it("stays alive while a call waits, and ends by itself afterwards", async () => {
    expect(await run(WAITS, url())).toEqual(["granted"]);
  });
}

describe.each([
  ["memory", () => "memory:"],
  ["SQLite", () => `sqlite:${temporaryFile()}`],
])("a process with %s", { timeout: 2 * DEADLINE_MS }, (_, url) => endsByItself(url));

describeWithEngine("a process with DynamoDB", (engine) => {
  const url = (): string =>
    `dynamodb://local/${freshTableName()}?endpoint=${engine().endpointUrl}&provisioning=table`;
  endsByItself(url);
});
