import { MemoryRepository } from "zae-limiter/memory";
import { beforeEach, expect, it } from "vitest";
import { zaeLimiter, type Outcome, type Setup } from "./command-line.ts";

let repository: MemoryRepository;

beforeEach(() => {
  repository = new MemoryRepository();
});

const run = (line: string, more: Setup = {}): Promise<Outcome> =>
  zaeLimiter(line, { repository, ...more });

it("is coloured only on a terminal, and never with NO_COLOR", async () => {
  await repository.createEntity("key-1");
  const escape = "\u001B[";
  expect((await run("entity list", { terminal: true })).stdout).toContain(escape);
  expect((await run("entity list")).stdout).not.toContain(escape);
  expect(
    (await run("entity list", { terminal: true, env: { NO_COLOR: "1" } })).stdout,
  ).not.toContain(escape);
  expect((await run("entity list --json", { terminal: true })).stdout).not.toContain(escape);
});

/** Would move the cursor, or show what follows from right to left, or begin a line of its own. */
const FORGED = "x\u001B[2J\u009B1m\u202E\u2066\u200F\u2028\nerror: y";
// oxlint-disable-next-line no-control-regex -- it is there to find control characters.
const FORGING = /[\u0000-\u0009\u000B-\u001F\u007F-\u009F\u200F\u2028\u202E\u2066]|^error: y/m;

it("writes JSON in which a stored name cannot control the terminal either", async () => {
  await repository.createEntity("key-1", { name: FORGED });
  const { stdout } = await run("entity show key-1 --json");
  expect(stdout).not.toMatch(FORGING);
  expect(JSON.parse(stdout)).toMatchObject({ name: FORGED });
});

it.each([
  ["a verb", [FORGED]],
  ["an option", ["entity", "list", `--${FORGED}`]],
  ["the value of an option", ["entity", "list", "--limit", FORGED]],
  ["an argument too many", ["status", FORGED]],
  ["a repository", ["--repository", FORGED, "--stack", "s", "entity", "list"]],
  ["a repository without a stack", ["--repository", FORGED, "list"]],
  ["an id", ["entity", "show", FORGED]],
  ["a name", ["namespace", "show", FORGED]],
  ["a limit", ["system", "set-defaults", `${FORGED}:1`]],
  ["an amount", ["acquire", "key-1", "gpt-4", `${FORGED}=1`]],
  ["metadata", ["entity", "create", "key-1", "--metadata", `${FORGED}=${"x".repeat(2000)}`]],
  ["a file", ["limits", "plan", "-f", FORGED]],
])("does not let %s on the command line control the terminal", async (_, words) => {
  for (const line of [words, [...words, "--json"]]) {
    const { stdout, stderr } = await zaeLimiter(line, { repository });
    expect(stdout + stderr).toMatch(/error/);
    expect(stdout + stderr).not.toMatch(FORGING);
  }
});

it("does not let a stored name control the terminal", async () => {
  await repository.createEntity("key-1", { name: "\u001B[2Jboo\n" });
  expect((await run("entity show key-1")).stdout).toContain("Name     \\u001b[2Jboo\\u000a\n");
});
