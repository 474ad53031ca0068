// cfn-lint, which checks CloudFormation templates without an account: fetched with pip once.
//
//   node tools/cfn-lint.mjs                   fetches it, then prints where it is
//   node tools/cfn-lint.mjs template.yaml …   also checks templates
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";
import { fetchEnvironment, pythonIn } from "./virtual-environment.mjs";

const VERSION = "1.58.0";

const folder = fileURLToPath(new URL(`../.cache/cfn-lint-${VERSION}`, import.meta.url));

/** Called by its module, and not by its script: see virtual-environment.mjs. */
const MAIN = "from cfnlint.runner import main; main()";

/** Whether it was fetched: tests ask, and never fetch by themselves. */
export function isCfnLintInstalled() {
  return existsSync(folder);
}

/** Fetches it into a virtual environment, unless that was done. */
export function installCfnLint() {
  return fetchEnvironment(folder, [`cfn-lint==${VERSION}`]);
}

/** Checks templates with an installed cfn-lint; returns what it complains about, or nothing. */
export function lint(args) {
  const { stdout, stderr, error } = spawnSync(pythonIn(folder), ["-c", MAIN, ...args], {
    encoding: "utf8",
  });
  if (error) throw error;
  return `${stdout}${stderr}`;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const templates = process.argv.slice(2);
  console.log(`cfn-lint ${VERSION} is in ${installCfnLint()}`);
  if (templates.length > 0) console.log(lint(templates));
}
