// Virtual environments of Python, for the tools that come from there: fetched with pip once.
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { buildAside } from "./build-aside.mjs";

/** Fetches packages into an environment of their own, unless it exists; returns its folder. */
export function fetchEnvironment(folder, requirements) {
  return buildAside(folder, (draft) => {
    // Compiling everything would take as long as fetching it, and most of it is never imported.
    const quiet = ["--quiet", "--disable-pip-version-check", "--prefer-binary", "--no-compile"];
    run("python3", ["-m", "venv", draft]);
    run(pythonIn(draft), ["-m", "pip", "install", ...quiet, ...requirements]);
  });
}

/** The Python of an environment. Its scripts do not survive its renaming. */
export function pythonIn(folder) {
  return join(folder, "bin", "python");
}

function run(command, args) {
  execFileSync(command, args, { stdio: ["ignore", "inherit", "inherit"] });
}
