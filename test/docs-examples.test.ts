/*
 * Compiles and runs every example of the README files and the guide.
 *
 * A page is one program: its ```ts blocks share their names, in reading order. Its source is the
 * page with every other line blanked, so a line of an error is a line of the page. All pages are
 * compiled in one go against the built package, as a user's strict project would be, and run one
 * after another in one process.
 */
import { execFile } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { DynamoRepository } from "zae-limiter/dynamodb";
import { startEngine, whyMissing } from "../packages/limiter/test/support/engine-process.ts";
import { beforeAll, describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const workshop = `${root}.cache/docs-examples/`;

const pages = [
  "README.md",
  "packages/limiter/README.md",
  ...readdirSync(`${root}docs/guide`)
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/guide/${name}`),
];

/** Pages whose examples need an engine are compiled anyway, but run only where there is one. */
const needsEngine = (page: string): boolean =>
  programOf(readFileSync(root + page, "utf8")).includes('"zae-limiter/dynamodb"');
const missingEngine = whyMissing("dynoxide");
const runnable = pages.filter((page) => missingEngine === undefined || !needsEngine(page));

/**
 * What examples may use without saying where it comes from; `startsBlock` tells which block is
 * running, for errors without a stack.
 */
const SURROUNDINGS = `
export {};
declare global {
  /** Stands for the work that is limited; its usage has the field of OpenAI's client. */
  function callModel(): Promise<{ readonly text: string; readonly usage: { readonly total_tokens: number } }>;
  function startsBlock(line: number): void;
}
`;

/**
 * Tells one JSON line a page. A page that awaits what never comes ends the process, so that is told
 * on the way out.
 */
const RUNNER = `
globalThis.callModel = async () => ({ text: "Hello!", usage: { total_tokens: 1234 } });
let running;
const tell = (fault) => console.log(JSON.stringify({ page: running.page, fault: fault && "example at " + running.page + ":" + running.line + " " + fault }));
globalThis.startsBlock = (line) => { running.line = line; };
process.on("exit", () => running && tell("never ends"));
for (const page of process.argv.slice(2)) {
  running = { page, line: 1 };
  await import(new URL("./dist/" + page.replace(/\\.md$/, "").replaceAll("/", "-") + ".js", import.meta.url)).then(
    () => tell(),
    (error) => tell("failed: " + (error?.stack || error)),
  );
}
running = undefined;
`;

const COMPILER_OPTIONS = {
  extends: "../../tsconfig.base.json",
  compilerOptions: {
    rootDir: ".",
    outDir: "dist",
    composite: false,
    declaration: false,
    noUnusedLocals: false,
  },
};

/**
 * Marks the output of a script that ended with another code than 0: tests that an example defines
 * fail that way.
 */
const FAILED = "The script failed.";

let compilerOutput = "";
let runOutput = "";

beforeAll(async () => {
  rmSync(workshop, { recursive: true, force: true });
  mkdirSync(workshop, { recursive: true });
  for (const page of pages)
    writeFileSync(sourceOf(page), programOf(readFileSync(root + page, "utf8")));
  writeFileSync(`${workshop}surroundings.ts`, SURROUNDINGS);
  writeFileSync(`${workshop}run.js`, RUNNER);
  const files = ["surroundings.ts", ...pages.map((page) => sourceOf(page).slice(workshop.length))];
  writeFileSync(`${workshop}tsconfig.json`, JSON.stringify({ ...COMPILER_OPTIONS, files }));
  compilerOutput = await outputOf(`${root}node_modules/typescript/bin/tsc`, [
    "-p",
    workshop,
    "--pretty",
    "false",
  ]);
  const engine = missingEngine === undefined ? await startEngine("dynoxide") : undefined;
  try {
    if (engine !== undefined) await createStack(engine.endpointUrl);
    runOutput = await outputOf(
      `${workshop}run.js`,
      runnable,
      engine && environmentFor(engine.endpointUrl),
    );
  } finally {
    await engine?.stop();
  }
}, 60_000);

describe("the examples of", () => {
  it.each(pages)("%s compile, run and hold", (page) => {
    const markdown = readFileSync(root + page, "utf8");
    expect(
      programOf(markdown).match(/^startsBlock/gm)?.length ?? 0,
      "an indented or misspelt ts block is not run",
    ).toBe(markdown.match(/^\s*`{3,}\s*(?:ts|typescript)\b/gm)?.length ?? 0);
    expect(compilerFaults(page)).toEqual([]);
    if (!runnable.includes(page) && process.env["ZAEL_REQUIRE_ENGINES"] !== "1") return;
    const outcome = runOutput.split("\n").find((line) => line.startsWith(`{"page":"${page}"`));
    expect(outcome, `${page} did not run to its end:\n${runOutput}`).toBeDefined();
    const { fault } = JSON.parse(outcome ?? "{}") as { readonly fault?: string };
    expect(fault).toBeUndefined();
  });
});

