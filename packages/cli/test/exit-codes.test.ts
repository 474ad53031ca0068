import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openRepository } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Command } from "commander";
import { createProgram } from "../src/program.ts";
import { zaeLimiter, type Outcome, type Setup } from "./command-line.ts";

let repository: MemoryRepository;

beforeEach(() => {
  repository = new MemoryRepository();
});

const run = (line: string | readonly string[], more: Setup = {}): Promise<Outcome> =>
  zaeLimiter(line, { repository, ...more });

describe("wrong usage", () => {
  it("exits 2 without a repository and says how to name one", async () => {
    const { code, stderr } = await run("entity list", { env: { ZAEL_REPOSITORY: "" } });
    expect(code).toBe(2);
    expect(stderr).toContain("--repository sqlite:./limits.db, or set ZAEL_REPOSITORY");
  });

  it.each([
    ["entity shwo key-1", "Did you mean show?"],
    ["entiyt list", "Did you mean entity?"],
    ["entity list --limt 3", "Did you mean --limit?"],
    ["entity set-limits key-1", "--limit"],
    ["entity set-limits key-1 -l rpm", "name:rate[/period][:burst]"],
    ["entity set-limits key-1 -l rpm:0", "must be greater than 0"],
    ["entity set-limits key-1 -l rpm:1 -l rpm:2", "given twice"],
    ["entity create a#b", "Invalid"],
    ["acquire key-1 gpt-4", "amounts"],
    ["acquire key-1 gpt-4 rpm=-1", "name=number"],
    ["acquire key-1 gpt-4 rpm=1 rpm=2", "given twice"],
    ["acquire key-1 gpt-4 rpm=1 --wait soon", "seconds"],
    ["usage list", "--entity-id"],
    ["usage list -e key-1 --window weekly", "hourly, daily, monthly"],
    ["usage list -e key-1 --start yesterday", "ISO 8601"],
    ["entity list --limit 0", "whole number"],
    ["entity list --cursor stray", "cursor"],
    ["entity", "Usage: zae-limiter entity"],
  ])("exits 2 for %s and says %s", async (line, hint) => {
    const { code, stdout, stderr } = await run(line);
    expect(stderr).toContain(hint);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  });

  it.each([
    "entity shwo key-1",
    "entity set-limits key-1 -l rpm",
    "entity show a#b",
    "entity show unknown",
  ])("prints an error code and a message as JSON for %s", async (line) => {
    const { stderr, stdout } = await run(`${line} --json`);
    expect(JSON.parse(stderr)).toEqual({
      error: { code: expect.stringMatching(/^ERR_/), message: expect.stringMatching(/./) },
    });
    expect(stdout).toBe("");
  });

  it("lists the known schemes when given an unknown one", async () => {
    const { code, stderr } = await run("entity list --repository mongodb://x", {
      open: openRepository,
    });
    expect(code).toBe(2);
    expect(stderr).toContain("memory:");
  });
});

const verbs = (command: Command): readonly Command[] =>
  command.commands.length === 0 ? [command] : command.commands.flatMap(verbs);
const path = (command: Command | null): readonly string[] =>
  command?.parent ? [...path(command.parent), command.name()] : [];

describe("help", () => {
  const environment = {
    stdout: process.stdout,
    stderr: process.stderr,
    stdin: process.stdin,
    env: {},
    openRepository,
  };
  const all = verbs(createProgram(environment, { json: false, exitWith: () => undefined }));

  it.each(all.map((verb) => path(verb).join(" ")))(
    "of %s has an example that parses",
    async (verb) => {
      const { code, stdout } = await run(`${verb} --help`);
      expect(code).toBe(0);
      expect(stdout).toContain("--repository <url>");
      expect(stdout).toMatch(new RegExp(`Examples?:\\n {2}\\$ zae-limiter ${verb}`));
      for (const [, example] of stdout.matchAll(/^ {2}\$ zae-limiter (.*)$/gm)) {
        const words = [...example!.replace(/ && .*/, "").matchAll(/'([^']*)'|(\S+)/g)].map(
          ([, quoted, bare]) => quoted ?? bare!,
        );
        expect((await run(words)).code, example).not.toBe(2);
      }
    },
  );

  it("shows the version", async () => {
    expect((await run("--version")).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });
});

describe("destructive verbs", () => {
  beforeEach(() => repository.createEntity("key-1"));

  it("refuse without a terminal to ask at", async () => {
    const { code, stderr } = await run("entity delete key-1");
    expect(code).toBe(2);
    expect(stderr).toContain("--yes");
    expect(await repository.getEntity("key-1")).toBeDefined();
  });

  it.each([
    ["y\n", 0],
    ["YES\n", 0],
    ["n\n", 1],
    ["\n", 1],
    ["", 1],
  ])("ask a person, and act on the answer %j", async (typed, code) => {
    const outcome = await run("entity delete key-1", { typed });
    expect(outcome.stderr).toContain("Delete entity key-1 with its limits and balances? [y/N] ");
    expect(outcome.code).toBe(code);
    expect((await repository.getEntity("key-1")) === undefined).toBe(code === 0);
  });
});

describe("output", () => {
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
});

describe("verbs that need an existing repository", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "zae-limiter-cli-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it.each([
    "entity list",
    "namespace list",
    "usage summary -e key-1",
    "available key-1 gpt-4",
    "acquire key-1 gpt-4 rpm=1",
    "entity delete key-1 -y",
  ])("fail and create no file: %s", async (verb) => {
    const { code, stderr } = await run(`${verb} --repository sqlite:${folder}/limits.db`, {
      open: openRepository,
    });
    expect(code).toBe(1);
    expect(stderr).toContain(`There is no database ${folder}/limits.db`);
    expect(readdirSync(folder)).toEqual([]);
  });
});
