// Searches at random for a broken promise:
//
//   npm run search                                     all searches, for at least ten minutes
//   npm run search -- --minutes 60                     for longer
//   npm run search -- --only interleavings,llm         some of them, by name
//   npm run search -- --only llm --seed 4711           again, from a seed that was printed
//   npm run search -- --only llm --seed 4711 --seeds 1 that seed alone
//   npm run search -- --fixed                          the seeds that run before every merge
//   npm run search -- --all                            everything that has a name here
//
// The searches share the time equally, two at once. Each runs seeds one after another from the same
// first one, first its fixed number of them, then as many as fit into the rest of its share. What
// has no seeds runs to its end afterwards: mutations, other runtimes and load tests always, the
// rest if it is named or with --all. Each prints a line: what came of it, how long it took, which
// seeds it ran.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const root = fileURLToPath(new URL("..", import.meta.url));
const vitest = "node_modules/vitest/vitest.mjs";
const tests = "packages/limiter/test";

const SIMULATE = `${tests}/dist/simulation/simulate.js`;
const PROCESSES = `${tests}/processes/sqlite/dist/processes.js`;
const CRASHES = `${tests}/processes/sqlite/dist/crashes.js`;

/**
 * What is searched by seeds. `fixed` is how many of them run before a merge, and in the first run
 * of a search; `command` runs so many of them.
 */
const SEARCHES = {
  "simulation-memory": {
    fixed: 700,
    command: (seed, count) => [SIMULATE, "--from", seed, "--seeds", count],
  },
  "simulation-sqlite": inTests(100, `${tests}/simulation/sqlite-simulation`),
  "simulation-dynamodb": inTests(4, `${tests}/dynamodb/contract/simulation`),
  interleavings: inTests(20, `${tests}/dynamodb/interleavings/interleavings`),
  "what-fits": inTests(30, `${tests}/dynamodb/interleavings/what-fits`),
  windows: inTests(40, `${tests}/dynamodb/windows`),
  "new-buckets": inTests(3, `${tests}/dynamodb/buckets/what-fits`),
  "reshape-gaps": inTests(2, `${tests}/dynamodb/interleavings/reshape-gaps`),
  clocks: inTests(8, `${tests}/dynamodb/faults/skewed-clocks`, `${tests}/dynamodb/shards/split`),
  "shared-requests": inTests(
    40,
    "packages/limiter/src/repository/dynamodb/table/shared-requests-simulation",
  ),
  "usage-histories": inTests(10, "usage/usage-history", "packages/limiter/src/otel/sums"),
  "usage-end-to-end": inTests(1, `${tests}/dynamodb/aggregator/end-to-end`),
  "interrupted-upgrades": inTests(2, "interrupted-upgrades"),
  applies: inTests(60, `${tests}/manifest`, "packages/limiter/src/manifest/round-trip"),
  "applies-on-dynamodb": inTests(2, "records/declared-limits.connected"),
  "applies-as-processes": inTests(2, "packages/cli/test/limits-processes"),
  "guarded-writes": inTests(4, "guarded-writes"),
  deployments: inTests(
    3,
    "packages/infra/test/repeated-deployment",
    "packages/infra/test/limits-template",
  ),
  // 450 seeds go through all time zones.
  calendars: inTests(12, "packages/limiter/src/core/calendar"),
  llm: inTests(10, `${tests}/llm/streams`, `${tests}/llm/mirror/fleet-simulation`),
  "other-middlewares": inTests(25, `${tests}/stores/peers`),
  "http-chaos": inTests(15, `${tests}/http/chaos`),
  "sqlite-processes": {
    fixed: 3,
    // It has no seed: so many seconds, for two processes and for four.
    command: (_, count) => [PROCESSES, "--seconds", count],
  },
  "sqlite-crashes": {
    fixed: 30,
    command: (seed, count) => [CRASHES, "--seed", seed, "--kills", count],
  },
};

/**
 * What runs to its end, command after command. `always` is also what a search without names runs.
 */
const WHOLE = {
  mutations: { always: true, commands: [["tools/mutations.mjs"]] },
  runtimes: { always: true, commands: [["tools/runtimes.mjs"]] },
  // Two minutes, and another one when Artillery is installed.
  loadtest: {
    always: true,
    commands: [["tools/loadtest.mjs"], [vitest, "run", "loadtest.connected"]],
  },
  // The heap must not grow, which only shows over minutes.
  "http-heap": { commands: [[`${tests}/dist/http/chaos/chaos.js`, "--minutes", "1"]] },
  "node-24": {
    commands: [["tools/moto.mjs"], ["tools/cfn-lint.mjs"], ["tools/node24.mjs", vitest, "run"]],
  },
  // A page shows an address of the first engine, and a test counts the requests that it gets;
  // .ci/run leaves both to it.
  "dynamodb-local": {
    commands: [
      ["tools/dynamodb-local.mjs"],
      ["tools/moto.mjs"],
      [vitest, "run", "connected", ...["deployment-page", "shards/pressure"].flatMap(exclude)],
    ],
    env: { ZAEL_DYNAMODB_ENGINE: "dynamodb-local" },
  },
  versitygw: {
    commands: [["tools/versitygw.mjs"], [vitest, "run", `${tests}/archive`, "packages/lambda"]],
    env: { ZAEL_S3_ENGINE: "versitygw" },
  },
  "python-tables": {
    commands: [
      ["tools/python-tables/make.mjs", ".cache/python-tables"],
      [vitest, "run", "upgrade"],
    ],
    env: { ZAEL_PYTHON_TABLES: `${root}.cache/python-tables` },
  },
  // These only show that everything runs: numbers of a busy machine say nothing.
  benchmarks: {
    commands: `memory sqlite dynamodb quotas aggregator http telemetry llm`
      .split(" ")
      .map((name) => [`bench/dist/${name}.js`, "--quick"]),
  },
  "benchmark-of-faults": { commands: [["bench/dist/faults.js"]] },
};

