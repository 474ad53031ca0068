// Runs the tests of one mutation after another for mutations.mjs, in one vitest that stays: it
// keeps what it has transformed, and the engine that its global setup started, so a unit test takes
// a third of a second where a vitest of its own took one and a half. Each run gets a fresh worker.
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { createVitest } from "vitest/node";

const vitest = await createVitest("test", {
  mode: "mutations",
  watch: false,
  bail: 1,
  // A change that makes a test wait forever shows after this long.
  testTimeout: 5000,
  maxWorkers: 1,
  silent: true,
  reporters: [{}],
  setupFiles: [fileURLToPath(new URL("mutation-setup.mjs", import.meta.url))],
});
await vitest.standalone();

/** What the run before this one has changed, and has changed back since. */
let changedBefore;

process.on("message", async ({ changed, test, filter, seed, seeds }) => {
  for (const file of [changedBefore, changed])
    if (file !== undefined) vitest.invalidateFile(resolve(file));
  changedBefore = changed;
  // Tests that run seeds take these only, and do not look for a simpler history that fails.
  Object.assign(process.env, { SEED: String(seed), SEEDS: String(seeds), REPLAYS: "0" });
  if (filter === undefined) vitest.resetGlobalTestNamePattern();
  else vitest.setGlobalTestNamePattern(new RegExp(filter));
  const { testModules, unhandledErrors } = await vitest.runTestFiles([resolve(test)]);
  process.send(toResult(testModules, unhandledErrors, resolve(test)));
});

// Ends its workers and its engine, and removes what vitest keeps in a temporary folder.
process.on("disconnect", async () => {
  await vitest.close();
  process.exit();
});

/** Counts of one test file: those of the files that ran before it are still known. */
function toResult(modules, unhandledErrors, test) {
  const module = modules.find(({ moduleId }) => moduleId === test);
  if (module === undefined) return { passed: 0, failed: 0, errors: `There is no ${test}.` };
  const tests = [...module.children.allTests()];
  const count = (state) => tests.filter((one) => one.result().state === state).length;
  const outside = [
    ...module.errors(),
    ...[...module.children.allSuites()].flatMap((suite) => suite.errors()),
    ...unhandledErrors,
  ];
  return {
    passed: count("passed"),
    failed: count("failed"),
    errors: [
      ...outside.map(({ stack }) => stack),
      ...tests.flatMap((one) =>
        (one.result().errors ?? []).map(({ message }) => `${one.fullName}: ${message}`),
      ),
    ].join("\n"),
  };
}
