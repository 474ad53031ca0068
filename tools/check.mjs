// Every check that is not a test: types, lint, format, words, unused code, and the shape of the
// published packages. Runs all of them, and reports each.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

const checks = [
  ["types", "tsc", ["-b"]],
  ["lint", "oxlint", ["--deny-warnings"]],
  ["format", "oxfmt", ["--check"]],
  ["words", "node", ["tools/words.mjs"]],
  ["unused code", "knip", []],
  ["package", "publint", ["packages/limiter", "--strict"]],
  ["package of the contract", "publint", ["packages/contract", "--strict"]],
  ["package of the upgrade", "publint", ["packages/upgrade", "--strict"]],
  ["package of load tests", "publint", ["packages/loadtest", "--strict"]],
  ["package of the infrastructure", "publint", ["packages/infra", "--strict"]],
  ["package of the command line", "publint", ["packages/cli", "--strict"]],
];

let failed = 0;
for (const [name, command, args] of checks) {
  const ours = command === "node";
  const { status } = spawnSync(
    ours ? command : "npx",
    ours ? args : ["--no-install", command, ...args],
    {
      cwd: root,
      stdio: "inherit",
      // npx is a script on Windows.
      shell: process.platform === "win32",
    },
  );
  console.log(`${status === 0 ? "ok    " : "FAILED"} ${name}`);
  if (status !== 0) failed += 1;
}
process.exitCode = failed === 0 ? 0 : 1;
