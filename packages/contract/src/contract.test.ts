import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { repositoryContract, type TestRunner } from "@zae-limiter/contract";
import { MemoryRepository } from "zae-limiter/memory";
import { afterEach, expect, it, vi } from "vitest";

afterEach(() => vi.unstubAllGlobals());

/** The faults that the contract has to cover, by number. */
const REQUIRED = [
  24, 30, 31, 36, 37, 38, 39, 40, 41, 45, 46, 47, 48, 49, 50, 52, 53, 57, 77, 79, 81,
];

it("tags a test with every fault that it has to cover, and the page on known faults explains each tag", () => {
  const tags = new Set(listNames().flatMap((name) => /\[(W-\d+)\]$/.exec(name)?.[1] ?? []));
  const page = readFileSync(new URL("../../../docs/known-faults.md", import.meta.url), "utf8");
  const explained = new Set([...page.matchAll(/^\| (W-\d+) \|/gm)].map((match) => match[1]));
  for (const number of REQUIRED) expect(tags, `W-${number}`).toContain(`W-${number}`);
  const ofBackends = testFiles().flatMap((path) =>
    [...readFileSync(path, "utf8").matchAll(/\[(W-\d+(?:, W-\d+)*)\]["`]/g)].flatMap((match) =>
      match[1]!.split(", "),
    ),
  );
  expect(explained).toEqual(new Set([...tags, ...ofBackends]));
});

it("no two tests of a topic have the same name", () => {
  const names = listNames();
  expect(new Set(names).size).toBe(names.length);
});

it("uses the global describe and it where no runner is passed", () => {
  const names: string[] = [];
  const runner = collecting(names);
  for (const [name, define] of Object.entries(runner)) vi.stubGlobal(name, define);
  repositoryContract("any", async (clock) => new MemoryRepository({ clock }));
  expect(names.length).toBeGreaterThan(200);
});

it("says what to pass where there is no global runner", () => {
  vi.stubGlobal("describe", undefined);
  expect(() => repositoryContract("any", async (clock) => new MemoryRepository({ clock }))).toThrow(
    /third argument/,
  );
});

it("closes the repository of a test that fails, and keeps its error", async () => {
  const bodies: (() => Promise<void>)[] = [];
  let closed = 0;
  repositoryContract(
    "broken",
    async (clock) => {
      const repository = new MemoryRepository({ clock });
      repository.setSystemDefaults = () => Promise.reject(new SyntaxError("broken"));
      repository[Symbol.asyncDispose] = async () => void (closed += 1);
      return repository;
    },
    { describe: (_, body) => body(), it: (_, body) => void bodies.push(body) },
  );
  await expect(bodies[0]?.()).rejects.toThrow("broken");
  expect(closed).toBe(1);
});

/** Tests that one backend alone has to pass name faults too. */
function testFiles(): readonly string[] {
  const packages = ["limiter", "lambda", "infra", "cli", "upgrade"];
  const folders = packages.flatMap((name) => [`${name}/src/`, `${name}/test/`]);
  return folders.flatMap((path) => {
    const folder = new URL(`../../${path}`, import.meta.url);
    if (!existsSync(folder)) return [];
    return readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".test.ts"))
      .map((name) => fileURLToPath(new URL(name, folder)));
  });
}

function listNames(): readonly string[] {
  const names: string[] = [];
  repositoryContract("any", async (clock) => new MemoryRepository({ clock }), collecting(names));
  return names;
}

function collecting(names: string[]): TestRunner {
  return { describe: (_, body) => body(), it: (name) => void names.push(name) };
}
