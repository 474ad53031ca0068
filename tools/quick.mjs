// Answers within seconds what a changed file breaks: types, lint and format of the files that
// changed, and the tests that import them, without engines, simulations and processes.
//   npm run quick             what changed since the last commit
//   npm run quick -- main     what changed since another commit
// A change is done when .ci/run passes, not when this does.
import { execFileSync, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Tests that start servers or processes, need a build, or run thousands of seeds. */
const TOO_LONG = [
  "**/*.connected.test.ts",
  "packages/limiter/test/simulation/**",
  "packages/limiter/test/**/*processes*",
  "packages/cli/test/program.test.ts",
  "test/docs-examples.test.ts",
  "test/package/{declarations,package}.test.ts",
  "test/recipes.test.ts",
  "test/server-recipes.test.ts",
  "test/walk.test.ts",
  "examples/*/demo.test.ts",
];

/** Tests that read files instead of importing them, with the files that they read. */
const READERS = [
  ["test/mutations.test.ts", /\.(?:ts|json)$/],
  ["test/architecture.test.ts", /\.ts$/],
  ["test/documents.test.ts", /\.md$/],
];

const changed = listChangedFiles(process.argv[2] ?? "HEAD");
if (changed.length === 0) {
  console.log("Nothing has changed since the last commit. Name another: npm run quick -- main");
} else {
  const code = changed.filter((file) => /\.(?:ts|mjs|js)$/.test(file));
  const tested = [
    ...code,
    ...READERS.filter(([, read]) => changed.some((file) => read.test(file))).map(([test]) => test),
  ];
  const failed = [
    step("types", "tools/prepare.mjs"),
    step(
      "format",
      "node_modules/.bin/oxfmt",
      "--check",
      "--no-error-on-unmatched-pattern",
      ...changed,
    ),
    code.length === 0 || step("lint", "node_modules/.bin/oxlint", "--deny-warnings", ...code),
    tested.length === 0 ||
      step(
        "tests",
        "node_modules/vitest/vitest.mjs",
        "related",
        "--run",
        "--reporter=dot",
        "--passWithNoTests",
        // Files share workers, which halves the time; where that hides a failure, .ci/run shows it.
        "--no-isolate",
        ...TOO_LONG.flatMap((pattern) => ["--exclude", pattern]),
        ...tested,
      ),
  ].filter((passed) => !passed).length;
  console.log(`Not run: ${TOO_LONG.join(", ")}`);
  process.exitCode = failed === 0 ? 0 : 1;
}

/** Files that differ from a commit and still exist, new ones included. */
function listChangedFiles(commit) {
  return [
    ...git("diff", "--name-only", "--diff-filter=d", "--relative", commit),
    ...git("ls-files", "--others", "--exclude-standard"),
  ];
}

function git(...args) {
  const output = execFileSync("git", [...args, "-z"], { cwd: root, encoding: "utf8" });
  return output.split("\0").filter((file) => file !== "");
}

function step(name, script, ...args) {
  const started = performance.now();
  const { status } = spawnSync(process.execPath, [script, ...args], {
    cwd: root,
    stdio: "inherit",
  });
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(`${status === 0 ? "ok    " : "FAILED"} ${name} (${seconds} s)`);
  return status === 0;
}
