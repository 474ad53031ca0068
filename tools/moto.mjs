// moto, which speaks S3's language, for the tests of the archive: fetched with pip once, started on
// 127.0.0.1 only.
//
//   node tools/moto.mjs              fetches it, then prints where it is
//   node tools/moto.mjs --port 5000  also runs it until it is interrupted
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";
import { fetchEnvironment, pythonIn } from "./virtual-environment.mjs";

const VERSION = "5.2.5";

/** What its extra "server" would bring is for other services, and takes three times as long. */
const REQUIREMENTS = [`moto[s3]==${VERSION}`, "flask==3.1.3", "flask-cors==6.0.5"];

const folder = fileURLToPath(new URL(`../.cache/moto-${VERSION}`, import.meta.url));

/** Whether it was fetched: tests ask, and never fetch by themselves. */
export function isMotoInstalled() {
  return existsSync(folder);
}

/** Fetches it into a virtual environment, unless that was done. */
export function installMoto() {
  return fetchEnvironment(folder, REQUIREMENTS);
}

/** Starts an installed server that forgets everything when it ends. */
export function startMoto(port, options = {}) {
  // By its module: the scripts of a virtual environment do not survive its renaming.
  const server = ["-m", "moto.server", "-H", "127.0.0.1", "-p", String(port)];
  return spawn(pythonIn(folder), server, options);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const [option, port] = process.argv.slice(2);
  console.log(`moto ${VERSION} is in ${installMoto()}`);
  if (option === "--port") startMoto(port, { stdio: "inherit" });
}
