// Runs a script under Node 24, for what Node 20 does not have (node:sqlite).
import { spawnSync } from "node:child_process";
import { node24 } from "./fetch-packages.mjs";

process.exitCode = spawnSync(node24(), process.argv.slice(2), { stdio: "inherit" }).status ?? 1;
