/*
 * The declarations compile, with `skipLibCheck` off, in the project of a user with any compiler
 * from TypeScript 5.0 on, with and without the types of Node, and without those of the DOM.
 */
import { execFile } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { compilers } from "../../tools/fetch-packages.mjs";
import { availableOrSkipped } from "./available.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const library = join(root, "packages/limiter");
const ownCompiler = join(root, "node_modules/typescript");

/** Outside of the workspace, where the compiler would find the types of Node by itself. */
const folder = mkdtempSync(join(tmpdir(), "declarations-"));

const getVersion = (path: string): string =>
  (JSON.parse(readFileSync(join(path, "package.json"), "utf8")) as { version: string }).version;

const all = [
  ...(availableOrSkipped("older compilers", compilers) ?? []),
  [getVersion(ownCompiler), join(ownCompiler, "bin/tsc")] as const,
];

const entries = Object.keys(
  (JSON.parse(readFileSync(join(library, "package.json"), "utf8")) as { exports: object }).exports,
)
  .filter((entry) => !entry.endsWith(".json"))
  .map((entry) => entry.replace(".", "zae-limiter"));

/** Entries whose types are partly those of a package, so their users have it. */
const WITH_PEERS = ["express", "fastify", "hono", "otel"].map((name) => `zae-limiter/${name}`);

/** Those whose types are partly Node's. */
const WITH_NODES = ["zae-limiter/http"];

/** Those with types of `fetch`, which Node and the DOM have. */
const WITH_FETCH = ["llm", "ai-sdk", "openai", "anthropic", "langchain"].map(
  (name) => `zae-limiter/${name}`,
);

const alone = entries.filter(
  (entry) => ![...WITH_PEERS, ...WITH_NODES, ...WITH_FETCH].includes(entry),
);

/** Uses every type that a compiler may lack. */
const PROGRAM = `
${listExports(alone)}
import { RateLimiter, type Repository } from "zae-limiter";
import { leanTransport, type HttpAgent } from "zae-limiter/dynamodb";

export async function use(repository: Repository, signal: AbortSignal, agent: HttpAgent): Promise<void> {
  const limiter = new RateLimiter({ repository });
  const lease = await limiter.acquire({ entityId: "key-1", resource: "gpt-4", consume: { rpm: 1 }, signal });
  await lease[Symbol.asyncDispose]();
  await limiter[Symbol.asyncDispose]();
  await repository[Symbol.asyncDispose]();
  await leanTransport({ agent });
}
`;

const WITH_NODE = `
import { Agent } from "node:http";
import { Agent as SecureAgent } from "node:https";
import { use } from "./program.js";
${listExports(WITH_NODES)}

declare const repository: import("zae-limiter").Repository;
export const used = use(repository, AbortSignal.timeout(1000), new Agent());
export const usedAgain = use(repository, new AbortController().signal, new SecureAgent());
`;

/** Names of the compiler's newest libraries are the same as ours. */
const WITH_DISPOSABLE = `
export const resources: AsyncDisposable[] = [];
declare const repository: import("zae-limiter").Repository;
resources.push(repository);
`;

const TIMEOUT_MS = 120_000;

beforeAll(() => {
  for (const project of ["bare", "node", "peers"]) {
    const installed = join(folder, project, "node_modules/zae-limiter");
    cpSync(library, installed, {
      recursive: true,
      filter: (path) => !/\/(?:src|test|node_modules)$|\.js(?:\.map)?$/.test(path),
    });
    writeFileSync(join(folder, project, "package.json"), '{ "type": "module" }');
    writeFileSync(join(folder, project, "program.ts"), PROGRAM);
    writeFileSync(join(folder, project, "fetch.ts"), listExports(WITH_FETCH));
  }
  install("node", { "@types/node": "@types/node" });
  install("peers", {
    "@types/node": "@types/node",
    "@types/express": "types-express-4",
    fastify: "fastify",
    hono: "hono",
    "@opentelemetry/api": "@opentelemetry/api",
  });
  for (const file of ["express.ts", "same.ts"])
    cpSync(join(root, "test/types-consumer/http", file), join(folder, "peers", file));
  writeFileSync(join(folder, "peers/peers.ts"), listExports(WITH_PEERS));
  writeFileSync(join(folder, "node/with-node.ts"), WITH_NODE);
  writeFileSync(join(folder, "bare/with-disposable.ts"), WITH_DISPOSABLE);
}, TIMEOUT_MS);

