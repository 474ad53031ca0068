// Artillery for load tests: installed on first use from its own lock file, into .cache and outside
// the workspace, because its 460 packages would otherwise be part of every installation.
//
//   node tools/artillery.mjs    installs it, then prints where it is
import { copyFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { buildAside } from "./build-aside.mjs";
import { runNpm } from "./npm.mjs";

const source = fileURLToPath(new URL("loadtest/", import.meta.url));
const { dependencies } = JSON.parse(readFileSync(join(source, "package.json"), "utf8"));

/** The project that has Artillery, where it is installed. */
export const artilleryProject = fileURLToPath(
  new URL(`../.cache/loadtest-${dependencies.artillery}`, import.meta.url),
);

/** Whether it was fetched: tests ask, and never fetch by themselves. */
export function isArtilleryInstalled() {
  return existsSync(artilleryProject);
}

/** Installs it, unless that was done. */
export function installArtillery() {
  return buildAside(artilleryProject, (draft) => {
    console.error("Installing Artillery …");
    for (const name of ["package.json", "package-lock.json", ".npmrc"])
      copyFileSync(join(source, name), join(draft, name));
    // One of the packages downloads a browser when it is installed.
    const env = { ...process.env, PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD: "1" };
    runNpm(["ci", "--ignore-scripts", "--loglevel=error"], { cwd: draft, env });
  });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href)
  console.log(`Artillery ${dependencies.artillery} is in ${installArtillery()}`);
