// Brings a clone to the point where it can run: installs what the lock file names when that has
// changed, and builds incrementally, the code of the Lambda functions too. Plain Node, because it
// runs before anything is installed.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { runNpm } from "./npm.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const lockFile = `${root}package-lock.json`;
/** What npm writes at the end of an installation. */
const record = `${root}node_modules/.package-lock.json`;
/** The hash of the lock file that was installed. */
const stamp = `${root}node_modules/.installed-lock`;

const wanted = createHash("sha256").update(readFileSync(lockFile)).digest("hex");
if (!isInstalled()) {
  console.error("Installing what package-lock.json names …");
  runNpm(["ci", "--no-audit", "--no-fund", "--loglevel=error"], { cwd: root });
}
writeFileSync(stamp, wanted);
execFileSync(process.execPath, [`${root}node_modules/typescript/bin/tsc`, "-b"], {
  cwd: root,
  stdio: "inherit",
});
for (const name of ["limiter", "contract", "upgrade", "loadtest", "infra", "cli"])
  removeStaleOutput(`${root}packages/${name}`);
// What it imports may just have been installed.
await (await import("./lambda.mjs")).packOutdated();

/**
 * A checkout may write the lock file anew without changing it, so its content decides. After an
 * installation by hand there is no hash of it yet, and npm's record is newer than the lock file.
 */
function isInstalled() {
  if (!existsSync(record)) return false;
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return true;
  return statSync(record).mtimeMs >= statSync(lockFile).mtimeMs;
}

/** The compiler leaves what it made of a source that is gone, and `npm pack` would ship it. */
function removeStaleOutput(folder) {
  for (const path of readdirSync(`${folder}/dist`, { recursive: true })) {
    const source = path.replace(/(?:\.js|\.js\.map|\.d\.ts)$/, ".ts");
    if (source !== path && !existsSync(`${folder}/src/${source}`)) rmSync(`${folder}/dist/${path}`);
  }
}
