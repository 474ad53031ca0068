import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Claim } from "./claim.ts";
import { endSystem } from "./ending.ts";
import { isAlive, processIdentity, type ProcessIdentity } from "./process-identity.ts";
import { LocalFolder, type LocalState } from "./state.ts";

const dead = { pid: spawnSync("true").pid, began: "long ago" };
let parent: string;
let folder: LocalFolder;
let engine: ChildProcess;

beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), "zae-limiter-ending-"));
  folder = new LocalFolder("zae-limiter", { ZAEL_LOCAL_FOLDER: parent });
  engine = spawn("sleep", ["60"]);
});

afterEach(() => {
  engine.kill("SIGKILL");
  rmSync(parent, { recursive: true });
});

/** What a supervisor that was killed has left. */
async function left(engineProcess: ProcessIdentity): Promise<void> {
  await Claim.take<LocalState>(folder.path, {
    holder: dead,
    stack: "zae-limiter",
    region: "us-east-1",
    phase: "running",
    control: { port: 1, token: "of nobody" },
    startedAt: "2026-11-15T06:30:00.000Z",
    engine: "dynoxide",
    data: "/data",
    engineProcess,
  });
}

it("ends the engine of a supervisor that died, once", async () => {
  const identity = processIdentity(engine.pid!)!;
  await left(identity);
  expect((await folder.find()).is).toBe("dead");
  expect(await endSystem(folder)).toEqual({ wasRunning: true, data: "/data" });
  expect(isAlive(identity)).toBe(false);
  expect((await folder.find()).is).toBe("ended");
  expect(await endSystem(folder)).toEqual({ wasRunning: false });
});

it("leaves a process alone that has got the number of that engine since", async () => {
  const identity = processIdentity(engine.pid!)!;
  await left({ ...identity, began: "long ago" });
  expect(await endSystem(folder)).toEqual({ wasRunning: true, data: "/data" });
  expect(isAlive(identity)).toBe(true);
});
