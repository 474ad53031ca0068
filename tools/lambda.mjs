// Bundles the Lambda functions: one file each, with everything that it needs, and prints its size;
// and packs each into the zip file that @zae-limiter/infra deploys.
//
//   npm run lambda
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";
import { zipSync } from "fflate";

const root = fileURLToPath(new URL("../", import.meta.url));
const folder = `${root}packages/lambda/`;
/** Where the package that deploys them looks for the zip files. */
const packed = `${root}packages/infra/dist/lambda/`;

/** The functions, by the folders of their sources. */
const FUNCTIONS = ["aggregator", "provisioner"];

/** What they are made of. */
const SOURCES = [
  "packages/limiter/src",
  "packages/infra/src/manifest",
  ...["runtime", ...FUNCTIONS].map((name) => `packages/lambda/${name}`),
];

/** Packages that are not ESM call `require` for Node's own modules. */
const BANNER = `import { createRequire } from "node:module"; const require = createRequire(import.meta.url);`;

/** Bundles a function, and returns the path of the bundle. */
export async function bundleFunction(name, outfile = `${folder}dist/${name}/index.mjs`) {
  await build({
    entryPoints: [`${folder}${name}/handler.ts`],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node22",
    mainFields: ["module", "main"],
    banner: { js: BANNER },
    minify: true,
    logLevel: "warning",
  });
  return outfile;
}

/** The earliest time that a zip file can hold: the same code makes the same bytes. */
const ZIP_TIME = "1980-01-01T00:00:00";

/** Bundles a function and packs it, and returns the path of the zip file. */
export async function packFunction(name) {
  const content = readFileSync(await bundleFunction(name));
  mkdirSync(packed, { recursive: true });
  const file = `${packed}${name}.zip`;
  writeFileSync(file, zipSync({ "index.mjs": [content, { mtime: ZIP_TIME, level: 9 }] }));
  return file;
}

/** Packs the functions whose sources are newer than their zip files. */
export async function packOutdated() {
  const newest = Math.max(
    ...SOURCES.map((path) => newestIn(root + path)),
    statSync(`${root}package-lock.json`).mtimeMs,
  );
  for (const name of FUNCTIONS) {
    const zip = statSync(`${packed}${name}.zip`, { throwIfNoEntry: false });
    if (zip === undefined || zip.mtimeMs < newest) await packFunction(name);
  }
}

/** When a file of a folder was last changed. */
function newestIn(path) {
  const files = readdirSync(path, { recursive: true, withFileTypes: true });
  return Math.max(
    ...files
      .filter((file) => file.isFile() && !file.name.endsWith(".test.ts"))
      .map((file) => statSync(`${file.parentPath}/${file.name}`).mtimeMs),
  );
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href)
  for (const name of FUNCTIONS) {
    const path = await packFunction(name);
    console.log(`${path}: ${Math.round(statSync(path).size / 1000)} kB`);
  }
