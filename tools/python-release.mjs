// Releases of the Python zae-limiter, each in a virtual environment of its own: fetched with pip
// once, for benchmarks and for the tables that the tests of the upgrade read.
//
//   node tools/python-release.mjs 0.17.0   fetches it, then prints where it is
import { fileURLToPath, pathToFileURL } from "node:url";
import { fetchEnvironment, pythonIn } from "./virtual-environment.mjs";

/** The package that sets the time which a release sees. */
const TIME_MACHINE = "time-machine==3.2.0";

/** Where the Python of a release is, once it was fetched. */
export function findPython(release) {
  return pythonIn(findFolder(release));
}

/** Fetches a release unless that was done, and returns its Python. */
export function fetchPython(release) {
  const wanted = [`zae-limiter==${release}`, TIME_MACHINE];
  return pythonIn(fetchEnvironment(findFolder(release), wanted));
}

function findFolder(release) {
  return fileURLToPath(new URL(`../.cache/python-zae-limiter-${release}`, import.meta.url));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const [release] = process.argv.slice(2);
  if (release === undefined) throw new Error("Say which: node tools/python-release.mjs RELEASE");
  try {
    console.log(fetchPython(release));
  } catch (error) {
    // A command that failed has said why.
    if (error.status === undefined) console.error(error.message);
    process.exitCode = 1;
  }
}