it("compiles and runs them without any other complaint", () => {
  expect(compilerOutput).toBe("");
  expect(runOutput).not.toContain(FAILED);
});

it("both README files show a refusal that a retry can satisfy", () => {
  expect(runOutput.match(/^Retry-After: [1-9]\d*$/gm)).toHaveLength(2);
  const [, shown = ""] =
    /^```text\n(.*?)^```$/ms.exec(readFileSync(`${root}README.md`, "utf8")) ?? [];
  expect(shown).toContain("Retry-After");
  expect(withoutNumbers(runOutput)).toContain(withoutNumbers(shown));
});

it("turns a page into a program whose lines are the page's lines", () => {
  const page =
    "# Title\n\n```ts\nconst a = 1;\n```\n\nText.\n\n```sh\nnpm start\n```\n\n```ts\nconst b = a;\n```\n";
  expect(programOf(page).split("\n")).toEqual([
    "",
    "",
    "startsBlock(3);",
    "const a = 1;",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "startsBlock(13);",
    "const b = a;",
    "",
    "",
    "export {};",
  ]);
});

/** Balances and waits depend on how much was refilled meanwhile. */
function withoutNumbers(text: string): string {
  return text.replaceAll(/\d+(?:\.\d+)?/g, "0");
}

/** The program of a page: its `ts` blocks where they stand, and nothing else. */
function programOf(markdown: string): string {
  let inExample = false;
  const lines = markdown.split("\n").map((line, index) => {
    if (!line.startsWith("```")) return inExample ? line : "";
    inExample = line === "```ts";
    return inExample ? `startsBlock(${index + 1});` : "";
  });
  return [...lines, "export {};"].join("\n");
}

function sourceOf(page: string): string {
  return `${workshop}${page.replace(/\.md$/, "").replaceAll("/", "-")}.ts`;
}

/**
 * What the compiler says about a page, with the page's name and line: `docs/guide/debt.md:12: …`.
 */
function compilerFaults(page: string): readonly string[] {
  const name = sourceOf(page).slice(workshop.length);
  return compilerOutput
    .split("\n")
    .map((line) => /^(?:.*\/)?([^/(]+)\((\d+),\d+\): (.*)$/.exec(line))
    .flatMap((match) => (match?.[1] === name ? [`${page}:${match[2]}: ${match[3]}`] : []));
}

/** Pages open this stack as if it was deployed: no engine can, and other tests deploy one. */
async function createStack(endpointUrl: string): Promise<void> {
  const place = { stack: "limits", region: "eu-west-1", endpointUrl };
  const repository = await DynamoRepository.open("default", { ...place, provisioning: "table" });
  await repository.close();
}

/** What points the AWS SDK to an engine, so that examples look as they do with AWS. */
function environmentFor(endpointUrl: string): Record<string, string> {
  const credentials = { AWS_ACCESS_KEY_ID: "local", AWS_SECRET_ACCESS_KEY: "local" };
  return {
    AWS_ENDPOINT_URL_DYNAMODB: endpointUrl,
    AWS_ENDPOINT_URL_DYNAMODB_STREAMS: endpointUrl,
    AWS_REGION: "eu-west-1",
    ...credentials,
  };
}

/** What a script prints, also when it fails: the tests read the faults from it. */
async function outputOf(
  script: string,
  args: readonly string[],
  environment: Record<string, string> = {},
): Promise<string> {
  try {
    const { stdout, stderr } = await promisify(execFile)(
      process.execPath,
      ["--enable-source-maps", script, ...args],
      {
        cwd: root,
        env: { ...process.env, ...environment },
        timeout: 50_000,
      },
    );
    return stdout + stderr;
  } catch (error) {
    const {
      stdout = "",
      stderr = "",
      message,
    } = error as Error & { readonly stdout?: string; readonly stderr?: string };
    return `${stdout}${stderr}${FAILED} ${message}`;
  }
}
