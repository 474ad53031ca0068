/*
 * Runs every recipe as it was built, each in a process of its own: the providers' real clients,
 * against a server on this machine that speaks their protocols. The guide's pages show the same
 * text. Recipes that are servers have their tests in server-recipes.test.ts.
 */
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Limit, RateLimiter } from "zae-limiter";
import { SqliteRepository } from "zae-limiter/sqlite";
import { ManualClock } from "zae-limiter/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startProvider, type Provider } from "../examples/local-provider/provider.ts";
import { ANSWER } from "../examples/local-provider/wishes.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
/** Where recipes are changed and run; within the project, so that they find its packages. */
const WORKSHOP = `${root}.cache/recipes`;
const DAY_MS = 24 * 60 * 60 * 1000;
const TIMEOUT_MS = 30_000;

const recipes = readdirSync(`${root}examples/recipes`)
  .filter((name) => name.endsWith(".ts"))
  .map((name) => name.slice(0, -".ts".length));

describe("the guide", () => {
  it.each(recipes)("shows the recipe %s as it is run", (name) => {
    const page = readFileSync(`${root}docs/guide/recipes/${name}.md`, "utf8");
    const shown = [...page.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code);
    const program = readFileSync(`${root}examples/recipes/${name}.ts`, "utf8");
    expect(shown).toEqual([program]);
  });

  it("has a page for every recipe, and no other", () => {
    const pages = readdirSync(`${root}docs/guide/recipes`);
    expect(pages.toSorted()).toEqual(recipes.map((name) => `${name}.md`).toSorted());
  });
});

