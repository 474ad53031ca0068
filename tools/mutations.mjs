// Breaks the code on purpose, one small change at a time, and expects a test to notice. Each file
// under test/mutations/ is one change:
//
//   { "promise": 5, "breaks": "what it breaks", "file": "…", "find": "…", "replace": "…",
//     "test": "path of a test file", "filter": "-t" }
//
// The text to find must be in the file exactly once. Everything happens in copies in a temporary
// folder, so that a crash leaves the tree as it was. Run all of them, or those whose file name
// contains a word:
//
//   npm run mutations -- bucket
//
// With --tested the tests are not run on the unchanged code first: for a script that has just done
// so.
import { spawn } from "node:child_process";
import { cp, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const folder = join(root, "test/mutations");

/**
 * Copies that work at the same time: as many as the smallest machine that this is for has cores.
 */
const WORKERS = 2;

/** A change may turn a loop endless; no test file of ours takes a third of this. */
const TIMEOUT_MS = 90_000;

/** What a copy needs not have: the dependencies are linked, the rest is made when it is needed. */
const LEFT_OUT = /(?:^|\/)(?:node_modules|dist|coverage|\.git|\.cache)$|\.tsbuildinfo$/;

const isTested = process.argv.includes("--tested");
const word = process.argv.slice(2).find((argument) => argument !== "--tested") ?? "";
const mutations = await load();
const scratch = await mkdtemp(join(tmpdir(), "mutations-"));
const started = Date.now();
try {
  const copies = await Promise.all(
    Array.from({ length: WORKERS }, (_, index) => copyTo(join(scratch, String(index)))),
  );
  if (!isTested) await assertPassing(copies[0]);
  const results = new Map();
  const queue = [...mutations];
  await Promise.all(
    copies.map(async (copy) => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift())
        results.set(next, await mutate(copy, next));
    }),
  );
  report(results);
} finally {
  await rm(scratch, { recursive: true, force: true });
}

async function load() {
  const names = (await readdir(folder, { recursive: true }))
    .filter((name) => name.endsWith(".json"))
    .sort();
  const chosen = names.filter((name) => name.includes(word));
  if (chosen.length === 0) throw new Error(`No mutation's name contains "${word}".`);
  return Promise.all(
    chosen.map(async (name) =>
      Object.assign(JSON.parse(await readFile(join(folder, name), "utf8")), { name }),
    ),
  );
}

async function copyTo(copy) {
  await cp(root, copy, {
    recursive: true,
    filter: (path) => path === root || !LEFT_OUT.test(path),
  });
  await symlink(join(root, "node_modules"), join(copy, "node_modules"));
  return copy;
}

async function assertPassing(copy) {
  const tests = [...new Set(mutations.map(({ test }) => test))];
  const { passed, output } = await runTests(copy, tests, { timeoutMs: tests.length * TIMEOUT_MS });
  if (!passed) throw new Error(`The tests fail before anything is changed:\n${output}`);
}

/** Applies one change, runs its test, and takes the change back. */
async function mutate(copy, { file, find, replace, test, filter }) {
  const path = join(copy, file);
  const original = await readFile(path, "utf8").catch(() => "");
  const count = original.split(find).length - 1;
  if (count !== 1) return `STALE: the text is there ${count} times`;
  await writeFile(
    path,
    original.replace(find, () => replace),
  );
  const { passed, timedOut, output } = await runTests(copy, [test], { filter });
  await writeFile(path, original);
  if (passed) return "SURVIVED";
  // Code that does not even load proves nothing: a test has to have run and failed.
  return timedOut || /Tests .*\d+ failed/.test(output)
    ? "killed"
    : `BROKEN: no test ran\n${output}`;
}

function runTests(copy, tests, { filter, timeoutMs = TIMEOUT_MS } = {}) {
  const args = [
    join(root, "node_modules/vitest/vitest.mjs"),
    "run",
    ...tests,
    "--reporter=dot",
    "--bail=1",
  ];
  if (filter !== undefined) args.push("-t", filter);
  // A process group of its own, so that a test that hangs goes with all its workers.
  const child = spawn(process.execPath, args, {
    cwd: copy,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    // Where engines are required, simulations run more seeds than a mutation needs.
    env: { ...process.env, CI: "1", NO_COLOR: "1", ZAEL_REQUIRE_ENGINES: "" },
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk) => (output += chunk));
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    process.kill(-child.pid, "SIGKILL");
  }, timeoutMs);
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => {
      clearTimeout(timer);
      resolve({ passed: code === 0, timedOut, output });
    });
  });
}

function report(results) {
  for (const mutation of mutations) {
    const { promise, name, breaks } = mutation;
    console.log(
      `${results.get(mutation).padEnd(9)} promise ${String(promise).padStart(2)}  ${name.replace(/\.json$/, "").padEnd(34)} ${breaks}`,
    );
  }
  const killed = [...results.values()].filter((result) => result === "killed").length;
  const survived = [...results.values()].filter((result) => result === "SURVIVED").length;
  const missing =
    word === ""
      ? Array.from({ length: 10 }, (_, index) => index + 1).filter(
          (promise) => !mutations.some((one) => one.promise === promise),
        )
      : [];
  if (missing.length > 0) console.log(`No mutation for promise ${missing.join(", ")}.`);
  if (killed + survived < results.size)
    console.log(
      `${results.size - killed - survived} do not fit the code any more: bring them up to date.`,
    );
  console.log(
    `${killed} killed, ${survived} survived (${Math.round((Date.now() - started) / 1000)} s)`,
  );
  process.exitCode = killed === results.size && missing.length === 0 ? 0 : 1;
}