afterAll(() => rmSync(folder, { recursive: true, force: true }), TIMEOUT_MS);

for (const [version, tsc] of all) {
  it(`TypeScript ${version} takes them with Node's types`, { timeout: TIMEOUT_MS }, async () => {
    const flags = ["--lib", "es2022", "--types", "node", "with-node.ts", "fetch.ts"];
    expect(await complaints(tsc, "node", flags)).toBe("");
  });

  it(`TypeScript ${version} takes them with no others`, { timeout: TIMEOUT_MS }, async () => {
    expect(await complaints(tsc, "bare", ["--lib", "es2022", "program.ts"])).toBe("");
  });
}

// The types of the DOM take longest to compile, so the oldest and the newest compiler do.
it.each([all[0]!, all.at(-1)!])(
  "TypeScript %s takes them with the DOM's types",
  { timeout: TIMEOUT_MS },
  async (_, tsc) => {
    expect(await complaints(tsc, "bare", ["program.ts", "fetch.ts"])).toBe("");
  },
);

it("they agree with the compiler's own types", { timeout: TIMEOUT_MS }, async () => {
  const flags = ["--lib", "esnext", "program.ts", "with-disposable.ts"];
  expect(await complaints(join(ownCompiler, "bin/tsc"), "bare", flags)).toBe("");
});

it.each(alone)("%s needs no other entry to be compiled", { timeout: TIMEOUT_MS }, async (entry) => {
  const file = join(folder, "bare", `${basename(entry)}-alone.ts`);
  writeFileSync(file, `export * from "${entry}";`);
  const flags = ["--lib", "es2022", file];
  expect(await complaints(join(ownCompiler, "bin/tsc"), "bare", flags)).toBe("");
});

// test/types-consumer/http has the server with Express 5, and servers with the others.
it("those of frameworks, and a server with Express 4", { timeout: TIMEOUT_MS }, async () => {
  const flags = ["--types", "node", "--allowImportingTsExtensions", "peers.ts", "express.ts"];
  expect(await complaints(join(ownCompiler, "bin/tsc"), "peers", flags)).toBe("");
});

/** A program that uses every type of entries. */
function listExports(names: readonly string[]): string {
  return names.map((entry, index) => `export * as entry${index} from "${entry}";`).join("\n");
}

/** Makes packages of the workspace those of a project. */
function install(project: string, packages: Readonly<Record<string, string>>): void {
  for (const [name, source] of Object.entries(packages)) {
    const path = join(folder, project, "node_modules", name);
    mkdirSync(dirname(path), { recursive: true });
    symlinkSync(join(root, "node_modules", source), path, "junction");
  }
}

/** What a compiler says about files of a project. */
async function complaints(tsc: string, project: string, flags: readonly string[]): Promise<string> {
  const strict = [
    "--noEmit",
    "--strict",
    "--exactOptionalPropertyTypes",
    "--skipLibCheck",
    "false",
  ];
  const modules = ["--target", "es2022", "--module", "nodenext", "--moduleResolution", "nodenext"];
  try {
    await promisify(execFile)(process.execPath, [tsc, ...strict, ...modules, ...flags], {
      cwd: join(folder, project),
      env: { ...process.env, NO_COLOR: "1" },
    });
    return "";
  } catch (error) {
    const { stdout, stderr } = error as { readonly stdout?: string; readonly stderr?: string };
    return `${stdout}${stderr}`;
  }
}
