import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { openRepository } from "zae-limiter/open";
import { verifyLedger } from "artillery-engine-zae-limiter";
import { temporaryFolder } from "../../test/support/load.ts";

/** Grants without end. It reports each at once, by a write that a kill cannot lose. */
const WORKER = `
import { writeSync, openSync } from "node:fs";
import { Limit } from "zae-limiter";
import { openRepository } from "zae-limiter/open";
import { Ledger, RateLimiterSession } from "artillery-engine-zae-limiter";
const [target, folder, reported] = process.argv.slice(1);
const repository = await openRepository(target, { namespace: "run" });
await repository.setSystemDefaults([Limit.perSecond("rps", 1000)]);
const ledger = new Ledger({ folder, repository, store: "sqlite" });
const session = new RateLimiterSession({ repository, emitter: { emit() {} }, ledger });
const file = openSync(reported, "a");
// While this one is under way, the ledger is written for its age only, not because it is idle.
void session.acquire({ entityId: "key-2", resource: "api", consume: {} }, () => new Promise(() => {}));
for (;;) {
  const call = { entityId: "key-1", resource: "api", consume: { rps: 2 }, settle: { rps: 1 } };
  if ((await session.acquire(call, () => true)) && writeSync(file, Date.now() + "\\n"))
    await new Promise(setImmediate);
}
`;

it("a killed worker's ledger is complete up to its last 200 ms", async () => {
  const [folder, store] = [temporaryFolder(), temporaryFolder()];
  const [target, reported] = [`sqlite:${join(store, "limits.db")}`, join(store, "reported")];
  const values = ["--input-type=module", "-e", WORKER, target, folder, reported];
  const cwd = join(import.meta.dirname, "../..");
  const child = spawn(process.execPath, values, { cwd, stdio: ["ignore", "inherit", "inherit"] });
  const exit = once(child, "exit");
  const deadlineMs = Date.now() + 15_000;
  const readReported = (): readonly number[] =>
    existsSync(reported) ? readFileSync(reported, "utf8").trim().split("\n").map(Number) : [];
  while (!isRunning(readReported()) && Date.now() < deadlineMs)
    await new Promise((resolve) => setTimeout(resolve, 20));
  child.kill("SIGKILL");
  expect(await exit).toEqual([null, "SIGKILL"]);

  const times = readReported();
  const [file] = readdirSync(folder);
  const lines = readFileSync(join(folder, file!), "utf8").split("\n");
  const noted = lines.filter((line) => line.includes('"kind":"grant"')).length;
  const due = times.filter((time) => time < times.at(-1)! - 200 - GRACE_MS).length;
  expect(due).toBeGreaterThan(100);
  expect(noted).toBeGreaterThanOrEqual(due);

  await using repository = await openRepository(target);
  const { passed, grants, notes } = await verifyLedger(folder, repository);
  expect({ passed, grants }).toEqual({ passed: true, grants: noted });
  expect(notes.join("\n")).toContain("a worker ended in the middle of calls");
});

/** A busy machine runs timers late. */
const GRACE_MS = 50;

function isRunning(times: readonly number[]): boolean {
  return times.at(-1)! - times[0]! > 700;
}
