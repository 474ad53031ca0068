/*
 * Compiles and runs every example of README and guide.
 *
 * A page is one program: its ```ts blocks share their names, in reading order. A block that begins
 * with ```ts program is a program of its own, to be copied as it is. The source of a program is the
 * page with every other line blanked, so a line of an error is a line of the page. All pages are
 * compiled in one go against the built package, as a user's strict project would be, and run one
 * after another in one process. Servers that a program leaves open are asked once, and closed: what
 * a page shows of `curl -i localhost:3000` is what they answered. Clients of LLMs talk to a
 * provider on this machine.
 */
import { execFile } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { DynamoRepository } from "zae-limiter/dynamodb";
import { startProvider } from "#local-provider";
import { startEngine, whyMissing } from "../packages/limiter/test/support/engine-process.ts";
import { beforeAll, describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const workshop = `${root}.cache/docs-examples/`;

const pages = [
  "README.md",
  ...readdirSync(`${root}docs/guide`)
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/guide/${name}`),
];

/** Pages whose examples need an engine are compiled anyway, but run only where there is one. */
const needsEngine = (page: string): boolean =>
  listPrograms(readFileSync(root + page, "utf8")).some((program) =>
    program.includes('"zae-limiter/dynamodb"'),
  );
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
  /** Stands for a client of a server on this machine. */
  function ask(server: { address(): unknown }, path?: string, init?: RequestInit): Promise<Response>;
  function startsBlock(line: number): void;
}
`;

/**
 * Prints one JSON line a page. A page that awaits what never comes ends the process, so that is
 * printed on the way out. Pages listen on port 3000, as their readers do; here it may be in use, so
 * a free one takes its place.
 */
const RUNNER = `
import { Server } from "node:net";
globalThis.callModel = async () => ({ text: "Hello!", usage: { total_tokens: 1234 } });
globalThis.ask = (server, path = "/", init = {}) => fetch("http://localhost:" + server.address().port + path, init);
const servers = new Set();
const { listen } = Server.prototype;
Server.prototype.listen = function (where, ...rest) {
  servers.add(this);
  return listen.call(this, where === 3000 ? 0 : where.port === 3000 ? { ...where, port: 0 } : where, ...rest);
};
let running;
const tell = (fault) => console.log(JSON.stringify({ ...running, fault: fault && "example at " + running.page + ":" + running.line + " " + fault }));
globalThis.startsBlock = (line) => { running.line = line; };
process.on("exit", () => running && tell("never ends"));
async function run(program) {
  servers.clear();
  await import(new URL("./dist/" + program.replace(/\\.ts$/, ".js"), import.meta.url));
  const open = [...servers].filter((server) => server.listening);
  // Fastify has a server for each address of localhost, on one port.
  const ports = new Set(open.map((server) => server.address().port));
  for (const port of ports) {
    const response = await ask({ address: () => ({ port }) });
    const shown = [...response.headers].map(([name, value]) => name + ": " + value);
    running.answers.push(["HTTP/1.1 " + response.status + " " + response.statusText, ...shown]);
  }
  for (const server of open) {
    server.closeAllConnections();
    server.close();
  }
}
for (const [page, programs] of JSON.parse(process.argv[2])) {
  running = { page, line: 1, answers: [] };
  try {
    for (const program of programs) await run(program);
    tell();
  } catch (error) {
    tell("failed: " + (error?.stack || error));
  }
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
    // CDK's own declarations do not hold under our options.
    skipLibCheck: true,
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
    for (const [index, program] of listPrograms(readFileSync(root + page, "utf8")).entries())
      writeFileSync(workshop + listSources(page)[index]!, program);
  writeFileSync(`${workshop}surroundings.ts`, SURROUNDINGS);
  writeFileSync(`${workshop}run.js`, RUNNER);
  const files = ["surroundings.ts", ...pages.flatMap(listSources)];
  writeFileSync(`${workshop}tsconfig.json`, JSON.stringify({ ...COMPILER_OPTIONS, files }));
  compilerOutput = await runForOutput(`${root}node_modules/typescript/bin/tsc`, [
    "-p",
    workshop,
    "--pretty",
    "false",
  ]);
  const engine = missingEngine === undefined ? await startEngine("dynoxide") : undefined;
  const provider = await startProvider();
  try {
    if (engine !== undefined) await createStack(engine.endpointUrl);
    runOutput = await runForOutput(
      `${workshop}run.js`,
      [JSON.stringify(runnable.map((page) => [page, listSources(page)]))],
      { ...(engine && environmentFor(engine.endpointUrl)), ...provider.environment },
    );
  } finally {
    await provider.stop();
    await engine?.stop();
  }
}, 120_000);

describe("the examples of", () => {
  it.each(pages)("%s compile, run and hold", (page) => {
    const markdown = readFileSync(root + page, "utf8");
    expect(
      listPrograms(markdown)
        .join("\n")
        .match(/^startsBlock/gm)?.length ?? 0,
      "an indented or misspelt ts block is not run",
    ).toBe(markdown.match(/^\s*`{3,}\s*(?:ts|typescript)\b/gm)?.length ?? 0);
    expect(compilerFaults(page)).toEqual([]);
    if (!runnable.includes(page) && process.env["ZAEL_REQUIRE_ENGINES"] !== "1") return;
    const outcome = runOutput.split("\n").find((line) => line.startsWith(`{"page":"${page}"`));
    expect(outcome, `${page} did not run to its end:\n${runOutput}`).toBeDefined();
    const { fault, answers } = JSON.parse(outcome!) as Outcome;
    expect(fault).toBeUndefined();
    expect(answers.length).toBe(markdown.match(/^```ts program$/gm)?.length ?? answers.length);
    const answered = answers.map((lines) => lines.map(comparable));
    for (const shown of answersShownIn(markdown))
      expect(answered).toContainEqual(expect.arrayContaining(shown.map(comparable)));
  });
});

it("compiles and runs them without any other complaint", () => {
  expect(compilerOutput).toBe("");
  expect(runOutput).not.toContain(FAILED);
});

it("the README shows a refusal that a retry can satisfy", () => {
  expect(runOutput.match(/^Retry-After: [1-9]\d*$/gm)).toHaveLength(1);
  const [, shown = ""] =
    /^```text\n(.*?)^```$/ms.exec(readFileSync(`${root}README.md`, "utf8")) ?? [];
  expect(shown).toContain("Retry-After");
  expect(withoutNumbers(runOutput)).toContain(withoutNumbers(shown));
});

it("turns a page into programs whose lines are the page's lines", () => {
  const blocks = [
    ["ts", "const a = 1;"],
    ["sh", "npm start"],
    ["ts program", "const own = 1;"],
    ["ts", "const b = a;"],
  ];
  const page = blocks.map(([kind, code]) => `\`\`\`${kind}\n${code}\n\`\`\`\n`).join("");
  const [shared = "", own = ""] = listPrograms(page);
  expect(shared.split("\n")).toEqual([
    "startsBlock(1);",
    "const a = 1;",
    ...Array.from({ length: 7 }, () => ""),
    "startsBlock(10);",
    "const b = a;",
    "",
    "",
    "export {};",
  ]);
  expect(own.split("\n")).toEqual([
    ...Array.from({ length: 6 }, () => ""),
    "startsBlock(7);",
    "const own = 1;",
    ...Array.from({ length: 5 }, () => ""),
    "export {};",
  ]);
});

