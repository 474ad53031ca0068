// Releases of the Python zae-limiter, each in a virtual environment of its own: fetched with pip
// once, for benchmarks and for the tables that the tests of the upgrade read.
//
//   node tools/python-release.mjs 0.17.0   fetches it, then tells where it is
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { builtAside } from "./built-aside.mjs";

/** It lets a release live at any time. */
const TIME_MACHINE = "time-machine==3.2.0";

/** Where the Python of a release is, once it was fetched. */
export function pythonOf(release) {
  return pythonIn(folderOf(release));
}

/** Fetches a release unless that was done, and returns its Python. */
export function fetchedPython(release) {
  const folder = builtAside(folderOf(release), (draft) => {
    // Compiling everything would take as long as fetching it, and most of it is never imported.
    const quiet = ["--quiet", "--disable-pip-version-check", "--prefer-binary", "--no-compile"];
    run("python3", ["-m", "venv", draft]);
    const wanted = [`zae-limiter==${release}`, TIME_MACHINE];
    run(pythonIn(draft), ["-m", "pip", "install", ...quiet, ...wanted]);
  });
  return pythonIn(folder);
}

function folderOf(release) {
  return fileURLToPath(new URL(`../.cache/python-zae-limiter-${release}`, import.meta.url));
}

function pythonIn(folder) {
  return join(folder, "bin", "python");
}

function run(command, args) {
  execFileSync(command, args, { stdio: ["ignore", "inherit", "inherit"] });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const [release] = process.argv.slice(2);
  if (release === undefined) throw new Error("Say which: node tools/python-release.mjs RELEASE");
  try {
    console.log(fetchedPython(release));
  } catch (error) {
    // A command that failed has said why.
    if (error.status === undefined) console.error(error.message);
    process.exitCode = 1;
  }
}
