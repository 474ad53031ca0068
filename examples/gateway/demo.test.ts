// The built demo as `npm start` runs it: two processes on a real file.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, it } from "vitest";

const DEMO = fileURLToPath(new URL("./dist/main.js", import.meta.url));
const COMMAND_LINE = createRequire(import.meta.url).resolve("@zae-limiter/cli/bin/zae-limiter.js");
const TIMEOUT_MS = 60_000;

interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "zae-limiter-demo-"));
});

afterEach(() => rmSync(folder, { recursive: true }));

function run(program: string, ...args: readonly string[]): Promise<Outcome> {
  return new Promise((resolve) => {
    execFile(process.execPath, [program, ...args], { cwd: folder }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}

it(
  "keeps the promises in two processes, and every command that it suggests works as printed",
  { timeout: TIMEOUT_MS },
  async () => {
    const { code, stdout } = await run(DEMO, "--seconds", "3");
    expect(stdout).toMatch(/^ok {5}Strict: /m);
    expect(stdout).not.toContain("FAILED");
    expect(code).toBe(0);
    const repository = /^ {2}export ZAEL_REPOSITORY=(.*)$/m.exec(stdout)![1]!;
    const commands = stdout.replaceAll(/ \\\n +/g, " "); // as a shell reads them
    const suggested = [...commands.matchAll(/^ {2}npx zae-limiter (.*)$/gm)].map(([, line]) =>
      line!.split(" "),
    );
    expect(suggested.length).toBeGreaterThan(4);
    for (const line of suggested)
      expect(
        (await run(COMMAND_LINE, "--repository", repository, ...line)).code,
        line.join(" "),
      ).toBe(0);
    expect(Math.max(...stdout.split("\n").map((line) => [...line].length))).toBeLessThanOrEqual(80);
    expect(readdirSync(folder)).toEqual(["zae-limiter-demo.db"]);
  },
);

it("says where the file is when it is stopped early", { timeout: TIMEOUT_MS }, async () => {
  const child = spawn(process.execPath, [DEMO, "--seconds", "60"], { cwd: folder });
  const ended = once(child, "exit");
  let stderr = "";
  child.stderr.on("data", (text) => (stderr += String(text)));
  await once(child.stdout, "data");
  child.kill("SIGINT");
  expect(await ended).toEqual([130, null]);
  expect(stderr).toContain("What was done so far is in ./zae-limiter-demo.db.");
});

it("exits 1 with a limiter that refills twice as fast", { timeout: TIMEOUT_MS }, async () => {
  const { code, stdout } = await run(DEMO, "--seconds", "3", "--fault", "double-refill", "--json");
  const { ok, checks } = JSON.parse(stdout) as {
    ok: boolean;
    checks: readonly { promise: string; ok: boolean }[];
  };
  expect(ok).toBe(false);
  expect(checks.filter((check) => !check.ok).map(({ promise }) => promise)).toEqual([
    expect.stringMatching(/^Strict/),
  ]);
  expect(code).toBe(1);
});

it("replaces a file of another name only with --yes", { timeout: TIMEOUT_MS }, async () => {
  const file = join(folder, "limits.db");
  writeFileSync(file, "precious");
  const refused = await run(DEMO, "--file", "./limits.db");
  expect(refused.code).toBe(2);
  expect(refused.stderr).toContain("Pass --yes to replace it");
  expect(readFileSync(file, "utf8")).toBe("precious");
  expect((await run(DEMO, "--file", "./limits.db", "--seconds", "0.5", "--yes")).code).toBe(0);
  expect(readFileSync(file, "utf8")).toMatch(/^SQLite format 3/);
});

it.each([
  [["--second", "3"], "--second"],
  [["--seconds", "soon"], "a number from 0 to 86400"],
  [["--fault", "other"], "double-refill"],
  [["extra"], "extra"],
])("exits 2 for %j and says what is wrong", async (args, hint) => {
  const { code, stdout, stderr } = await run(DEMO, ...args);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toContain(hint);
});

it("shows its options", async () => {
  const { code, stdout } = await run(DEMO, "--help");
  expect(code).toBe(0);
  for (const option of ["--seconds", "--file", "--yes", "--json"]) expect(stdout).toContain(option);
});
