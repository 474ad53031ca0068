// Breaks the code on purpose, one small change at a time, and expects a test to notice. Each file
// under test/mutations/ is one change:
//
//   { "guards": "promise 5: what the promise of ARCHITECTURE.md says", or "past bug: what it was",
//     "fixed": true, "backend": "sqlite",
//     "breaks": "what it breaks", "file": "…", "find": "…", "replace": "…",
//     "test": "path of a test file", "filter": "words of a test's name", "seed": 17 }
//
// The text to find must be in the file exactly once. Name the shortest test that notices, and for a
// test that runs many seeds the one that does. There are at most 200, so a new one takes the place
// of one that guards the same.
//
//   npm run mutations              all of them, as the search does
//   npm run mutations -- --fixed   the fixed set: each promise on each backend, before every merge
//   npm run mutations -- bucket    those whose file name contains a word
//
// With --tested the tests are not run on the unchanged code first: for a script that has just done
// so. With --why each line is followed by the test that noticed, and what it said.
//
// Everything happens in copies in a temporary folder, so that a crash leaves the tree as it was.
// Each copy has a process of its own (mutation-runner.mjs) that keeps vitest and an engine ready.
// Property tests draw the same values in every run, so that no change survives by chance.
import { fork } from "node:child_process";
import { once } from "node:events";
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

/**
 * A change that turns a loop endless shows nothing, because a busy machine looks the same. No test
 * that a mutation names takes a tenth of this.
 */
const TIMEOUT_MS = 60_000;

const END_TIMEOUT_MS = 10_000;

/** The seed of everything random, unless a mutation names another. */
const SEED = 1;

/** Where to look for a seed that notices a change, when the one that a mutation names does not. */
const OTHER_SEEDS = { seed: 1, seeds: 250, timeoutMs: 600_000 };

/** What a copy needs not have: the dependencies are linked, the rest is made when it is needed. */
const LEFT_OUT = /(?:^|\/)(?:node_modules|dist|coverage|\.git|\.cache)$|\.tsbuildinfo$/;

/** One copy of the tree, and the process that runs tests in it. */
class Copy {
  #path;
  #runner;

  constructor(path) {
    this.#path = path;
  }

