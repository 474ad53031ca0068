import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { expect, it } from "vitest";
import { endProcess, isAlive, processIdentity } from "./process-identity.ts";

it("a process is known until it has ended, and its number alone says nothing", async () => {
  const child = spawn("sleep", ["60"]);
  const identity = processIdentity(child.pid!)!;
  try {
    expect(isAlive(identity)).toBe(true);
    expect(isAlive({ ...identity, began: "at another time" })).toBe(false);
    expect(await endProcess({ ...identity, began: "at another time" })).toBe(true);
    expect(isAlive(identity)).toBe(true);
    expect(await endProcess(identity)).toBe(true);
    expect(isAlive(identity)).toBe(false);
  } finally {
    child.kill("SIGKILL");
  }
});

it("a process that was never there has no identity", () => {
  expect(processIdentity(spawnSync("true").pid)).toBeUndefined();
});

it("one that ignores the request to end is killed", { timeout: 30_000 }, async () => {
  const child = spawn("sh", ["-c", "trap '' TERM; echo ready; while :; do sleep 1; done"]);
  try {
    await once(child.stdout, "data");
    expect(await endProcess(processIdentity(child.pid!)!, 100)).toBe(true);
  } finally {
    child.kill("SIGKILL");
  }
});