/** Balances and waits depend on how much was refilled meanwhile. */
function withoutNumbers(text: string): string {
  return text.replaceAll(/\d+(?:\.\d+)?/g, "0");
}

/** What the runner tells of a page. */
interface Outcome {
  readonly fault?: string;
  /** The lines that each server of the page has answered. */
  readonly answers: readonly (readonly string[])[];
}

/** The lines that a page shows of answers of its servers. */
function answersShownIn(markdown: string): readonly (readonly string[])[] {
  return [...markdown.matchAll(/^```console\n\$ curl -i localhost:3000\n(.*?)\n```$/gms)].map(
    ([, lines = ""]) => lines.split("\n"),
  );
}

/** A line of an answer, as it is compared: names of headers have no case. */
function comparable(line: string): string {
  return withoutNumbers(line).toLowerCase();
}

/**
 * The programs of a page: that of its `ts` blocks together, then one for each block that is a
 * program of its own; each where it stands, and nothing else.
 */
function listPrograms(markdown: string): readonly string[] {
  const lines = markdown.split("\n");
  const blank = lines.map(() => "");
  const shared = [...blank];
  const programs = [shared];
  let current: string[] | undefined;
  for (const [index, line] of lines.entries()) {
    if (line.startsWith("```")) {
      current = line === "```ts" ? shared : undefined;
      if (line === "```ts program") programs.push((current = [...blank]));
    }
    if (current !== undefined)
      current[index] = line.startsWith("```") ? `startsBlock(${index + 1});` : line;
  }
  return programs.map((program) => [...program, "export {};"].join("\n"));
}

/** The files of a page's programs. */
function listSources(page: string): readonly string[] {
  const name = page.replace(/\.md$/, "").replaceAll("/", "-");
  const programs = listPrograms(readFileSync(root + page, "utf8"));
  return programs.map((_, index) => (index === 0 ? `${name}.ts` : `${name}.${index}.ts`));
}

/**
 * What the compiler says about a page, with the page's name and line: `docs/guide/debt.md:12: …`.
 */
function compilerFaults(page: string): readonly string[] {
  const names = listSources(page);
  return compilerOutput
    .split("\n")
    .map((line) => /^(?:.*\/)?([^/(]+)\((\d+),\d+\): (.*)$/.exec(line))
    .flatMap((match) =>
      names.includes(match?.[1] ?? "") ? [`${page}:${match![2]}: ${match![3]}`] : [],
    );
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
async function runForOutput(
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
        timeout: 100_000,
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
