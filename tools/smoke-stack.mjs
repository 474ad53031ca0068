// A smoke test of stacks on LocalStack, for people who ask for it: `npm run smoke:stack`.
//
// LocalStack binds every interface, so it runs in a network namespace of its own (`unshare -n`),
// and this script with it. It needs Linux, root, Python 3.13 and Java; PyPI and Maven for the first
// run. Exits 1 with one sentence where one of them is missing.
//
// What LocalStack does not do is not checked: a failed creation or update undoes nothing there, a
// table with `RetainExceptOnCreate` is deleted with its stack, custom resources are never called,
// and recovery, lifecycle, log retention and reserved concurrency are dropped. Those are tested
// with the scripted CloudFormation of packages/infra.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildAside } from "./build-aside.mjs";
import { installDynamoDbLocal } from "./dynamodb-local.mjs";

const VERSION = "4.14.0";
/** The last open-source version does not run with packages that were released after it. */
const PACKAGES_UNTIL = "2026-02-28";
const UV = "uv==0.9.9";

const root = fileURLToPath(new URL("..", import.meta.url));
const folder = join(root, ".cache", `localstack-${VERSION}`);

function fail(sentence) {
  console.error(sentence);
  process.exit(1);
}

/** Python 3.13, from the path or from pyenv. */
function python313() {
  const home = process.env.PYENV_ROOT ?? join(process.env.HOME ?? "", ".pyenv");
  const versions = spawnSync("ls", [join(home, "versions")], { encoding: "utf8" }).stdout ?? "";
  const candidates = [
    "python3.13",
    "python3",
    ...versions.split("\n").map((name) => join(home, "versions", name, "bin", "python3")),
  ];
  return candidates.find((candidate) =>
    spawnSync(candidate, ["--version"], { encoding: "utf8" }).stdout?.startsWith("Python 3.13."),
  );
}

function run(command, args) {
  execFileSync(command, args, { stdio: "inherit" });
}

/** Fetches LocalStack into a virtual environment, unless that was done. */
function installLocalStack() {
  if (existsSync(folder)) return;
  const python = python313();
  if (python === undefined)
    fail("LocalStack needs Python 3.13, which was not found on the path or in pyenv: install it.");
  console.log(`Fetching LocalStack ${VERSION}, once.`);
  buildAside(folder, (draft) => {
    const own = join(draft, "bin", "python");
    run(python, ["-m", "venv", draft]);
    run(own, ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", UV]);
    const wanted = `localstack-core[runtime]==${VERSION}`;
    const until = ["--quiet", "--exclude-newer", PACKAGES_UNTIL];
    run(own, ["-m", "uv", "pip", "install", "--python", own, ...until, wanted]);
  });
}

/** What ends the script ends everything in its namespaces. */
const APART = ["--net", "--pid", "--fork", "--kill-child"];

if (spawnSync("unshare", [...APART, "true"]).status !== 0)
  fail(
    "LocalStack needs namespaces of its own, which only root on Linux may make (unshare failed).",
  );
try {
  installLocalStack();
  installDynamoDbLocal();
} catch (error) {
  fail(`LocalStack or DynamoDB Local could not be fetched: ${error.message.split("\n")[0]}`);
}

const inside = `ip link set lo up && exec "$@"`;
const scenario = join(root, "tools/smoke-stack/scenario.mjs");
const { status } = spawnSync(
  "unshare",
  [...APART, "sh", "-c", inside, "sh", process.execPath, scenario, folder],
  { stdio: "inherit" },
);
process.exit(status ?? 1);
