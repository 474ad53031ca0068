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

it("does not let a stored name control the terminal", async () => {
  await repository.createEntity("key-1", { name: "\u001B[2Jboo\n" });
  expect((await run("entity show key-1")).stdout).toContain("Name     \\u001b[2Jboo\\u000a\n");
});