/** As many as the smallest machine that this is for has cores. */
const AT_ONCE = 2;

/** A larger seed is hard to read out. */
const LARGEST_SEED = 1_000_000;

/** Some tests fail after 120 seconds. */
const MOST_RUN_MS = 90_000;

const TEST_TIMEOUT_MS = 600_000;

/** What is kept of the output of a run, to show if it fails. */
const MOST_OUTPUT = 20_000;

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "10" },
    seed: { type: "string" },
    seeds: { type: "string" },
    only: { type: "string" },
    fixed: { type: "boolean", default: false },
    all: { type: "boolean", default: false },
  },
});
const names = findNames();
const searches = names.filter((name) => name in SEARCHES);
const random = 1 + Math.floor(Math.random() * LARGEST_SEED);
const firstSeed = values.fixed ? 1 : Number(values.seed ?? random);
const workers = Math.min(AT_ONCE, searches.length);
const shareMs = (Number(values.minutes) * 60_000 * workers) / Math.max(1, searches.length);
if (searches.length > 0) console.log(`Seed ${firstSeed}: ${searches.join(", ")}`);
const whole = names.filter((name) => name in WHOLE);
if (whole.length > 0) console.log(`To their end: ${whole.join(", ")}`);
let failures = 0;
const queue = [...searches];
await Promise.all(
  Array.from({ length: workers }, async () => {
    for (let name = queue.shift(); name !== undefined; name = queue.shift())
      await search(name, SEARCHES[name]);
  }),
);
for (const name of whole) await runWhole(name, WHOLE[name]);
console.log(failures === 0 ? "Nothing was found." : `${failures} failed.`);
process.exitCode = failures === 0 ? 0 : 1;

/** Which parts run; throws for an unknown name. */
function findNames() {
  const known = [...Object.keys(SEARCHES), ...Object.keys(WHOLE)];
  if (values.only !== undefined) {
    const chosen = values.only.split(",");
    const unknown = chosen.filter((name) => !known.includes(name));
    if (unknown.length > 0)
      throw new Error(`There is no ${unknown.join(", ")}. There are: ${known.join(", ")}`);
    return chosen;
  }
  if (values.all) return known;
  return known.filter((name) => name in SEARCHES || (WHOLE[name].always && !values.fixed));
}

/** Runs seeds until its share of the time is over, or one fails. */
async function search(name, { fixed, command, env = () => ({}) }) {
  const started = performance.now();
  const isOnce = values.fixed || values.seeds !== undefined;
  let next = firstSeed;
  for (let count = Number(values.seeds ?? fixed); count > 0;) {
    const { code, output } = await run(command(next, count), env(next, count));
    const ms = performance.now() - started;
    if (code !== 0) {
      const again = `npm run search -- --only ${name} --seed ${next} --seeds ${count}`;
      return report({ name, ms, output, detail: `seeds from ${next}. Again: ${again}` });
    }
    next += count;
    const leftMs = Math.min(shareMs - ms, MOST_RUN_MS);
    const perMs = (next - firstSeed) / ms;
    const fitting = Math.floor(perMs * leftMs);
    // A few seeds do not meet everything that a suite wants to have met.
    count = isOnce || fitting < fixed ? 0 : fitting;
  }
  const detail = `seeds ${firstSeed} to ${next - 1}`;
  report({ name, ms: performance.now() - started, detail });
}

/** Runs the commands of a part until one fails. */
async function runWhole(name, { commands, env }) {
  const started = performance.now();
  for (const command of commands) {
    const { code, output } = await run(command, env);
    if (code !== 0) {
      const again = `npm run search -- --only ${name}`;
      const ms = performance.now() - started;
      return report({ name, ms, output, detail: `${command.join(" ")}. Again: ${again}` });
    }
  }
  report({ name, ms: performance.now() - started, detail: "to its end" });
}

/** Prints the line of a part. What failed has output, which comes first. */
function report({ name, ms, output, detail }) {
  if (output !== undefined) {
    failures += 1;
    console.log(output);
  }
  const verdict = output === undefined ? "ok" : "FAILED";
  const seconds = `${Math.round(ms / 1000)}`.padStart(5);
  console.log(`${verdict.padEnd(6)} ${seconds} s  ${name.padEnd(22)} ${detail}`);
}

/** Runs a script in a process of its own; what it prints is kept. */
function run(script, env = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, script.map(String), {
      cwd: root,
      env: { ...process.env, NO_COLOR: "1", ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text) => {
        output = (output + text).slice(-MOST_OUTPUT);
      });
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, output }));
  });
}

function exclude(name) {
  return ["--exclude", `**/${name}.connected.test.ts`];
}

/** A search by test files that take their seeds from the environment. */
function inTests(fixed, ...files) {
  return {
    fixed,
    command: () => [vitest, "run", `--testTimeout=${TEST_TIMEOUT_MS}`, "--silent=true", ...files],
    env: (seed, count) => ({ SEED: seed, SEEDS: count }),
  };
}
