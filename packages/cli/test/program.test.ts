// The built program as a user starts it: a process of its own, on real files.
import { execFile, spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Outcome } from "./command-line.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const PROGRAM = fileURLToPath(new URL("../bin/zae-limiter.js", import.meta.url));

let folder: string;
let url: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "zae-limiter-cli-"));
  url = `sqlite:${folder}/limits.db`;
});

afterEach(() => rmSync(folder, { recursive: true }));

function zaeLimiter(...args: readonly string[]): Promise<Outcome> {
  return start(PROGRAM, args);
}

function start(program: string, args: readonly string[]): Promise<Outcome> {
  const env = { ...process.env, ZAEL_REPOSITORY: url };
  return new Promise((resolve) => {
    execFile(process.execPath, [program, ...args], { env, cwd: folder }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}

/** Whether a file is part of a package, and not of the clone around it. */
function isPublished(path: string): boolean {
  return !/\/(?:src|test|node_modules\/.*\/node_modules)(?:\/|$)/.test(path.slice(ROOT.length));
}

describe("the program", { timeout: 60_000 }, () => {
  it("keeps limits and balances in a file from one call to the next", async () => {
    expect((await zaeLimiter("system", "set-defaults", "-l", "rpm:2")).code).toBe(0);
    expect((await zaeLimiter("acquire", "key-1", "gpt-4", "rpm=2")).stdout).toBe(
      "Granted: rpm 2\n",
    );
    const refused = await zaeLimiter("acquire", "key-1", "gpt-4", "rpm=1", "--json");
    expect(refused.code).toBe(3);
    expect(JSON.parse(refused.stdout)).toMatchObject({
      error: "rate_limit_exceeded",
      limits: [{ available: 0, requested: 1 }],
    });
    expect(
      JSON.parse((await zaeLimiter("usage", "summary", "-e", "key-1", "--json")).stdout),
    ).toMatchObject({ total: { rpm: 2 } });
  });

  it("reports a file that is not a database", async () => {
    const { code, stderr } = await zaeLimiter(
      "entity",
      "list",
      "--repository",
      `sqlite:${PROGRAM}`,
      "--json",
    );
    expect(code).toBe(1);
    expect(JSON.parse(stderr)).toMatchObject({
      error: { code: expect.stringMatching(/^ERR_LIMITER_/) },
    });
  });

  const hasDriver = process.getBuiltinModule("node:sqlite") !== undefined;

  it.skipIf(hasDriver)("says how to get a driver, and names no option of the library", async () => {
    const installed = join(folder, "node_modules/@zae-limiter/cli");
    for (const [name, target] of [
      ["packages/cli", installed],
      ["packages/limiter", join(folder, "node_modules/zae-limiter")],
      ["node_modules/commander", join(folder, "node_modules/commander")],
    ] as const)
      cpSync(join(ROOT, name), target, { recursive: true, filter: isPublished });
    const { code, stderr } = await start(join(installed, "bin/zae-limiter.js"), [
      "entity",
      "create",
      "key-1",
    ]);
    expect(code).toBe(1);
    expect(stderr).toContain("No SQLite driver was found. Use Node 22.13 or newer");
    expect(stderr).not.toContain("options");
  });

  const noTerminal = spawnSync("script", ["--version"]).status !== 0;
  if (noTerminal) console.warn("script is not installed: questions are NOT tested in a terminal.");

  it.skipIf(noTerminal)("asks in a terminal whether to hide limits, and ends", async () => {
    await zaeLimiter("system", "set-defaults", "rpm:60", "tpm:1000");
    const line = `${process.execPath} ${PROGRAM} entity set-limits team-a rpm:600 --replace`;
    const child = spawn("script", ["--quiet", "--return", "--command", line, "/dev/null"], {
      env: { ...process.env, ZAEL_REPOSITORY: url },
      stdio: ["pipe", "pipe", "pipe"],
    });
    let shown = "";
    child.stdout.on("data", (chunk) => {
      shown += String(chunk);
      // The terminal stays open: the program ends because it has its answer.
      if (shown.endsWith("[y/N] ")) child.stdin.write("y\n");
    });
    expect((await waitForEnd(child)).code).toBe(0);
    expect(shown).toContain("tpm 1,000/min (system)");
    expect(shown).toMatch(/rpm +600\/min +600 +entity_default/);
  });
});

async function waitForEnd(
  child: ChildProcess,
): Promise<{ readonly code: unknown; readonly stderr: string }> {
  let stderr = "";
  child.stderr?.on("data", (chunk) => (stderr += String(chunk)));
  const [code] = await once(child, "close");
  return { code, stderr };
}
