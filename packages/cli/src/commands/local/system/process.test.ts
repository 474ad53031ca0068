import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { expect, it } from "vitest";
import { endProcess, identifyProcess, isRunning } from "./process.ts";

/** Runs a script of Node, which exists on every platform, until it prints something. */
async function start(script: string): Promise<ReturnType<typeof spawn>> {
  const child = spawn(process.execPath, ["-e", `${script}; console.log("ready")`]);
  await once(child.stdout, "data");
  return child;
}

it("knows a process until it has ended, and never by its pid alone", async () => {
  const child = await start("setInterval(() => {}, 1000)");
  const identity = identifyProcess(child.pid!)!;
  const other = { ...identity, start: "at another time" };
  try {
    expect(isRunning(identity)).toBe(true);
    expect(isRunning(other)).toBe(false);
    expect(await endProcess(other, 100)).toBe(true);
    expect(isRunning(identity)).toBe(true);
    expect(await endProcess(identity, 5000)).toBe(true);
    expect(isRunning(identity)).toBe(false);
  } finally {
    child.kill("SIGKILL");
  }
});

it("does not know a process that has ended", () => {
  expect(identifyProcess(spawnSync(process.execPath, ["-e", ""]).pid)).toBeUndefined();
});

it("kills a process that ignores the request to end", { timeout: 30_000 }, async () => {
  const child = await start("process.on('SIGTERM', () => {}); setInterval(() => {}, 1000)");
  try {
    expect(await endProcess(identifyProcess(child.pid!)!, 200)).toBe(true);
  } finally {
    child.kill("SIGKILL");
  }
});
