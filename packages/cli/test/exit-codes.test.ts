import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openRepository } from "zae-limiter/open";
import { MemoryRepository } from "zae-limiter/memory";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
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
    ["usage list", "Pass an entity, --resource, or both."],
    ["usage list key-1 -e key-2", "Two entities were given, key-1 and key-2."],
    ["audit list key-1 --system", "exactly one of an entity, --resource and --system"],
    ["audit list", "exactly one of an entity"],
    ["entity create key-1 --name A --display-name B", "cannot be used with"],
    ["entity set-limits key-1 rpm:1 -l rpm:2", "given twice"],
    ["system set-defaults", "No limit was given."],
    ["resource set-defaults gpt-4", "No limit was given."],
    ["entity list -l 5", "unknown option '-l'"],
    ["entity list --stack my-stack", "--stack can only name a DynamoDB table"],
    ["usage list -e key-1 --window weekly", "hourly, daily, monthly"],
    ["usage list -e key-1 --start yesterday", "ISO 8601"],
    ["entity list --limit 0", "whole number"],
    ["entity list --cursor stray", "cursor"],
    [
      "entity list --stack x?endpoint=http://127.0.0.1:1",
      "cannot be a stack: it must begin with a letter",
    ],
    ["entity list --region eu/x?endpoint=http://127.0.0.1:1", "small letters, digits and - only"],
    ["list --region eu-west-1 --endpoint-url ftp://127.0.0.1", "must be an address such as http"],
    ["entity", "Usage: zae-limiter entity"],
  ])("exits 2 for %s and says %s", async (line, hint) => {
    const address = /--(stack|region) .*endpoint/.test(line);
    const { code, stdout, stderr } = await run(
      line,
      address ? { env: { ZAEL_REPOSITORY: "" } } : {},
    );
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
    expect(stderr).toContain(`The database ${folder}/limits.db does not exist`);
    expect(readdirSync(folder)).toEqual([]);
  });

  it.each([
    "system set-defaults",
    "entity set-limits key-1",
    "resource set-defaults gpt-4",
    "usage list",
    "usage summary",
    "audit list",
  ])("are checked before the repository is opened: %s", async (verb) => {
    const { code } = await run(`${verb} --repository sqlite:${folder}/limits.db`, {
      open: openRepository,
    });
    expect(code).toBe(2);
    expect(readdirSync(folder)).toEqual([]);
  });
});
