import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { MemoryRepository } from "zae-limiter/memory";
import { repositoryContract, type TestRunner } from "zae-limiter/testing";
import { afterEach, expect, it, vi } from "vitest";

afterEach(() => vi.unstubAllGlobals());

/** The faults that the contract has to cover, by number. */
const REQUIRED = [24, 30, 31, 36, 37, 38, 39, 40, 41, 45, 46, 47, 48, 49, 50, 52, 53, 57, 77, 79, 81];

it("tags a test with every fault that it has to cover", () => {
  const tags = namesOf().flatMap((name) => /\[(W-\d+)\]$/.exec(name)?.[1] ?? []);
  for (const number of REQUIRED) expect(tags).toContain(`W-${number}`);
});

it("the page on known faults explains every tag of a test, and no other", () => {
  const page = readFileSync(new URL("../../../../../docs/known-faults.md", import.meta.url), "utf8");
  expect(numbersIn(page, /^\| (W-\d+) \|/gm)).toEqual(numbersIn(sourceOfTests(), /\b(W-\d+)\b/g));
});

it("no two tests of a topic have the same name", () => {
  const names = namesOf();
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
  expect(() => repositoryContract("any", async (clock) => new MemoryRepository({ clock }))).toThrow(/third argument/);
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

/** Everything in this package that may define a test: the contract, the tests of each backend, and those of several processes. */
function sourceOfTests(): string {
  const root = fileURLToPath(new URL("../../..", import.meta.url));
  const files = ["src", "test"].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map((file) => join(root, folder, file)),
  );
  const written = files.filter((file) => file.endsWith(".ts") && !file.includes("node_modules") && !file.includes("dist"));
  return written.map((file) => readFileSync(file, "utf8")).join("\n");
}

function numbersIn(text: string, pattern: RegExp): readonly string[] {
  const numbers = new Set([...text.matchAll(pattern)].map((match) => match[1]!));
  return [...numbers].toSorted((left, right) => left.localeCompare(right));
}

function namesOf(): readonly string[] {
  const names: string[] = [];
  repositoryContract("any", async (clock) => new MemoryRepository({ clock }), collecting(names));
  return names;
}

function collecting(names: string[]): TestRunner {
  return { describe: (_, body) => body(), it: (name) => void names.push(name) };
}