  async make() {
    await cp(root, this.#path, {
      recursive: true,
      filter: (path) => path === root || !LEFT_OUT.test(path),
    });
    await symlink(join(root, "node_modules"), join(this.#path, "node_modules"));
  }

  /** Applies one change, runs its test, and takes the change back; returns what came of it. */
  async mutate({ file, find, replace, test, filter, seed }) {
    const path = join(this.#path, file);
    const original = await readFile(path, "utf8").catch(() => "");
    const count = original.split(find).length - 1;
    if (count !== 1) return { verdict: "STALE", detail: `the text is there ${count} times` };
    await writeFile(
      path,
      original.replace(find, () => replace),
    );
    try {
      const task = { changed: file, test, filter, seed };
      const { failed, passed, timedOut, errors } = await this.run(task);
      if (failed > 0) return { verdict: "killed", detail: errors };
      if (timedOut) return { verdict: "ENDLESS", detail: `no test failed in ${TIMEOUT_MS} ms` };
      // Code that does not even load proves nothing: a test has to have run and failed.
      if (passed === 0 || errors !== "") return { verdict: "BROKEN", detail: errors };
      return { verdict: "SURVIVED", detail: seed && (await this.#otherSeed(task)) };
    } finally {
      await writeFile(path, original);
    }
  }

  /** Runs one test file, or the tests of it whose names match. */
  run({ changed, test, filter, seed = SEED, seeds = 1, timeoutMs = TIMEOUT_MS }) {
    const runner = (this.#runner ??= this.#start());
    return new Promise((resolve, reject) => {
      const finish = (result) => {
        clearTimeout(timer);
        runner.removeAllListeners();
        resolve(result);
      };
      const timer = setTimeout(() => {
        this.#kill();
        finish({ timedOut: true });
      }, timeoutMs);
      runner.once("message", finish);
      runner.once("error", reject);
      runner.once("exit", (code) => reject(new Error(`A runner ended with ${code}.`)));
      runner.send({ changed, test, filter, seed, seeds });
    });
  }

  /** A change of other code may move what a seed finds: says which one finds it now. */
  async #otherSeed(task) {
    const { errors = "" } = await this.run({ ...task, ...OTHER_SEEDS });
    const [, seed] = /Seed (\d+) fails/.exec(errors) ?? [];
    return seed === undefined
      ? `no seed up to ${OTHER_SEEDS.seeds} notices it`
      : `seed ${task.seed} does not notice it any more, seed ${seed} does`;
  }

  /** Lets the process end by itself, as it does when this one ends unexpectedly. */
  async close() {
    const runner = this.#runner;
    if (runner === undefined) return;
    const timer = setTimeout(() => process.kill(-runner.pid, "SIGKILL"), END_TIMEOUT_MS);
    runner.removeAllListeners();
    runner.disconnect();
    await once(runner, "exit");
    clearTimeout(timer);
  }

  #start() {
    return fork(join(root, "tools/mutation-runner.mjs"), {
      cwd: this.#path,
      // A process group of its own, so that it goes with its workers and its engine.
      detached: true,
      stdio: ["ignore", "ignore", "inherit", "ipc"],
      // A test that fails for want of an engine would look as if it had noticed something, and a
      // search by time runs more than a mutation needs.
      env: { ...process.env, NO_COLOR: "1", ZAEL_REQUIRE_ENGINES: "", SEARCH_SECONDS: "" },
    });
  }

  #kill() {
    this.#runner.removeAllListeners();
    process.kill(-this.#runner.pid, "SIGKILL");
    this.#runner = undefined;
  }
}

const word = process.argv.slice(2).find((argument) => !argument.startsWith("--")) ?? "";
const mutations = await load();
const scratch = await mkdtemp(join(tmpdir(), "mutations-"));
const copies = Array.from({ length: WORKERS }, (_, index) => new Copy(join(scratch, `${index}`)));
const started = performance.now();
try {
  await Promise.all(copies.map((copy) => copy.make()));
  if (!process.argv.includes("--tested")) await assertPassing();
  const results = new Map();
  await shareOut(mutations, async (copy, mutation) => {
    const since = performance.now();
    const result = await copy.mutate(mutation);
    results.set(mutation, { ...result, seconds: (performance.now() - since) / 1000 });
  });
  report(results);
} finally {
  await Promise.all(copies.map((copy) => copy.close()));
  await rm(scratch, { recursive: true, force: true });
}

async function load() {
  const names = (await readdir(folder, { recursive: true }))
    .filter((name) => name.endsWith(".json"))
    .sort();
  const chosen = names.filter((name) => name.includes(word));
  if (chosen.length === 0) throw new Error(`No mutation's name contains "${word}".`);
  const loaded = await Promise.all(
    chosen.map(async (name) =>
      Object.assign(JSON.parse(await readFile(join(folder, name), "utf8")), { name }),
    ),
  );
  return process.argv.includes("--fixed") ? loaded.filter(({ fixed = false }) => fixed) : loaded;
}

/** Gives each copy the next piece of work when it has done the one before. */
async function shareOut(work, run) {
  const queue = [...work];
  await Promise.all(
    copies.map(async (copy) => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift())
        await run(copy, next);
    }),
  );
}

/** Runs every test that a mutation names on the unchanged code, under the same conditions. */
async function assertPassing() {
  const runs = new Map(
    mutations.map(({ test, filter, seed }) => [
      JSON.stringify([test, filter, seed]),
      { test, filter, seed },
    ]),
  );
  await shareOut(runs.values(), async (copy, run) => {
    const { passed, failed, timedOut, errors } = await copy.run(run);
    if (timedOut || failed > 0 || passed === 0)
      throw new Error(
        `${JSON.stringify(run)} fails before anything is changed:\n${timedOut ? "It did not end." : errors}`,
      );
  });
}

function report(results) {
  for (const mutation of mutations) {
    const { guards, name, breaks } = mutation;
    const { verdict, detail, seconds } = results.get(mutation);
    console.log(
      `${verdict.padEnd(9)} ${seconds.toFixed(1).padStart(4)} s  ${guards.split(":", 1)[0].padEnd(10)}  ${name.replace(/\.json$/, "").padEnd(40)} ${breaks}`,
    );
    if (verdict !== "killed" && detail) console.log(detail.replaceAll(/^/gm, "    "));
    if (verdict === "killed" && process.argv.includes("--why"))
      console.log(`    ${detail.split("\n", 1)[0]}`);
  }
  const count = (wanted) =>
    [...results.values()].filter(({ verdict }) => verdict === wanted).length;
  const [killed, survived] = [count("killed"), count("SURVIVED")];
  if (killed + survived < results.size)
    console.log(
      `${results.size - killed - survived} show nothing, because no test failed: bring them up to date.`,
    );
  console.log(
    `${killed} killed, ${survived} survived (${Math.round((performance.now() - started) / 1000)} s)`,
  );
  process.exitCode = killed === results.size ? 0 : 1;
}