describe("a recipe", { timeout: TIMEOUT_MS }, () => {
  let provider: Provider;
  let folder: string;

  beforeAll(async () => {
    provider = await startProvider();
  });
  afterAll(() => provider.stop());
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "zae-limiter-recipes-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it("charges OpenAI's tokens to the key and to its team", async () => {
    expect(await run("openai-per-team")).toEqual([
      ANSWER,
      ANSWER,
      "key-ann  requests: 1  tokens: 16",
      "key-bob  requests: 1  tokens: 14",
      "team-blue  requests: 2  tokens: 30",
    ]);
  });

  it("starts again on limits that are stored, as its comment says", async () => {
    const program = readFileSync(getProgram("openai-per-team"), "utf8")
      .replace("zae-limiter/memory", "zae-limiter/sqlite")
      .replace("{ MemoryRepository }", "{ SqliteRepository }")
      .replace("new MemoryRepository()", `await SqliteRepository.open("${folder}/limits.db")`);
    mkdirSync(WORKSHOP, { recursive: true });
    writeFileSync(`${WORKSHOP}/stored.js`, program);
    for (const tokens of [30, 60]) {
      const { code, stdout } = await toOutcome([`${WORKSHOP}/stored.js`]);
      expect(stdout).toContain(`team-blue  requests: ${tokens / 15}  tokens: ${tokens}`);
      expect(code).toBe(0);
    }
  });

  it("charges Anthropic's input and output tokens to the key and to its team", async () => {
    expect(await run("anthropic-per-team")).toEqual([
      ANSWER,
      ANSWER,
      "key-ann  requests: 1  input: 8  output: 8",
      "key-bob  requests: 1  input: 6  output: 8",
      "team-blue  requests: 2  input: 14  output: 16",
    ]);
  });

  it("settles the provider's count, or what was read when the reader goes away", async () => {
    const hungUp = provider.nextHangUp();
    expect(await run("streaming")).toEqual([
      ANSWER,
      "Estimated 206 tokens, settled 16.",
      "A bucket holds ",
      "Estimated 207 tokens, settled 11.", // 7 of the question, and 4 of 15 bytes
    ]);
    await hungUp;
  });

  it("estimates, and gives back what was not used", async () => {
    expect(await run("estimating")).toEqual([
      "estimated 70, used 24: 46 given back",
      "estimated 69, used 22: 47 given back",
      "estimated 1008, used 14: 994 given back",
    ]);
  });

  // The recipe and the test ask the clock one after the other, and midnight may be between them.
  it("shows the last seven whole days of one entity", { retry: 1 }, async () => {
    const file = join(folder, "limits.db");
    const today = Math.floor(Date.now() / DAY_MS) * DAY_MS;
    const clock = new ManualClock(today - 8 * DAY_MS);
    const repository = await SqliteRepository.open(file, { clock });
    await repository.setSystemDefaults([Limit.perMinute("rpm", 60), Limit.perMinute("tpm", 6000)]);
    const limiter = new RateLimiter({ repository });
    for (let day = 0; day <= 8; day += 1) {
      const consume = { rpm: 1, tpm: 10 ** Math.floor(day / 3) };
      for (const entityId of ["team-blue", "team-red"])
        await limiter.acquire({ entityId, resource: "gpt-4", consume }, () => {});
      await clock.advance(DAY_MS);
    }
    await repository.close();

    const lines = await run("last-week", "team-blue", file);
    const date = new Date(today - 7 * DAY_MS).toISOString().slice(0, 10);
    expect(lines).toHaveLength(8);
    expect(lines[0]).toBe(`${date}  gpt-4  requests: 1  tokens: 1`);
    expect(lines[7]).toBe("team-blue in 7 days  requests: 7  tokens: 232");
  });

  it("raises one limit of a running system, and takes no other away", async () => {
    const file = join(folder, "limits.db");
    const repository = await SqliteRepository.open(file);
    const limiter = new RateLimiter({ repository });
    const [rpm, tpm] = [Limit.perDay("rpm", 1), Limit.perDay("tpm", 10_000)];
    await repository.setSystemDefaults([rpm, tpm]);
    const request = { entityId: "team-blue", resource: "gpt-4", consume: { rpm: 1, tpm: 500 } };
    await limiter.acquire(request, () => {});
    const before = await limiter.timeUntilAvailable("team-blue", "gpt-4", { rpm: 1 });
    expect(before).toBeGreaterThan(80_000);

    const lines = await run("raise-a-limit", "team-blue", "gpt-4", "rpm:86400000/day", file);
    expect(lines).toEqual([
      "rpm:86400000/day  from level: entity",
      "tpm:10000/day  from level: system",
    ]);
    const after = await limiter.timeUntilAvailable("team-blue", "gpt-4", { rpm: 1, tpm: 500 });
    expect(after).toBeLessThanOrEqual(0.001);

    // Raised again: what the list holds besides stays, and so does how it was stored.
    const replacing = { resource: "gpt-4", inherit: false };
    await repository.setLimits("team-blue", [rpm, tpm], replacing);
    expect(await run("raise-a-limit", "team-blue", "gpt-4", "rpm:7/day", file)).toEqual([
      "rpm:7/day  from level: entity",
      "tpm:10000/day  from level: entity",
    ]);
    const { levels } = (await repository.resolveLimits("team-blue", "gpt-4"))!;
    expect(levels[0]?.inherit).toBe(false);
    const [event] = (await repository.getAuditEvents("team-blue")).items;
    expect(event?.principal).toBe("operator");
    await repository.close();
  });

  it("tests code that uses a limiter, under node:test and under vitest", async () => {
    // The default differs between versions of Node.
    const tested = await toOutcome(["--test-reporter=tap", getProgram("test-your-code")]);
    expect(tested).toMatchObject({ code: 0, stderr: "" });
    expect(tested.stdout).toMatch(/^# pass 3$/m);

    const text = readFileSync(`${root}examples/recipes/test-your-code.ts`, "utf8");
    const forVitest = text.replace(/^.*node:test.*$/m, 'import { test } from "vitest";');
    expect(forVitest).not.toBe(text);
    mkdirSync(WORKSHOP, { recursive: true });
    writeFileSync(`${WORKSHOP}/vitest.config.mjs`, "export default {};");
    writeFileSync(`${WORKSHOP}/test-your-code.test.ts`, forVitest);
    const vitest = `${root}node_modules/vitest/vitest.mjs`;
    const { code, stdout } = await toOutcome([vitest, "run", "--root", WORKSHOP]);
    expect(stdout).toMatch(/3 passed/);
    expect(code).toBe(0);
  });

  /** What a recipe prints, without empty lines; it must end well and complain about nothing. */
  async function run(name: string, ...args: readonly string[]): Promise<readonly string[]> {
    const { code, stdout, stderr } = await toOutcome([getProgram(name), ...args]);
    expect(stderr).toBe("");
    expect(code).toBe(0);
    return stdout.split("\n").filter((line) => line !== "");
  }

  function toOutcome(
    args: readonly string[],
  ): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }> {
    const env = { ...process.env, ...provider.environment };
    return new Promise((resolve) => {
      execFile(process.execPath, args, { cwd: root, env }, (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
      );
    });
  }
});

function getProgram(name: string): string {
  return `${root}examples/recipes/dist/${name}.js`;
}
