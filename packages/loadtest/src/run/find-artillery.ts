import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { LoadTestError } from "./load-test-error.ts";

const PACKAGE = "artillery-engine-zae-limiter";

/** Its installation downloads a browser, unless the variable forbids it. */
const INSTALL = "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm install --save-dev artillery";

/** The Node that the newest Artillery needs, for those who have none yet. */
const NEEDED_NODE = ">= 22.18.0";

/** An installed Artillery. */
export interface Artillery {
  readonly version: string;
  /** The script that Node runs. */
  readonly program: string;
}

interface Manifest {
  readonly version: string;
  readonly engines?: { readonly node?: string };
}

/**
 * Finds the Artillery of the project in a folder, or of a folder above it; throws `LoadTestError`
 * if there is none, or if this version of Node cannot run it.
 */
export function findArtillery(
  folder: string,
  nodeVersion: string = process.versions.node,
): Artillery {
  const folders = createRequire(join(folder, "project.js")).resolve.paths("artillery") ?? [];
  const home = folders
    .map((modules) => join(modules, "artillery"))
    .find((path) => existsSync(join(path, "package.json")));
  if (home === undefined)
    throw new LoadTestError(
      `Load tests need Artillery, which this project does not have. Install it with ` +
        `\`${INSTALL}\`; it needs Node ${formatNode(NEEDED_NODE)}.`,
    );
  const { version, engines } = JSON.parse(
    readFileSync(join(home, "package.json"), "utf8"),
  ) as Manifest;
  const needed = engines?.node ?? NEEDED_NODE;
  if (!isNewEnough(nodeVersion, needed))
    throw new LoadTestError(
      `Artillery ${version} needs Node ${formatNode(needed)}, but this is Node ${nodeVersion}. ` +
        "Run the command with a newer Node.",
    );
  return { version, program: join(home, "bin", "run") };
}

/**
 * The folder from which Artillery can load this package as an engine. Artillery looks beside
 * itself, and the two need not be installed at the same place.
 */
export function findEngineFolder(from: string = dirname(fileURLToPath(import.meta.url))): string {
  const modules = join(from, "node_modules");
  if (existsSync(join(modules, PACKAGE, "package.json"))) return modules;
  if (dirname(from) === from)
    throw new LoadTestError(`${PACKAGE} is not in a folder node_modules. Install it with npm.`);
  return findEngineFolder(dirname(from));
}

/** "22.18 or newer", of a range that only has a lower bound. */
function formatNode(range: string): string {
  return `${readParts(range).slice(0, 2).join(".")} or newer`;
}

function isNewEnough(version: string, range: string): boolean {
  const [has, needs] = [readParts(version), readParts(range)];
  const index = needs.findIndex((part, at) => part !== (has[at] ?? 0));
  return index === -1 || (has[index] ?? 0) > needs[index]!;
}

function readParts(text: string): readonly number[] {
  return (/\d+(?:\.\d+)*/.exec(text)?.[0] ?? "0").split(".").map(Number);
}
