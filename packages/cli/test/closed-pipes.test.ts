// The built program when its output is closed, as in `zae-limiter … | head -n 1`.
import { spawn, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { openRepository } from "zae-limiter/open";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { LocalFolder } from "../src/commands/local/system/local-folder.ts";
import { identifyProcess } from "../src/commands/local/system/process.ts";
import { zaeLimiter, type Outcome } from "./command-line.ts";
import { LocalSystems } from "./local-system.ts";
import { FIRST, manifestFiles, manyEntities } from "./manifest-file.ts";

const PROGRAM = fileURLToPath(new URL("../bin/zae-limiter.js", import.meta.url));
const manifest = manifestFiles();
let systems: LocalSystems;
let url: string;

beforeEach(() => {
  systems = new LocalSystems();
  url = `sqlite:${systems.folder}/limits.db`;
});
afterEach(() => systems.clear([]));

function inThisProcess(...words: readonly string[]): Promise<Outcome> {
  return zaeLimiter(words, { open: openRepository, env: { ZAEL_REPOSITORY: url } });
}

type Started = ChildProcessByStdio<null, Readable, Readable>;

function start(words: readonly string[]): Started {
  const child = spawn(process.execPath, [PROGRAM, ...words], {
    env: { ...process.env, ...systems.env, ZAEL_REPOSITORY: url },
    stdio: ["ignore", "pipe", "pipe"],
  });
  // One that does not end would outlive a test that fails.
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

/** Runs the program, whose reader leaves before anything is written; the rest is still read. */
async function unread(closed: "stdout" | "stderr", words: readonly string[]): Promise<object> {
  const child = start(words);
  let text = "";
  child[closed === "stdout" ? "stderr" : "stdout"].on("data", (chunk) => (text += String(chunk)));
  child[closed].destroy();
  const [code] = await once(child, "close");
  return { code, text };
}

describe("without a reader of", { timeout: 60_000 }, () => {
  it("standard output, the exit code is that of the verb", async () => {
    const file = manifest(FIRST);
    await (await openRepository(url)).close();
    for (const verb of ["plan", "diff"])
      expect(await unread("stdout", ["limits", verb, "-f", file])).toEqual({ code: 3, text: "" });
    await inThisProcess("system", "set-defaults", "rpm:1");
    const acquire = ["acquire", "key-1", "gpt-4", "rpm=1"];
    expect(await inThisProcess(...acquire)).toMatchObject({ code: 0 });
    expect(await unread("stdout", acquire)).toEqual({ code: 3, text: "" });
  });

  it("standard error, an apply goes on to its end", async () => {
    const words = ["limits", "apply", "-f", manifest(manyEntities(120, { rpm: 1 })), "--yes"];
    expect(await unread("stderr", words)).toEqual({
      code: 0,
      text: "Registered namespace default.\nApplied to default: 120 created, 0 updated, 0 deleted, 0 unchanged.\n",
    });
    expect(await inThisProcess("limits", "plan", ...words.slice(2, 4))).toMatchObject({ code: 0 });
  });

  it("standard output, what would follow a log forever ends", async () => {
    const folder = await runningSystem();
    folder.writeLog("first");
    const child = start(["local", "logs", "--follow"]);
    const ended = once(child, "close");
    await once(child.stdout, "data");
    child.stdout.destroy();
    while (child.exitCode === null && child.signalCode === null) {
      folder.writeLog("more");
      await sleep(20);
    }
    expect(await ended).toEqual([0, null]);
  });
});

/** The folder of a system that runs as long as this process. */
async function runningSystem(): Promise<LocalFolder> {
  const folder = new LocalFolder("zae-limiter", systems.env);
  await folder.pidFile.take({
    owner: identifyProcess(process.pid)!,
    stack: "zae-limiter",
    region: "us-east-1",
    phase: "running",
    startedAt: "2026-11-15T06:30:00Z",
    engine: "dynoxide",
  });
  return folder;
}
