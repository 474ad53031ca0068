// Brings a clone to the point where it can run: installs what the lock file names when that has
// changed, and builds incrementally. Plain Node, because it runs before anything is installed.
import { execFileSync } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const installed = `${root}node_modules/.package-lock.json`;

if (
  !existsSync(installed) ||
  statSync(installed).mtimeMs < statSync(`${root}package-lock.json`).mtimeMs
) {
  console.error("Installing what package-lock.json names …");
  execFileSync("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], {
    cwd: root,
    stdio: ["ignore", "ignore", "inherit"],
  });
}
execFileSync(process.execPath, [`${root}node_modules/typescript/bin/tsc`, "-b"], {
  cwd: root,
  stdio: "inherit",
});
