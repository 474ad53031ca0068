// Runs the essentials of the packed library in each JavaScript runtime that documents name, and
// prints what came of it:
//
//   npm run runtimes                all of them
//   npm run runtimes -- bun deno    those whose names contain a word
//
// The runtimes come from the package registry. Each serves test/runtimes/essentials.mjs with its
// own server, on loopback, and this is its client. A cell is "ok", "not supported" with the error
// that the library throws there, or "FAILED".
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { startProvider } from "#local-provider";
import { node20, node22, node24, runtimePackages } from "./fetch-packages.mjs";
import { runNpm } from "./npm.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const START_TIMEOUT_MS = 30_000;
const PATIENCE_MS = 5000;
const ANSWER_TIMEOUT_MS = 10_000;

const modules = runtimePackages();
const bun = join(modules, "bun", "bin", "bun.exe");
const deno = join(modules, "deno", process.platform === "win32" ? "deno.exe" : "deno");
// `--allow-sys=uid` is for Node's access(), with which the library checks the folder of a database.
const denoRights = "net,env,read,write,sys=uid".split(",").map((right) => `--allow-${right}`);

/** How each is started, and the driver of SQLite that is built in. */
const RUNTIMES = {
  "Node 20": { command: () => [node20(), "serve-node.mjs"] },
  "Node 22": { command: () => [node22(), "serve-node.mjs"], sqlite: "node:sqlite" },
  "Node 24": { command: () => [node24(), "serve-node.mjs"], sqlite: "node:sqlite" },
  Bun: { command: () => [bun, "serve-bun.mjs"], sqlite: "node:sqlite" },
  Deno: { command: () => [deno, "run", ...denoRights, "serve-deno.mjs"], sqlite: "node:sqlite" },
  // Its simulator is a program of Node's.
  "Cloudflare Workers (miniflare)": { command: () => [node22(), "serve-worker.mjs"] },
};

const ESSENTIALS = {
  "acquire and settle in memory": async ({ url }) => void (await prove(`${url}/memory`)),
  SQLite: proveSqlite,
  "web handler": ({ url }) => proveServer(`${url}/handler`, url),
  Hono: ({ url }) => proveServer(`${url}/hono`, url),
  "limitFetch with openai": async ({ url, provider }) =>
    void (await prove(`${url}/openai?url=${encodeURIComponent(provider.url)}`)),
};

const words = process.argv.slice(2).map((word) => word.toLowerCase());
const chosen = Object.entries(RUNTIMES).filter(
  ([name]) => words.length === 0 || words.some((word) => name.toLowerCase().includes(word)),
);
if (chosen.length === 0) throw new Error(`No runtime is called ${words.join(" or ")}.`);

const folder = makeProject();
const provider = await startProvider();
const failures = [];
const rows = [];
try {
  await bundleWorker();
  for (const [name, runtime] of chosen) rows.push([name, ...(await tryRuntime(name, runtime))]);
} finally {
  await provider.stop();
  rmSync(folder, { recursive: true, force: true });
}
printTable([["runtime", ...Object.keys(ESSENTIALS)], ...rows]);
for (const failure of failures) console.log(`\n${failure}`);
process.exitCode = failures.length === 0 ? 0 : 1;

/**
 * A user's project with the packed library, the programs and what they import. It is outside of the
 * clone, whose packages would be found otherwise.
 */
function makeProject() {
  const project = mkdtempSync(join(tmpdir(), "runtimes-"));
  const packed = ["pack", "--workspace", "zae-limiter", "--silent", "--pack-destination", project];
  runNpm(packed, { cwd: root });
  const tarball = readdirSync(project).find((name) => name.endsWith(".tgz"));
  runNpm([
    "install",
    "--no-save",
    "--offline",
    "--omit=peer",
    "--prefix",
    project,
    join(project, tarball),
  ]);
  mkdirSync(join(project, "node_modules/@hono"));
  for (const name of ["hono", "@hono/node-server", "openai", "miniflare"])
    symlinkSync(join(modules, name), join(project, "node_modules", name), "junction");
  // Deno looks for node_modules beside such a file.
  writeFileSync(join(project, "package.json"), '{ "type": "module" }');
  cpSync(join(root, "test/runtimes"), project, { recursive: true });
  return project;
}

/** Workers are bundled, as Cloudflare's own tools do. */
async function bundleWorker() {
  await build({
    entryPoints: [join(folder, "worker.mjs")],
    outfile: join(folder, "worker.bundle.mjs"),
    bundle: true,
    format: "esm",
    conditions: ["workerd", "worker", "browser"],
    external: ["node:*"],
    logLevel: "error",
  });
}

