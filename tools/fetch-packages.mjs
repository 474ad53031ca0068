// What tests need from the package registry besides the workspace's own packages. It is installed
// on first use, into .cache and not among those packages: another `node` or `tsc` would otherwise
// stand in for the user's own in every npm script, and an installation would remove it.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildAside } from "./build-aside.mjs";
import { runNpm } from "./npm.mjs";

const NODE_20 = "20.20.2";
const NODE_22 = "22.23.3";
const NODE_24 = "24.9.0";

/** The package that has Node for this platform. */
const NODE = `node-${process.platform === "win32" ? "win" : process.platform}-${process.arch}`;

/** Other runtimes, for `npm run runtimes`. */
const RUNTIMES = ["bun@1.4.4", "deno@2.9.6", "miniflare@4.20260730.0"];

/** What their programs import besides the library, in the workspace's versions. */
const BESIDE_RUNTIMES = ["hono", "@hono/node-server", "openai"];

/** The compilers that users may have besides the workspace's own: the last of each kind. */
const COMPILERS = ["5.0.4", "5.4.5", "5.9.3", "6.0.3"];

const cache = fileURLToPath(new URL("../.cache/", import.meta.url));

/** The path of Node 20; throws where it cannot be fetched. */
export function node20() {
  return nodeIn("node20", NODE_20);
}

/** The path of Node 22; throws where it cannot be fetched. */
export function node22() {
  return nodeIn("node22", NODE_22);
}

/** The path of Node 24; throws where it cannot be fetched. */
export function node24() {
  return nodeIn("node24", NODE_24);
}

/** Not every platform has every version in the registry, but this Node may be the one. */
function nodeIn(name, version) {
  if (process.versions.node.split(".")[0] === version.split(".")[0]) return process.execPath;
  const folder = fetchPackages(name, [`${NODE}@${version}`]);
  return join(folder, NODE, "bin", process.platform === "win32" ? "node.exe" : "node");
}

/** The folder with the packages of Bun, Deno and miniflare; throws where they cannot be fetched. */
export function runtimePackages() {
  const manifest = fileURLToPath(new URL("../package.json", import.meta.url));
  const { devDependencies } = JSON.parse(readFileSync(manifest, "utf8"));
  const beside = BESIDE_RUNTIMES.map((name) => `${name}@${devDependencies[name]}`);
  const specifiers = [...RUNTIMES, ...beside];
  const versions = specifiers.map((specifier) => specifier.split("@").at(-1));
  return fetchPackages(`runtimes-${versions.join("-")}`, specifiers);
}

/** The paths of older compilers, by version; throws where they cannot be fetched. */
export function compilers() {
  const specifiers = COMPILERS.map((version) => `typescript-${version}@npm:typescript@${version}`);
  const folder = fetchPackages(`typescript-${COMPILERS.join("-")}`, specifiers);
  return COMPILERS.map((version) => [version, join(folder, `typescript-${version}`, "bin", "tsc")]);
}

/** Installs packages into a folder of the cache, unless that was done; returns where they are. */
function fetchPackages(name, specifiers) {
  const folder = buildAside(join(cache, name), (draft) => {
    console.error(`Installing ${specifiers.join(", ")} …`);
    // Without a network, this should fail soon.
    const patience = ["--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=3000"];
    const options = ["--no-save", "--prefix", draft, "--loglevel=error", ...patience];
    runNpm(["install", ...options, ...specifiers]);
  });
  return join(folder, "node_modules");
}
