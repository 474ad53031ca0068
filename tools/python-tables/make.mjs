// Tables as releases of the Python zae-limiter write them, made by running those releases against
// a local engine. The tests of the upgrade read them (README.md beside this file).
//
//   node tools/python-tables/make.mjs FOLDER   fetches the releases, and writes one file for each
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { fetchPython, findPython } from "../python-release.mjs";

/** The releases that tables are made with: the last one before its features grew, and a new one. */
export const RELEASES = ["0.10.3", "0.17.0"];

const FIRST_PORT = 18_470;

const toPath = (path) => fileURLToPath(new URL(path, import.meta.url));

/** What a release prints when it opens a table; undefined where it was not fetched. */
export function openWith(release, { endpointUrl, tableName, namespace }) {
  const python = findPython(release);
  if (!existsSync(python)) return undefined;
  const script = [toPath("open.py"), endpointUrl, tableName, namespace];
  return execFileSync(python, script, { encoding: "utf8" }).trim();
}

async function make(folder) {
  mkdirSync(folder, { recursive: true });
  for (const [index, release] of RELEASES.entries()) {
    const port = FIRST_PORT + index;
    const where = ["--host", "127.0.0.1", "--port", String(port)];
    const engine = spawn(toPath("../../node_modules/@dynoxide/linux-x64/dynoxide"), where);
    try {
      await untilOpen(port);
      const file = join(folder, `${release}.jsonl`);
      const script = [toPath("make.py"), `http://127.0.0.1:${port}`, file];
      execFileSync(fetchPython(release), script, {
        stdio: ["ignore", "ignore", "inherit"],
      });
      console.log(`made ${file}`);
    } finally {
      engine.kill();
    }
  }
}

async function untilOpen(port) {
  for (let attempt = 0; attempt < 500; attempt += 1) {
    const socket = connect(port, "127.0.0.1");
    const isOpen = await new Promise((resolve) => {
      socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    });
    socket.destroy();
    if (isOpen) return;
    await sleep(10);
  }
  throw new Error(`The engine does not answer on port ${port}.`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const [folder] = process.argv.slice(2);
  if (folder === undefined)
    throw new Error("Say where to: node tools/python-tables/make.mjs FOLDER");
  await make(folder);
}