/** The cells of one row. */
async function tryRuntime(name, { command, sqlite }) {
  let server;
  try {
    server = await startServer(command());
  } catch (error) {
    failures.push(`${name} did not start: ${error.stack}`);
    return Object.keys(ESSENTIALS).map(() => "FAILED");
  }
  try {
    const cells = [];
    for (const [essential, run] of Object.entries(ESSENTIALS)) {
      try {
        cells.push((await run({ ...server, provider, sqlite, name })) ?? "ok");
      } catch (error) {
        failures.push(`${name}, ${essential}: ${error.stack}`);
        cells.push("FAILED");
      }
    }
    return cells;
  } finally {
    await server.stop();
  }
}

/** Starts a program that prints its address. */
async function startServer([command, ...args]) {
  const child = spawn(command, args, { cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => {
    child.once("exit", resolve);
  });
  const lines = createInterface({ input: child.stdout });
  const url = new Promise((resolve, reject) => {
    lines.on("line", (line) => resolve(/^Listening on (http:\S+?)\/?$/.exec(line)?.[1]));
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`${command} ended with ${code}.`)));
    void setTimeout(START_TIMEOUT_MS, undefined, { ref: false }).then(() =>
      reject(new Error(`${command} did not start.`)),
    );
  });
  const stop = () => {
    child.kill();
    return ended;
  };
  try {
    return { url: await url, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function ask(url) {
  return fetch(url, { signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) });
}

/** Runs an essential within the runtime. */
async function prove(url) {
  const response = await ask(url);
  const body = await response.json();
  if (!response.ok) throw Object.assign(new Error(body.stack ?? body.message), { code: body.code });
  return body;
}

/** Where no driver is built in, the error has to say so. */
async function proveSqlite({ url, sqlite, name }) {
  // Workers have no folder but this.
  const place = name.startsWith("Cloudflare") ? "/tmp" : folder;
  const path = `${place}/${name.replaceAll(/\W+/g, "-")}.db`;
  const asked = prove(`${url}/sqlite?path=${encodeURIComponent(path)}`);
  if (sqlite !== undefined) return `ok (${(await asked).driver})`;
  await assert.rejects(asked, { code: "ERR_LIMITER_DRIVER_MISSING" });
  return "not supported (ERR_LIMITER_DRIVER_MISSING)";
}

/** Two requests an hour: headers and refusals, then a stream that is left in the middle. */
async function proveServer(base, url) {
  const entity = `${base.split("/").at(-1)}-ann`;
  const first = await ask(`${base}/hello?entity=${entity}`);
  assert.equal(await first.text(), "Hello!");
  assert.equal(first.status, 200);
  assert.match(first.headers.get("ratelimit") ?? "", /^"rpm";r=1;t=\d+, "tpm";r=9500;t=\d+$/);
  assert.equal(first.headers.get("ratelimit-policy"), '"rpm";q=2;w=3600, "tpm";q=10000;w=3600');
  await untilLeft(url, entity, { rpm: 1, tpm: 9700 });
  await (await ask(`${base}/hello?entity=${entity}`)).text();
  const refused = await ask(`${base}/hello?entity=${entity}`);
  assert.equal(refused.status, 429);
  assert.ok(Number(refused.headers.get("retry-after")) > 0);
  assert.deepEqual((await refused.json())["violated-policies"], ["rpm"]);

  const leaver = `${base.split("/").at(-1)}-bob`;
  const client = new AbortController();
  const signal = AbortSignal.any([client.signal, AbortSignal.timeout(ANSWER_TIMEOUT_MS)]);
  // miniflare compresses otherwise, and holds words back for that.
  const headers = { "accept-encoding": "identity" };
  const stream = await fetch(`${base}/stream?entity=${leaver}`, { signal, headers });
  const reader = stream.body.getReader();
  assert.match(new TextDecoder().decode((await reader.read()).value), /^word /);
  await untilLeft(url, leaver, { rpm: 1, tpm: 9500 });
  client.abort();
  await untilLeft(url, leaver, { rpm: 1, tpm: 9900 });
}

/** What is earned meanwhile is a few tokens at most. */
async function untilLeft(url, entity, expected) {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    const left = await (await ask(`${url}/left?entity=${entity}`)).json();
    if (left.rpm === expected.rpm && Math.abs(left.tpm - expected.tpm) < 50) return;
    if (Date.now() > deadline) assert.deepEqual(left, expected);
    await setTimeout(20);
  }
}

function printTable(table) {
  const widths = table[0].map((_, column) => Math.max(...table.map((row) => row[column].length)));
  const print = (row) =>
    console.log(`| ${row.map((cell, i) => cell.padEnd(widths[i])).join(" | ")} |`);
  print(table[0]);
  print(widths.map((width) => "-".repeat(width)));
  for (const row of table.slice(1)) print(row);
}
